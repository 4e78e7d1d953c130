/* Rank tests: is there a difference at all? They assume nothing about the shape of the noise.
 *
 * Ties get middle ranks, and the exact distributions are those of the tied ranks actually seen, so
 * an exact p-value is exact with ties too. All p-values are two-sided: twice the smaller tail, at
 * most 1. */
#ifndef CORE_BATCH_STATS_RANK_H
#define CORE_BATCH_STATS_RANK_H

#include "base/util.h"

struct rank_test {
	/* signed rank: sum of the positive ranks; rank sum: U of the first sample */
	double statistic;
	double p;
	bool exact; /* false: normal approximation with tie and continuity correction */
};

/* Wilcoxon signed-rank over paired differences, without the zeros. Exact up to
 * STATS_SIGNED_EXACT_MAX differences that are not zero; p is 1 when there are none. */
#define STATS_SIGNED_EXACT_MAX 50
struct rank_test stats_signed_rank(const double *differences, size_t n);

/* Mann-Whitney U of two independent samples, both sorted and not empty. Exact up to 2,500 = m * n
 * without ties (50 a side), and about 20 a side with them. */
struct rank_test stats_rank_sum(const double *a_sorted, size_t m, const double *b_sorted, size_t n);

/* The smallest p that either test can give for this many values. */
double stats_signed_rank_min_p(size_t n);
double stats_rank_sum_min_p(size_t m, size_t n);

/* How many of the smallest values of the statistic the test rejects at `alpha`, two-sided and
 * without ties: P(statistic < that many) <= alpha / 2. 0: the samples are too small to reject
 * anything. Exact and approximate for the same sizes as the tests. */
size_t stats_signed_rank_reject(size_t n, double alpha);
size_t stats_rank_sum_reject(size_t m, size_t n, double alpha);

/* Benjamini-Hochberg: turns p-values into q-values in `ret_q` (may be `p` itself). An order with q
 * <= alpha is a discovery, of which at most the share alpha is expected to be false. A NaN means
 * that there was no test: it stays NaN and does not count. */
void stats_benjamini_hochberg(const double *p, size_t n, double *ret_q);

#endif
