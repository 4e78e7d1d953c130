#include "core/batch/serial.h"

#include <math.h>

#include "base/mem.h"
#include "core/batch/stats.h"

#define SHORTEST 5	 /* values that can show a drift */
#define DRIFT_ERRORS 3.5 /* standard errors from which a drift is told */
#define DRIFT_WORTH 0.15 /* correlation that matters */
#define CLEAR_ERRORS 2.5 /* standard errors that are not chance */

static double clamp(double correlation)
{
	return MAX(0.0, MIN(correlation, SERIAL_MAX));
}

static double product(const double *values, size_t n, size_t apart, double mean)
{
	double sum = 0;
	for (size_t i = apart; i < n; i++)
		sum += (values[i] - mean) * (values[i - apart] - mean);
	return sum;
}

/* Waves below a noise of their own: the correlation is small, but it hardly falls off. What counts
 * is what they do to long means together; the AR(1) process that does the same stands for it. */
static double with_long_waves(double first, double second, double count)
{
	if (MIN(first, second) < CLEAR_ERRORS / sqrt(count) || second <= first * first)
		return first;
	double fall = MIN(second / first, SERIAL_MAX);
	double inflation = 1 + 2 * first / (1 - fall);
	return (inflation - 1) / (inflation + 1);
}

double serial_correlation(const double *values, size_t n, double *ret_with_waves)
{
	assert(n >= 4);
	double mean = stats_mean(values, n), squares = product(values, n, 0, mean);
	double count = (double)n;
	*ret_with_waves = 0;
	if (!(squares > 0))
		return 0;
	/* Kendall's correction: the estimate is low by (1 + 3 rho) / n. */
	double first = (count * product(values, n, 1, mean) / squares + 1) / MAX(count - 3, 1.0);
	*ret_with_waves =
		clamp(with_long_waves(first, product(values, n, 2, mean) / squares, count));
	return clamp(first);
}

void serial_gather(struct serial_evidence *evidence, const double *values, size_t n)
{
	if (n < SHORTEST)
		return;
	double mean = stats_mean(values, n), squares = product(values, n, 0, mean);
	if (!(squares > 0))
		return;
	/* Around their own mean, independent neighbours have the correlation -1 / n. */
	evidence->products += (double)n * product(values, n, 1, mean) / squares + 1;
	evidence->values += (double)n;
}

double serial_drift(const struct serial_evidence *evidence)
{
	if (!(evidence->values > 0))
		return 0;
	double mean = evidence->products / evidence->values;
	bool clear = evidence->products > DRIFT_ERRORS * sqrt(evidence->values);
	return clear && mean > DRIFT_WORTH ? mean : 0;
}

double serial_inflation(double correlation, double length)
{
	double rest = 1 - correlation;
	return (1 + correlation) / rest -
	       2 * correlation * (1 - exp(length * log(correlation))) / (length * rest * rest);
}
