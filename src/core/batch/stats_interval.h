/* Effect sizes with their confidence intervals, as ratios: 1.05 is 5 % more. All deterministic: no
 * resampling, hence no seed, and microseconds an order. Samples must be positive (a ratio of zeros
 * means nothing); the logarithms are taken here. */
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

/* Paired: the median of the ratios b/a of n blocks, with the interval above on their logarithms. */
struct ratio stats_paired_ratio(const double *a, const double *b, size_t n, double confidence);

/* Unpaired: median(b) / median(a) of two sorted samples. The variance of each log median comes from
 * the distance of two order statistics (Price and Bonett 2002), so no shape is assumed. */
#define STATS_RATIO_MIN_VALUES 4 /* a side; fewer give no interval */
struct ratio stats_median_ratio(const double *a_sorted, size_t m, const double *b_sorted, size_t n,
				double confidence);

#endif
