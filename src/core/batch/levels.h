/* A series cut into levels: stretches that each have a mean of their own.
 *
 * levels_cut() finds the best of all possible ways: the squared deviations from the levels, in
 * units of the noise that neighbours show, plus a price for every cut, are as small as can be
 * (exact dynamic programming that keeps only the starts which can still win). */
#ifndef CORE_BATCH_LEVELS_H
#define CORE_BATCH_LEVELS_H

#include "base/util.h"

struct levels {
	size_t n;
	double *values;		/* from their mean */
	double *sums, *squares; /* of the first i values */
	size_t *cuts;		/* first value of every level; cuts[0] = 0, cuts[count] = n */
	size_t count;
};

#define LEVELS_INIT ((struct levels){ .n = 0 })

/* One level of n >= 1 values, which are copied. */
void levels_init(struct levels *levels, const double *values, size_t n);
void levels_done(struct levels *levels);

/* Finds the best cuts. Differences below `fine` are not resolved. */
void levels_cut(struct levels *levels, double fine);

/* Takes the cut before level `i` >= 1 back. */
void levels_join(struct levels *levels, size_t i);
void levels_join_all(struct levels *levels);

/* Moves every cut to where it fits best between its neighbours. */
void levels_move(struct levels *levels);

/* Of the values from `from` up to `to`: their mean and the sum of squared deviations from it. */
double levels_mean(const struct levels *levels, size_t from, size_t to);
double levels_deviation(const struct levels *levels, size_t from, size_t to);

/* The price of a cut in a series of n values, in squared noise. */
double levels_price(size_t n);

#endif
