/* Answers questions about samples so that a test can ask SciPy the same ones.
 *
 * A line is "OP X M N a1..aM b1..bN" (X: a quantile or a confidence, where the operation has one);
 * the answer is one line of numbers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/batch/stats.h"
#include "core/batch/stats_interval.h"
#include "core/batch/stats_rank.h"

struct question {
	char op[16];
	double x;
	size_t m, n;
	double *a, *b;
};

static void describe(const struct question *q)
{
	printf("%.17g %.17g %.17g %.17g %.17g\n", stats_mean(q->a, q->m), stats_median(q->a, q->m),
	       stats_quantile(q->a, q->m, q->x), stats_mad(q->a, q->m), stats_stddev(q->a, q->m));
}

static void normal(const struct question *q)
{
	printf("%.17g %.17g\n", stats_normal_quantile(q->x), stats_normal_tail(q->a[0]));
}

static void median_interval(const struct question *q)
{
	double low = NAN, high = NAN;
	stats_median_interval(q->a, q->m, q->x, &low, &high);
	printf("%.17g %.17g\n", low, high);
}

static void print_ratio(struct ratio ratio)
{
	printf("%.17g %.17g %.17g\n", ratio.value, ratio.low, ratio.high);
}

static void print_test(struct rank_test test)
{
	printf("%.17g %.17g %d\n", test.statistic, test.p, test.exact);
}

static void adjust(const struct question *q)
{
	stats_benjamini_hochberg(q->a, q->m, q->a);
	for (size_t i = 0; i < q->m; i++)
		printf("%.17g ", q->a[i]);
	printf("\n");
}

static void answer(struct question *q)
{
	if (!strcmp(q->op, "bh"))
		return adjust(q);
	if (!strcmp(q->op, "signed"))
		return print_test(stats_signed_rank(q->a, q->m));
	if (!strcmp(q->op, "paired"))
		return print_ratio(stats_paired_ratio(q->a, q->b, q->m, q->x));
	stats_sort(q->a, q->m);
	stats_sort(q->b, q->n);
	if (!strcmp(q->op, "describe"))
		return describe(q);
	if (!strcmp(q->op, "normal"))
		return normal(q);
	if (!strcmp(q->op, "interval"))
		return median_interval(q);
	if (!strcmp(q->op, "ratio"))
		return print_ratio(stats_unpaired_ratio(q->a, q->m, q->b, q->n, q->x));
	if (!strcmp(q->op, "ranksum"))
		return print_test(stats_rank_sum(q->a, q->m, q->b, q->n));
	exit(2);
}

static void read_values(double *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (scanf("%lf", &values[i]) != 1)
			exit(2);
}

int main(void)
{
	struct question q;
	while (scanf("%15s %lf %zu %zu", q.op, &q.x, &q.m, &q.n) == 4) {
		q.a = NEW_ARRAY(double, q.m + 1);
		q.b = NEW_ARRAY(double, q.n + 1);
		read_values(q.a, q.m);
		read_values(q.b, q.n);
		answer(&q);
		free(q.a);
		free(q.b);
	}
	return 0;
}
