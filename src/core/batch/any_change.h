/* Is there any change of level in a series at all?
 *
 * The values give way to the normal scores of their ranks, so that the answer does not depend on
 * the shape of the noise: with independent values it is a permutation test, as exact for long tails
 * and for two modes as for normal noise. Stretches of all lengths are compared with the rest of the
 * series, and the best is judged after correction for all that were looked at. Correlation of
 * neighbours raises the bar by what it does to the mean of such a stretch. */
#ifndef CORE_BATCH_ANY_CHANGE_H
#define CORE_BATCH_ANY_CHANGE_H

#include "base/util.h"

/* The normal scores of the ranks in a series of n values, which series of one length share: they
 * take longer than all else. Not for two threads at a time. */
struct any_change_table {
	double *quantiles; /* at k / 2n; NaN: not asked for yet */
	size_t n;
};

#define ANY_CHANGE_TABLE_INIT ((struct any_change_table){ .n = 0 })

void any_change_table_done(struct any_change_table *table);

/* Normal scores of the ranks, mean 0 and variance 1; ties get middle ranks. All 0 if the values are
 * equal. `ret_sorted` are the values, ascending. */
void any_change_scores(const double *values, size_t n, struct any_change_table *table,
		       double *ret_scores, double *ret_sorted);

/* The chance of a stretch that stands out like the best of this series, if there is no change. */
double any_change_p(const double *scores, size_t n, double correlation);

/* The same for splits alone: all that comes before a value against all that follows. */
double any_change_split_p(const double *scores, size_t n, double correlation);

#endif
