/* The command line of `muster batch`. */
#ifndef BATCH_CONFIG_H
#define BATCH_CONFIG_H

#include "base/strv.h"
#include "batch/export.h"
#include "batch/archive/archive.h"
#include "batch/measure.h"
#include "core/batch/batch.h"
#include "core/batch/batch_rules.h"
#include "core/host/corepool.h"
#include "core/batch/repeat.h"
#include "core/batch/schedule.h"

enum batch_progress {
	BATCH_PROGRESS_AUTO, /* a bar on a terminal, else plain */
	BATCH_PROGRESS_BAR,
	BATCH_PROGRESS_PLAIN,
	BATCH_PROGRESS_NONE,
};

struct batch_config {
	/* Where the orders come from. */
	bool allow_duplicates, retry_failed, resume;

	/* How many at a time, and where. */
	int64_t jobs;		/* 0: as many as the cores allow */
	double jobs_percent;	/* of the cores, instead; 0: not given */
	int64_t cores, reserve; /* reserve -1: one, if one can be spared */
	int smt;		/* enum corepool_smt */
	int place;		/* enum corepool_place, or BATCH_PLACE_NONE */
	struct cpuset allowed;
	bool allowed_given;
	int order; /* enum schedule_order */
	int64_t seed;
	struct strv history;

	/* Time limits, and what to do on failure. */
	uint64_t timeout_ns, cpu_timeout_ns, deadline_ns; /* 0: none */
	uint32_t timeout_percent;
	struct ladder ladder;
	int64_t retries;
	struct retry_rule retry_on;
	uint64_t retry_delay_ns;
	struct halt_rule halt;
	const char *canary;

	/* Repetition and measurement. */
	int64_t runs, warmup;	    /* runs 0: as many as necessary */
	int64_t min_runs, max_runs; /* 0: not given */
	double precision, confidence;
	bool noise;			     /* only tell how noisy the host is */
	bool ab;			     /* the words are "A=…", "B=…" and arguments */
	int interleave;			     /* enum repeat_interleave */
	const char *hooks[BATCH_HOOK_COUNT]; /* commands, or NULL */
	struct measure_options measure;
	struct export_paths exports;

	/* Where the results go. */
	const char *output, *joblog, *results;
	struct archive_options filing;
	const char *shell;
	bool dry_run, quiet;
	int progress; /* enum batch_progress */
};

#define BATCH_PLACE_NONE 2

/* Runs the batch. `argc`, `argv`: files, "-", or a template with ":::". Returns the exit code;
 * usage errors have been printed as "muster batch: …". */
int batch_run(const struct batch_config *config, int argc, char *const *argv);

#endif
