/* Where the noise of a series grew or shrank, its level apart: a benchmark that became less stable,
 * or a host that became quieter.
 *
 * The ranks of the distances from the level are searched for the best split, as in any_change.h,
 * then the parts on either side of it. The place is where normal noise of two widths would fit
 * best. */
#ifndef CORE_BATCH_SPREAD_H
#define CORE_BATCH_SPREAD_H

#include "core/batch/any_change.h"

#define SPREAD_MIN_VALUES 8 /* on either side; fewer say nothing about noise */
#define SPREAD_MIN_RATIO 1.5

struct spread {
	size_t at;	      /* the first value of the new noise */
	double before, after; /* standard deviations */
	double p;	      /* corrected for the search */
};

struct spreads {
	struct spread *items; /* ascending */
	size_t count, cap;
};

/* Appends the changes that are significant at `alpha`. `distances` are those of the values from
 * their levels, with their signs, `cuts` the places where the level changes. */
void spread_find(const double *distances, size_t n, const size_t *cuts, size_t cut_count,
		 double alpha, struct any_change_table *table, struct spreads *spreads);

#endif
