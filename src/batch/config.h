/* The command line of `muster batch`. */
#ifndef BATCH_CONFIG_H
#define BATCH_CONFIG_H

#include "base/strv.h"
#include "batch/export.h"
#include "batch/archive/archive.h"
#include "batch/args/options.h"
#include "batch/measure.h"
#include "core/fleet/hosts_options.h"
#include "core/dispatch/batch.h"
#include "core/batch/batch_rules.h"
#include "core/host/corepool.h"
#include "core/batch/repeat.h"
#include "core/batch/schedule.h"
#include "net/addr.h"
#include "nodes/rendezvous.h"

enum batch_progress {
	BATCH_PROGRESS_AUTO, /* a bar on a terminal, else plain */
	BATCH_PROGRESS_BAR,
	BATCH_PROGRESS_PLAIN,
	BATCH_PROGRESS_NONE,
};

enum batch_exit {
	BATCH_EXIT_MUSTER,   /* 1 if an order failed */
	BATCH_EXIT_PARALLEL, /* the number of those that failed */
};

struct ending;

/* A batch without a list: each of many hosts runs one order, its own. */
struct batch_part {
	const char *host;  /* the name of this one */
	const char *order; /* that it runs, as a line of a list */
	const char *risk;  /* what a stranger could do without a token, for the warning */
	/* Where it is coordinated: what came of an order, in place of showing its output; and that
	 * nothing else will come. Returns the exit code of all hosts, every time it is asked. */
	void (*on_ending)(void *arg, struct ending *ending);
	int (*on_end)(void *arg);
	void *arg;
};

struct batch_config {
	/* Where the orders come from. */
	bool allow_duplicates, retry_failed, resume;
	struct strv filter; /* terms of core/batch/label.h; only orders for which they hold run */
	struct arg_options args;
	struct file_options files;

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
	bool ignore_failure;

	/* When the next one starts, and how. */
	uint64_t delay_ns;
	uint64_t memory_free;  /* bytes; 0: any */
	uint64_t memory_limit; /* of an order, in bytes; 0: none */
	bool watch_memory;     /* --memory-limit was given, "max" too */
	double load;	       /* 0: any */
	int64_t nice;

	/* Repetition and measurement. */
	int64_t runs, warmup;	    /* runs 0: as many as necessary */
	int64_t min_runs, max_runs; /* 0: not given */
	double precision, confidence;
	bool noise;			     /* only tell how noisy the host is */
	bool json;			     /* and do it as JSON */
	bool ab;			     /* the words are "A=…", "B=…" and arguments */
	int interleave;			     /* enum repeat_interleave */
	const char *hooks[BATCH_HOOK_COUNT]; /* commands, or NULL */
	struct measure_options measure;
	struct export_paths exports;

	/* Where the results go. */
	const char *output, *joblog, *results; /* results: a directory, or a template of paths */
	bool table;			       /* end with the times of repeated runs */
	bool keep_order, line_buffer, ungroup, show_output;
	int exit_code; /* enum batch_exit */
	struct archive_options filing;
	const char *shell;
	bool dry_run, quiet;
	int progress;	       /* enum batch_progress */
	bool http;	       /* a page is served, */
	struct addr http_addr; /* there */

	/* Many hosts: as typed, and what that means; NULL: this host alone. */
	struct rendezvous_options meeting;
	const struct rendezvous *rdzv;
	const char *features;	    /* that this host has, with commas between them; NULL: none */
	struct hosts_options hosts; /* --hosts, --hostfile */
	/* -1, or this process coordinates and the orders run on those hosts only: ends when none is
	 * left. */
	int hosts_fd;

	/* For a part of muster that runs a batch. */
	const char *const *ab_dirs;    /* where A, B, … run; NULL: here */
	const struct batch_part *part; /* NULL: it is for people */

	/* For a program that runs us. Descriptors; -1: none. */
	int64_t notify;	  /* gets a byte for every line of the result file */
	int64_t lifeline; /* the batch stops at its end of file */
};

#define BATCH_PLACE_NONE 2

/* The settings of a command line without options. */
void batch_config_init(struct batch_config *config);
void batch_config_done(struct batch_config *config);

/* Runs the batch. `argc`, `argv`: the words behind the options. Returns the exit code;
 * usage errors have been printed as "muster batch: …". */
int batch_run(const struct batch_config *config, int argc, char *const *argv);

#endif
