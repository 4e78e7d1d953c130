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
#define HALVINGS_MAX 64 /* of a sample; one that resists so long is left to qsort */

static void insert_in_order(double *values, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		double value = values[i];
		size_t j = i;
		for (; j > 0 && values[j - 1] > value; j--)
			values[j] = values[j - 1];
		values[j] = value;
	}
}

static double middle_of_three(double a, double b, double c)
{
	return MAX(MIN(a, b), MIN(MAX(a, b), c));
}

/* Hoare's partition: no value of the first part is larger than one of the second. Returns the
 * length of the first, 1 to n - 1. */
static size_t split_values(double *values, size_t n)
{
	double pivot = middle_of_three(values[0], values[(n - 1) / 2], values[n - 1]);
	for (size_t i = 0, j = n - 1;; i++, j--) {
		while (values[i] < pivot)
			i++;
		while (values[j] > pivot)
			j--;
		if (i >= j)
			return j + 1;
		double value = values[i];
		values[i] = values[j];
		values[j] = value;
	}
}

static void sort_halves(double *values, size_t n, unsigned halvings)
{
	while (n > INSERTION_MAX) {
		if (halvings-- == 0) {
			qsort(values, n, sizeof(*values), compare_doubles);
			return;
		}
		size_t first = split_values(values, n);
		sort_halves(values, first, halvings);
		values += first;
		n -= first;
	}
	insert_in_order(values, n);
}

void stats_sort(double *values, size_t n)
{
	sort_halves(values, n, HALVINGS_MAX);
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
