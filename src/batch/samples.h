/* The measurements of one result file, grouped by order: the input of `compare` and the exports.
 *
 * Every successful attempt is a run, in the order of the file; warm-up runs are dropped. Failed
 * attempts are only counted. Suspect runs (the host was not quiet) are kept and marked; the reader
 * of the values decides whether they count. */
#ifndef BATCH_SAMPLES_H
#define BATCH_SAMPLES_H

#include "base/strv.h"
#include "base/err.h"
#include "base/map.h"
#include "core/batch/label.h"
#include "core/batch/metric.h"
#include "core/batch/repeat.h"

#define SAMPLES_SOURCE_MAX 16

struct sample_run {
	double values[METRIC_COUNT]; /* NaN: was not measured */
	int32_t block;		     /* A/B block; -1: none */
	int32_t exit;		     /* code; not 0 only with --ignore-failure */
	char variant;		     /* 'A', 'B', …, or 0 */
	bool suspect;
};

/* Where the counts of an order came from; two sources are never compared. */
struct sample_counts {
	char source[SAMPLES_SOURCE_MAX]; /* "perf", "cachegrind", …; "" no counts, "mixed" several
					  */
	uint64_t env_hash;		 /* of the environment's hash; 0 none */
	bool env_mixed;
};

struct sample_order {
	char *id, *hash;
	bool named; /* the id is what people shall see, not the command */
	/* of the only variant or A, of B, …; may be NULL: samples_command() */
	char *commands[REPEAT_SIDES_MAX];
	struct strv args; /* of its template; empty without one */
	struct strv labels;
	char *program, *source, *group; /* may be NULL */
	int cores;
	size_t number;	       /* its place in the file */
	struct strv arg_names; /* of each of them, "" for none; empty: none has one */
	struct sample_run *runs;
	size_t run_count, run_cap;
	size_t failed;	   /* attempts that ended badly */
	char *last_failed; /* the reason of the last of them, "timeout"; NULL none */
	char *last_end;	   /* "exit code 3", "SIGSEGV"; NULL: not known */
	char *last_tail;   /* the last lines that it wrote on standard error; NULL: none */
	char *node;	   /* on which of several hosts it ran last; NULL: there is one */
	struct sample_counts counts;
};

struct samples {
	char *path;
	char *host, *started;	      /* from the header; "" if missing */
	struct sample_order **orders; /* in order of first appearance */
	size_t order_count, order_cap;
	struct map by_id, by_hash; /* borrowed sample_orders */
	size_t variant_count;	   /* 0: there are none */
};

#define SAMPLES_INIT ((struct samples){ .path = NULL })

/* An error names the line that does not belong in a result file. */
int samples_load(struct samples *samples, const char *path, struct err *err);
void samples_done(struct samples *samples);

/* The command, for display: "" if the file does not say. */
const char *samples_command(const struct sample_order *order, char variant);

/* "A", "B", …: static text. i < REPEAT_SIDES_MAX. */
const char *samples_variant_name(size_t i);

/* Its labels, for label_value(). */
struct label_of samples_labels(const struct sample_order *order);

/* Drops the orders for which a filter (core/batch/label.h) does not hold. */
void samples_filter(struct samples *samples, const struct strv *filter);

/* What one run measured; NaN: was not. */
struct result;
void samples_metrics(const struct result *result, double ret_values[METRIC_COUNT]);

/* The command of one run, for display; the caller owns it. */
char *samples_command_text(const struct result *result);

/* Which runs of an order. */
struct sample_filter {
	char variant; /* 0: any */
	bool suspects;
};

/* Whether a run is among them and has a value of the metric. */
bool samples_counts(const struct sample_run *run, enum metric metric,
		    const struct sample_filter *filter);

/* The values of one metric in file order, at most order->run_count, without NaNs. `ret_blocks` may
 * be NULL. Returns how many there are. */
size_t samples_values(const struct sample_order *order, enum metric metric,
		      const struct sample_filter *filter, double *ret_values, int32_t *ret_blocks);

#endif
