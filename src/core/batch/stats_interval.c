#include "core/batch/stats_interval.h"

#include <math.h>

#include "base/mem.h"
#include "core/batch/stats.h"

bool stats_median_interval(const double *sorted, size_t n, double confidence, double *ret_low,
			   double *ret_high)
{
	/* The interval from the c-th smallest to the c-th largest misses the median on one side
	 * with probability P(Binomial(n, 1/2) < c): take the largest c that is still rare enough.
	 */
	double miss = (1 - confidence) / 2;
	size_t c = 0;
	double log_term = -(double)n * M_LN2, sum = 0;
	for (; c < n / 2; c++) {
		sum += exp(log_term);
		if (sum > miss)
			break;
		log_term += log((double)(n - c)) - log((double)(c + 1));
	}
	if (c == 0)
		return false;
	*ret_low = sorted[c - 1];
	*ret_high = sorted[n - c];
	return true;
}

struct ratio stats_paired_ratio(const double *a, const double *b, size_t n, double confidence)
{
	assert(n > 0);
	AUTO_FREE double *logs = NEW_ARRAY(double, n);
	for (size_t i = 0; i < n; i++)
		logs[i] = log(b[i] / a[i]);
	stats_sort(logs, n);
	struct ratio ratio = { .value = exp(stats_median(logs, n)), .low = 0, .high = INFINITY };
	double low, high;
	if (stats_median_interval(logs, n, confidence, &low, &high)) {
		ratio.low = exp(low);
		ratio.high = exp(high);
	}
	return ratio;
}

/* Of the logarithm of the median. For a normal estimate of known error s, the c-th smallest and the
 * c-th largest value bracket it at +-z s, where z belongs to their binomial coverage; read s off.
 */
static double log_median_variance(const double *sorted, size_t n)
{
	double place = round((double)(n + 1) / 2 - sqrt((double)n));
	size_t c = place < 1 ? 1 : (size_t)place;
	double z = -stats_normal_quantile(stats_binomial_half_cdf((int64_t)c - 1, n));
	double error = log(sorted[n - c] / sorted[c - 1]) / (2 * z);
	return error * error;
}

struct ratio stats_median_ratio(const double *a, size_t m, const double *b, size_t n,
				double confidence)
{
	assert(m > 0 && n > 0);
	double effect = log(stats_median(b, n) / stats_median(a, m));
	struct ratio ratio = { .value = exp(effect), .low = 0, .high = INFINITY };
	if (MIN(m, n) < STATS_RATIO_MIN_VALUES)
		return ratio;
	double z = stats_normal_quantile((1 + confidence) / 2);
	double reach = z * sqrt(log_median_variance(a, m) + log_median_variance(b, n));
	ratio.low = exp(effect - reach);
	ratio.high = exp(effect + reach);
	return ratio;
}
