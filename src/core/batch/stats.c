#include "core/batch/stats.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Samples are mostly a few dozen values, where insertion beats qsort's calls by far. */
#define INSERTION_MAX 64

void stats_sort(double *values, size_t n)
{
	if (n > INSERTION_MAX) {
		qsort(values, n, sizeof(*values), compare_doubles);
		return;
	}
	for (size_t i = 1; i < n; i++) {
		double value = values[i];
		size_t j = i;
		for (; j > 0 && values[j - 1] > value; j--)
			values[j] = values[j - 1];
		values[j] = value;
	}
}

double stats_mean(const double *values, size_t n)
{
	assert(n > 0);
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += values[i];
	return sum / (double)n;
}

double stats_quantile(const double *sorted, size_t n, double q)
{
	assert(n > 0 && q >= 0 && q <= 1);
	double position = q * (double)(n - 1);
	size_t below = (size_t)position;
	if (below + 1 >= n)
		return sorted[n - 1];
	double part = position - (double)below;
	return sorted[below] + part * (sorted[below + 1] - sorted[below]);
}

double stats_median(const double *sorted, size_t n)
{
	assert(n > 0);
	return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

double stats_mad(const double *sorted, size_t n)
{
	double centre = stats_median(sorted, n);
	AUTO_FREE double *deviations = NEW_ARRAY(double, n);
	for (size_t i = 0; i < n; i++)
		deviations[i] = fabs(sorted[i] - centre);
	stats_sort(deviations, n);
	return stats_median(deviations, n);
}

double stats_stddev(const double *values, size_t n)
{
	if (n < 2)
		return 0;
	double mean = stats_mean(values, n), sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += (values[i] - mean) * (values[i] - mean);
	return sqrt(sum / (double)(n - 1));
}

double stats_normal_tail(double z)
{
	return 0.5 * erfc(z * M_SQRT1_2);
}

/* A first guess good to 5e-4 (Abramowitz and Stegun 26.2.23), then Halley's method, which triples
 * the number of correct digits per step. */
double stats_normal_quantile(double p)
{
	assert(p > 0 && p < 1);
	double tail = p < 0.5 ? p : 1 - p;
	double t = sqrt(-2 * log(tail));
	double z = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
			       (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
	for (int step = 0; step < 2; step++) {
		double density = exp(-z * z / 2) / sqrt(2 * M_PI);
		double newton = (stats_normal_tail(z) - tail) / density;
		z += newton / (1 - z * newton / 2);
	}
	return p < 0.5 ? -z : z;
}
