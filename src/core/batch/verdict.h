/* From numbers to a word: is the new one faster, slower, the same, or is that not known yet?
 *
 * A change is claimed only when two things hold: the rank test says so after correction for testing
 * many orders (q <= alpha), and the whole confidence interval lies beyond the noise. "Same" is a
 * claim too: the whole interval lies within what the user calls no change. Everything between is
 * undecided, and then the question is how many more runs would help. Learned noise raises the bar
 * for a change only; it never turns a change that was seen into "same". */
#ifndef CORE_BATCH_VERDICT_H
#define CORE_BATCH_VERDICT_H

#include "base/err.h"
#include "core/batch/stats_interval.h"

enum verdict {
	VERDICT_UNDECIDED,
	VERDICT_SAME,
	VERDICT_FASTER, /* or less, for what is not a time */
	VERDICT_SLOWER, /* or more */
	VERDICT_COUNT,
};

const char *verdict_name(enum verdict verdict);

/* All relative: 0.01 is 1 %. */
struct verdict_rule {
	double alpha;
	double same_within;   /* a change this small is none */
	double change_beyond; /* and one must be larger than this to count; >= same_within */
};

enum verdict verdict_of(const struct verdict_rule *rule, const struct ratio *ratio, double q);

/* Counts hardly vary, so they are compared as they are: the interval runs from the smallest to the
 * largest ratio any two runs give, and the rule is the tolerance alone. Both sorted, not empty. */
struct ratio verdict_count_ratio(const double *a_sorted, size_t m, const double *b_sorted,
				 size_t n);
enum verdict verdict_of_counts(double tolerance, const struct ratio *ratio);

/* What an undecided comparison rests on. */
struct verdict_evidence {
	struct ratio ratio;
	double p, q; /* NaN: no test was possible */
	size_t runs; /* of the smaller side, or blocks */
	bool paired;
};

/* How many more runs a side (or blocks) would probably decide it, if the effect is what it looks
 * like now and the interval shrinks with the root of the runs. VERDICT_RUNS_MANY when that is
 * beyond reason: the effect sits on the threshold. */
#define VERDICT_RUNS_MANY 10000
size_t verdict_runs_needed(const struct verdict_rule *rule,
			   const struct verdict_evidence *evidence);

/* The noise of a host from changes between runs of one and the same program: Q3 + 3 IQR of their
 * sizes |log ratio|. Sorts `sizes`. False with fewer than VERDICT_LEARN_MIN. */
#define VERDICT_LEARN_MIN 8
bool verdict_learn_noise(double *sizes, size_t n, double *ret_noise);

#endif
