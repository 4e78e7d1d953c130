/* From numbers to a word: is B faster, slower, the same, or undecided?
 *
 * B has changed only if two things hold: the rank test says so after correction for testing many
 * orders (q <= alpha), and the whole confidence interval lies beyond the noise. "Same" is a claim
 * too: the whole interval lies within what the user calls no change. Everything between is
 * undecided, and then the question is how many more runs would help. Learned noise only raises the
 * bar for a change; it never turns a measured change into "same". */
#ifndef CORE_BATCH_VERDICT_H
#define CORE_BATCH_VERDICT_H

#include "base/err.h"
#include "core/batch/stats_interval.h"

enum verdict {
	VERDICT_UNDECIDED,
	VERDICT_SAME,
	VERDICT_FASTER, /* or less, for a metric other than time */
	VERDICT_SLOWER, /* or more */
	VERDICT_COUNT,
};

const char *verdict_name(enum verdict verdict);

/* All relative: 0.01 is 1 %. */
struct verdict_rule {
	double alpha;
	double same_within;   /* up to this a change does not count */
	double change_beyond; /* a change must be larger than this; >= same_within */
};

enum verdict verdict_of(const struct verdict_rule *rule, const struct ratio *ratio, double q);

/* Counts hardly vary, so they need no statistics: the interval runs from the smallest to the
 * largest ratio that any two runs give, and the tolerance alone decides. Both sorted, not empty. */
struct ratio verdict_count_ratio(const double *a_sorted, size_t m, const double *b_sorted,
				 size_t n);
enum verdict verdict_of_counts(double tolerance, const struct ratio *ratio);

/* The evidence for an undecided comparison. */
struct verdict_evidence {
	struct ratio ratio;
	double p, q; /* NaN: no test was possible */
	size_t runs; /* of the smaller side, or blocks */
	bool paired;
};

/* How many more runs per side (or blocks) would probably decide it, if the effect is what it looks
 * like now and the interval shrinks with the root of the runs. VERDICT_RUNS_MANY: unreasonably
 * many, because the effect sits on the threshold. */
#define VERDICT_RUNS_MANY 10000
size_t verdict_runs_needed(const struct verdict_rule *rule,
			   const struct verdict_evidence *evidence);

/* The noise of a host from changes between runs of one and the same program: Q3 + 3 IQR of their
 * sizes |log ratio|. Sorts `sizes`. False with fewer than VERDICT_LEARN_MIN. */
#define VERDICT_LEARN_MIN 8
bool verdict_learn_noise(double *sizes, size_t n, double *ret_noise);

#endif
