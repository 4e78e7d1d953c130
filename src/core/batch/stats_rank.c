/* Ranks are kept doubled throughout, so that middle ranks of ties are whole numbers. */
#include "core/batch/stats_rank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/batch/stats.h"

#define RANK_SUM_EXACT_PAIRS 2500    /* m * n without ties */
#define RANK_SUM_EXACT_CELLS 1500000 /* steps of the table with ties: a millisecond */

static double two_sided(double lower, double upper)
{
	return MIN(1.0, 2 * MIN(lower, upper));
}

/* ---- signed rank ---- */

struct magnitude {
	double size;
	bool positive;
};

static int compare_magnitudes(const void *a, const void *b)
{
	double x = ((const struct magnitude *)a)->size, y = ((const struct magnitude *)b)->size;
	return (x > y) - (x < y);
}

/* In how many ways subsets of `ranks` give each sum up to their total. */
static double *subset_ways(const uint32_t *ranks, size_t n, size_t *ret_total)
{
	size_t total = 0;
	for (size_t i = 0; i < n; i++)
		total += ranks[i];
	double *ways = mem_alloc((total + 1) * sizeof(double));
	ways[0] = 1;
	size_t reached = 0;
	for (size_t i = 0; i < n; i++) {
		for (size_t sum = reached + 1; sum-- > 0;)
			ways[sum + ranks[i]] += ways[sum];
		reached += ranks[i];
	}
	*ret_total = total;
	return ways;
}

/* Both tails of the sum of a random subset of `ranks`, every subset equally likely. */
static double subset_sum_p(const uint32_t *ranks, size_t n, size_t observed)
{
	size_t total;
	AUTO_FREE double *ways = subset_ways(ranks, n, &total);
	double lower = 0, upper = 0;
	for (size_t sum = 0; sum <= observed; sum++)
		lower += ways[sum];
	for (size_t sum = observed; sum <= total; sum++)
		upper += ways[sum];
	double all = ldexp(1, (int)n);
	return two_sided(lower / all, upper / all);
}

/* How many of the first values are together no more likely than alpha / 2. */
static size_t rare_values(const double *ways, size_t count, double all, double alpha)
{
	size_t rare = 0;
	double sum = 0;
	while (rare < count && (sum += ways[rare]) <= all * alpha / 2)
		rare++;
	return rare;
}

/* The same where the statistic is close to normal; half a step is the continuity correction. */
static size_t rare_values_normal(double mean, double deviation, double alpha)
{
	double last = mean - 0.5 + stats_normal_quantile(alpha / 2) * deviation;
	return last < 0 ? 0 : (size_t)last + 1;
}

size_t stats_signed_rank_reject(size_t n, double alpha)
{
	double count = (double)n;
	if (n > STATS_SIGNED_EXACT_MAX)
		return rare_values_normal(count * (count + 1) / 4,
					  sqrt(count * (count + 1) * (2 * count + 1) / 24), alpha);
	uint32_t ranks[STATS_SIGNED_EXACT_MAX];
	for (size_t i = 0; i < n; i++)
		ranks[i] = (uint32_t)i + 1;
	size_t total;
	AUTO_FREE double *ways = subset_ways(ranks, n, &total);
	return rare_values(ways, total, ldexp(1, (int)n), alpha);
}

static double signed_rank_normal_p(size_t n, double statistic, double tie_term)
{
	double count = (double)n;
	double mean = count * (count + 1) / 4;
	double variance = count * (count + 1) * (2 * count + 1) / 24 - tie_term / 48;
	double distance = MAX(fabs(statistic - mean) - 0.5, 0.0);
	return MIN(1.0, 2 * stats_normal_tail(distance / sqrt(variance)));
}

struct rank_test stats_signed_rank(const double *differences, size_t n)
{
	AUTO_FREE struct magnitude *sizes = NEW_ARRAY(struct magnitude, n + 1);
	AUTO_FREE uint32_t *ranks = NEW_ARRAY(uint32_t, n + 1);
	size_t used = 0;
	for (size_t i = 0; i < n; i++)
		if (differences[i] != 0)
			sizes[used++] =
				(struct magnitude){ fabs(differences[i]), differences[i] > 0 };
	if (used == 0)
		return (struct rank_test){ .statistic = 0, .p = 1, .exact = true };
	qsort(sizes, used, sizeof(*sizes), compare_magnitudes);

	size_t positive = 0;
	double tie_term = 0;
	for (size_t first = 0, end; first < used; first = end) {
		end = first + 1;
		while (end < used && sizes[end].size == sizes[first].size)
			end++;
		double ties = (double)(end - first);
		tie_term += ties * (ties * ties - 1);
		for (size_t i = first; i < end; i++) {
			ranks[i] = (uint32_t)(first + end + 1);
			positive += sizes[i].positive ? ranks[i] : 0;
		}
	}
	struct rank_test test = { .statistic = (double)positive / 2,
				  .exact = used <= STATS_SIGNED_EXACT_MAX };
	test.p = test.exact ? subset_sum_p(ranks, used, positive)
			    : signed_rank_normal_p(used, test.statistic, tie_term);
	return test;
}

double stats_signed_rank_min_p(size_t n)
{
	return n == 0 ? 1 : MIN(1.0, ldexp(2, -(int)MIN(n, (size_t)1000)));
}

/* ---- rank sum ---- */

/* Both samples merged: the doubled rank sum of the first, and the sizes of the groups of ties. */
struct merged {
	size_t rank_sum;
	size_t group_count;
	double tie_term;
	uint32_t *groups; /* how many values share each place */
};

static void merge(const double *a, size_t m, const double *b, size_t n, struct merged *merged)
{
	size_t i = 0, j = 0;
	while (i < m || j < n) {
		double value = j >= n || (i < m && a[i] <= b[j]) ? a[i] : b[j];
		size_t first = i + j, from_a = i;
		while (i < m && a[i] == value)
			i++;
		while (j < n && b[j] == value)
			j++;
		size_t ties = i + j - first;
		merged->rank_sum += (i - from_a) * (2 * first + ties + 1);
		merged->tie_term += (double)ties * ((double)ties * (double)ties - 1);
		merged->groups[merged->group_count++] = (uint32_t)ties;
	}
}

/* In how many ways U takes each value up to `u` without ties, and in how many any value. The counts
 * are the coefficients of the Gaussian binomial (m + n over m): a product of
 * (1 - q^(n+i)) / (1 - q^i), each factor one pass over the array. */
static double *untied_ways(size_t m, size_t n, size_t u, double *ret_all)
{
	double *ways = mem_alloc((u + 1) * sizeof(double));
	ways[0] = 1;
	double all = 1;
	for (size_t i = 1; i <= m; i++) {
		for (size_t k = u; k >= n + i; k--)
			ways[k] -= ways[k - n - i];
		for (size_t k = i; k <= u; k++)
			ways[k] += ways[k - i];
		all *= (double)(n + i) / (double)i;
	}
	*ret_all = all;
	return ways;
}

/* P(U <= u) without ties. */
static double untied_lower_tail(size_t m, size_t n, size_t u)
{
	double all, sum = 0;
	AUTO_FREE double *ways = untied_ways(m, n, u, &all);
	for (size_t k = 0; k <= u; k++)
		sum += ways[k];
	return sum / all;
}

size_t stats_rank_sum_reject(size_t m, size_t n, double alpha)
{
	double pairs = (double)m * (double)n;
	if (m * n > RANK_SUM_EXACT_PAIRS)
		return rare_values_normal(pairs / 2, sqrt(pairs * (double)(m + n + 1) / 12), alpha);
	double all;
	AUTO_FREE double *ways = untied_ways(m, n, m * n / 2, &all);
	return rare_values(ways, m * n / 2, all, alpha);
}

static double choose(size_t n, size_t k)
{
	double ways = 1;
	for (size_t i = 1; i <= k; i++)
		ways *= (double)(n - k + i) / (double)i;
	return ways;
}

/* P(sum <= observed) and P(sum >= observed) for the doubled ranks of `m` values drawn from the
 * tied ranks: ways[k][s] counts the draws of k values that sum to s, one group of ties at a time.
 */
static double tied_p(const struct merged *merged, size_t m, size_t n, size_t observed)
{
	size_t width =
		m * (2 * (m + n) - m + 1) + 1; /* the m largest ranks, untied: an upper bound */
	AUTO_FREE double *ways = mem_alloc((m + 1) * width * sizeof(double));
	ways[0] = 1;
	size_t first = 0;
	for (size_t g = 0; g < merged->group_count; g++) {
		size_t ties = merged->groups[g];
		size_t rank = 2 * first + ties + 1;
		for (size_t k = MIN(m, first + ties); k > 0; k--) {
			for (size_t take = 1; take <= MIN(ties, k); take++) {
				double *to = ways + k * width + take * rank;
				const double *from = ways + (k - take) * width;
				double times = choose(ties, take);
				size_t reach = width - take * rank;
				for (size_t s = 0; take * rank < width && s < reach; s++)
					to[s] += times * from[s];
			}
		}
		first += ties;
	}
	double lower = 0, upper = 0, all = choose(m + n, m);
	for (size_t s = 0; s < width; s++) {
		lower += s <= observed ? ways[m * width + s] : 0;
		upper += s >= observed ? ways[m * width + s] : 0;
	}
	return two_sided(lower / all, upper / all);
}

static double rank_sum_normal_p(size_t m, size_t n, double u, double tie_term)
{
	double a = (double)m, b = (double)n, all = a + b;
	double variance = a * b / 12 * (all + 1 - tie_term / (all * (all - 1)));
	if (variance <= 0)
		return 1;
	double distance = MAX(fabs(u - a * b / 2) - 0.5, 0.0);
	return MIN(1.0, 2 * stats_normal_tail(distance / sqrt(variance)));
}

struct rank_test stats_rank_sum(const double *a, size_t m, const double *b, size_t n)
{
	assert(m > 0 && n > 0);
	AUTO_FREE uint32_t *groups = NEW_ARRAY(uint32_t, m + n);
	struct merged merged = { .groups = groups };
	merge(a, m, b, n, &merged);
	bool tied = merged.group_count < m + n;
	size_t doubled_u = merged.rank_sum - m * (m + 1);
	struct rank_test test = { .statistic = (double)doubled_u / 2, .exact = true };

	if (!tied && m * n <= RANK_SUM_EXACT_PAIRS) {
		size_t u = doubled_u / 2;
		test.p = MIN(1.0, 2 * untied_lower_tail(m, n, MIN(u, m * n - u)));
		return test;
	}
	/* The table is as deep as the smaller sample, so that is the one whose sum is followed. */
	size_t few = MIN(m, n), all = m + n;
	size_t sum = m <= n ? merged.rank_sum : all * (all + 1) - merged.rank_sum;
	if (tied && all * few * few * (2 * all - few + 1) / 2 <= RANK_SUM_EXACT_CELLS) {
		test.p = tied_p(&merged, few, all - few, sum);
		return test;
	}
	test.exact = false;
	test.p = rank_sum_normal_p(m, n, test.statistic, merged.tie_term);
	return test;
}

double stats_rank_sum_min_p(size_t m, size_t n)
{
	return m == 0 || n == 0 ? 1 : MIN(1.0, 2 / choose(m + n, MIN(m, n)));
}

/* ---- Benjamini-Hochberg ---- */

struct ranked_p {
	double p;
	size_t index;
};

static int compare_ranked(const void *a, const void *b)
{
	double x = ((const struct ranked_p *)a)->p, y = ((const struct ranked_p *)b)->p;
	return (x > y) - (x < y);
}

void stats_benjamini_hochberg(const double *p, size_t n, double *ret_q)
{
	AUTO_FREE struct ranked_p *ranked = NEW_ARRAY(struct ranked_p, n + 1);
	size_t tests = 0;
	for (size_t i = 0; i < n; i++) {
		if (isnan(p[i]))
			ret_q[i] = NAN;
		else
			ranked[tests++] = (struct ranked_p){ p[i], i };
	}
	qsort(ranked, tests, sizeof(*ranked), compare_ranked);
	double q = 1;
	for (size_t rank = tests; rank > 0; rank--) {
		q = MIN(q, ranked[rank - 1].p * (double)tests / (double)rank);
		ret_q[ranked[rank - 1].index] = q;
	}
}
