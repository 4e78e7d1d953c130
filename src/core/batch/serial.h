/* Values that resemble their neighbours: noise that comes in waves, because the host was slow for a
 * while, or drift. Many such values say less about their mean than as many independent ones, and a
 * test that does not know it finds differences where there are none. */
#ifndef CORE_BATCH_SERIAL_H
#define CORE_BATCH_SERIAL_H

#include "base/util.h"

#define SERIAL_MAX 0.95 /* no correlation above it is estimated */

/* The correlation of neighbours, 0 to SERIAL_MAX; negative ones count as 0. It is corrected for
 * the pull to zero in short series. A change of level looks like correlation. n >= 4.
 *
 * `ret_with_waves`: the correlation that raises the variance of long means as much as this series
 * does, where it does not fall off as fast as in an AR(1) process: slow waves below a noise of
 * their own. Never smaller. */
double serial_correlation(const double *values, size_t n, double *ret_with_waves);

/* Do runs drift? Gathered over many short series, as the runs of the orders of one file. */
struct serial_evidence {
	double products; /* of neighbours, in variances */
	double values;
};

void serial_gather(struct serial_evidence *evidence, const double *values, size_t n);

/* The mean correlation of neighbours; 0: it may well be chance. */
double serial_drift(const struct serial_evidence *evidence);

/* By how much correlation of neighbours (falling off as in an AR(1) process) raises the variance of
 * the mean of `length` values. */
double serial_inflation(double correlation, double length);

#endif
