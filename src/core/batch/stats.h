/* Describing one sample: centre, spread, quantiles. Pure functions on arrays of doubles; a sample
 * called "sorted" must be ascending (stats_sort). No sample may hold a NaN. */
#ifndef CORE_BATCH_STATS_H
#define CORE_BATCH_STATS_H

#include "base/util.h"

void stats_sort(double *values, size_t n);

/* n >= 1 for all of these. */
double stats_mean(const double *values, size_t n);
double stats_median(const double *sorted, size_t n);
double stats_quantile(const double *sorted, size_t n,
		      double q);		  /* linear between order statistics */
double stats_mad(const double *sorted, size_t n); /* median absolute deviation, unscaled */

#define STATS_NORMAL_MAD 0.6744897501960817 /* of the standard normal distribution */

/* Sample standard deviation (n - 1 below the line); 0 for a single value. */
double stats_stddev(const double *values, size_t n);

/* The standard normal distribution: P(Z > z), and the z with P(Z <= z) = p for 0 < p < 1. */
double stats_normal_tail(double z);
double stats_normal_quantile(double p);

#endif
