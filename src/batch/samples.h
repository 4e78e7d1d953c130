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
#include "core/batch/metric.h"

#define SAMPLES_SOURCE_MAX 16

struct sample_run {
	double values[METRIC_COUNT]; /* NaN: was not measured */
	int32_t block;		     /* A/B block; -1: none */
	char variant;		     /* 'A', 'B', or 0 */
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
	char *commands[2]; /* of the only variant or A, and of B; may be NULL: samples_command() */
	struct strv args;  /* of its template; empty without one */
	struct sample_run *runs;
	size_t run_count, run_cap;
	size_t failed;	   /* attempts that ended badly */
	char *last_failed; /* the reason of the last of them, "timeout"; NULL none */
	struct sample_counts counts;
};

struct samples {
	char *path;
	char *host, *started;	      /* from the header; "" if missing */
	struct sample_order **orders; /* in order of first appearance */
	size_t order_count, order_cap;
	struct map by_id, by_hash; /* borrowed sample_orders */
	bool has_variants;
};

#define SAMPLES_INIT ((struct samples){ .path = NULL })

/* An error names the line that does not belong in a result file. */
int samples_load(struct samples *samples, const char *path, struct err *err);
void samples_done(struct samples *samples);

/* The command, for display: "" if the file does not say. */
const char *samples_command(const struct sample_order *order, char variant);

/* What one run measured; NaN: was not. */
struct result;
void samples_metrics(const struct result *result, double ret_values[METRIC_COUNT]);

/* Which runs of an order. */
struct sample_filter {
	char variant; /* 0: any */
	bool suspects;
};

/* The values of one metric in file order, at most order->run_count, without NaNs. `ret_blocks` may
 * be NULL. Returns how many there are. */
size_t samples_values(const struct sample_order *order, enum metric metric,
		      const struct sample_filter *filter, double *ret_values, int32_t *ret_blocks);

#endif
