/* Effect sizes with their confidence intervals, as ratios: 1.05 is 5 % more. All deterministic: no
 * resampling, hence no seed, and microseconds per order. Samples must be positive (a ratio of zeros
 * means nothing); these functions take the logarithms. */
#ifndef CORE_BATCH_STATS_INTERVAL_H
#define CORE_BATCH_STATS_INTERVAL_H

#include "base/util.h"

struct ratio {
	double value;
	double low, high; /* 0 and infinity: too few values for any interval at this confidence */
};

/* The median of one sorted sample with its exact distribution-free interval: two order statistics
 * whose binomial coverage is at least `confidence`. False if the sample is too small for one (6
 * values at 0.95). */
bool stats_median_interval(const double *sorted, size_t n, double confidence, double *ret_low,
			   double *ret_high);

/* Hodges-Lehmann estimates: the shift that makes the two sides look alike to the rank test, and the
 * interval of all shifts that the same test would not reject at 1 - `confidence`. It is as wide as
 * the test is weak, whatever the shape of the noise, also with two or more modes.
 *
 * Paired: the median of the averages of any two of the n ratios b/a (signed-rank test). */
struct ratio stats_paired_ratio(const double *a, const double *b, size_t n, double confidence);

/* Unpaired: the median of all m * n ratios b/a of two sorted samples (rank-sum test). */
struct ratio stats_unpaired_ratio(const double *a_sorted, size_t m, const double *b_sorted,
				  size_t n, double confidence);

#endif
