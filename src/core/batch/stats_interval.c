#include "core/batch/stats_interval.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "core/batch/stats.h"
#include "core/batch/stats_rank.h"

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

/* Every pair of two sorted samples gives a value, here and below `pair_value`; how many of them are
 * at most `x` takes one walk over both samples, so a value of given rank is found without ever
 * listing the pairs: by bisection over the numbers themselves. */
struct pairs {
	const double *a, *b; /* sorted; b is NULL: averages of two values of a */
	size_t m, n;
};

static double pair_value(const struct pairs *pairs, size_t i, size_t j)
{
	return pairs->b ? pairs->b[j] - pairs->a[i] : (pairs->a[i] + pairs->a[j]) / 2;
}

static size_t pairs_total(const struct pairs *pairs)
{
	return pairs->b ? pairs->m * pairs->n : pairs->m * (pairs->m + 1) / 2;
}

static size_t count_differences(const struct pairs *pairs, double x)
{
	size_t count = 0;
	for (size_t i = 0, j = 0; i < pairs->m; i++) {
		while (j < pairs->n && pair_value(pairs, i, j) <= x)
			j++;
		count += j;
	}
	return count;
}

static size_t count_averages(const struct pairs *pairs, double x)
{
	size_t count = 0;
	for (size_t i = 0, end = pairs->m; i < pairs->m; i++) {
		while (end > 0 && pair_value(pairs, i, end - 1) > x)
			end--;
		if (end <= i)
			break;
		count += end - i;
	}
	return count;
}

/* Doubles in their order as integers, so that a bisection ends after 64 steps, on a value. */
static int64_t order_of(double x)
{
	int64_t bits;
	memcpy(&bits, &x, sizeof(bits));
	return bits < 0 ? INT64_MIN - bits : bits;
}

static double at_order(int64_t order)
{
	int64_t bits = order < 0 ? INT64_MIN - order : order;
	double x;
	memcpy(&x, &bits, sizeof(x));
	return x;
}

/* The value of the pair with this rank, from 1. */
static double ranked_pair(const struct pairs *pairs, size_t rank)
{
	size_t last = pairs->b ? pairs->n - 1 : pairs->m - 1, first = pairs->b ? pairs->m - 1 : 0;
	int64_t low = order_of(pair_value(pairs, first, 0));
	int64_t high = order_of(pair_value(pairs, pairs->b ? 0 : last, last));
	while (low < high) {
		int64_t middle = (low & high) + ((low ^ high) >> 1);
		double x = at_order(middle);
		size_t below = pairs->b ? count_differences(pairs, x) : count_averages(pairs, x);
		if (below >= rank)
			high = middle;
		else
			low = middle + 1;
	}
	return at_order(low);
}

/* The median of all pairs, and the interval of those shifts that the test does not reject. */
static struct ratio shift_ratio(const struct pairs *pairs, size_t outside)
{
	size_t total = pairs_total(pairs);
	double middle = ranked_pair(pairs, (total + 1) / 2);
	if (total % 2 == 0)
		middle = (middle + ranked_pair(pairs, total / 2 + 1)) / 2;
	struct ratio ratio = { .value = exp(middle), .low = 0, .high = INFINITY };
	if (outside > 0) {
		ratio.low = exp(ranked_pair(pairs, outside));
		ratio.high = exp(ranked_pair(pairs, total + 1 - outside));
	}
	return ratio;
}

struct ratio stats_paired_ratio(const double *a, const double *b, size_t n, double confidence)
{
	assert(n > 0);
	AUTO_FREE double *logs = NEW_ARRAY(double, n);
	for (size_t i = 0; i < n; i++)
		logs[i] = log(b[i] / a[i]);
	stats_sort(logs, n);
	const struct pairs averages = { .a = logs, .m = n };
	return shift_ratio(&averages, stats_signed_rank_reject(n, 1 - confidence));
}

struct ratio stats_unpaired_ratio(const double *a, size_t m, const double *b, size_t n,
				  double confidence)
{
	assert(m > 0 && n > 0);
	AUTO_FREE double *log_a = NEW_ARRAY(double, m), *log_b = NEW_ARRAY(double, n);
	for (size_t i = 0; i < m; i++)
		log_a[i] = log(a[i]);
	for (size_t j = 0; j < n; j++)
		log_b[j] = log(b[j]);
	const struct pairs differences = { .a = log_a, .b = log_b, .m = m, .n = n };
	return shift_ratio(&differences, stats_rank_sum_reject(m, n, 1 - confidence));
}
