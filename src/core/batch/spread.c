#include "core/batch/spread.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "core/batch/serial.h"
#include "core/batch/stats.h"

/* A longer distance, in medians, counts as this: one outlier must not decide where noise changes.
 */
#define DISTANCE_LIMIT 6
#define SAME_EVENT 8 /* log likelihood, twice */

struct search {
	const double *sizes; /* distances without signs, limited */
	double *squares;     /* sums of the first i */
	const size_t *cuts;  /* where the level changes */
	size_t cut_count;
	double alpha;
	struct any_change_table *table;
};

/* How badly two normal noises fit, one up to `at` and one after it. */
static double misfit(const struct search *search, size_t from, size_t at, size_t to)
{
	double left = (search->squares[at] - search->squares[from]) / (double)(at - from);
	double right = (search->squares[to] - search->squares[at]) / (double)(to - at);
	return (double)(at - from) * log(left) + (double)(to - at) * log(right);
}

/* Where two noises fit best; a change of level where they fit about as well is the same event. */
static size_t best_split(const struct search *search, size_t from, size_t to)
{
	size_t best = 0;
	double least = INFINITY, near = INFINITY;
	for (size_t at = from + SPREAD_MIN_VALUES; at + SPREAD_MIN_VALUES <= to; at++) {
		double own = misfit(search, from, at, to);
		if (own < least) {
			least = own;
			best = at;
		}
	}
	size_t split = best;
	for (size_t i = 0; i < search->cut_count; i++) {
		size_t at = search->cuts[i];
		if (at < from + SPREAD_MIN_VALUES || at + SPREAD_MIN_VALUES > to)
			continue;
		double own = misfit(search, from, at, to);
		if (own < near && own < least + SAME_EVENT) {
			near = own;
			split = at;
		}
	}
	return split;
}

static double deviation(const struct search *search, size_t from, size_t to)
{
	return sqrt((search->squares[to] - search->squares[from]) / (double)(to - from));
}

/* The correlation of neighbours on the two sides of a split: across it, the change itself would
 * count. */
static double correlation_apart(const double *scores, size_t n, size_t split)
{
	AUTO_FREE double *rest = NEW_ARRAY(double, n);
	double left = stats_mean(scores, split), right = stats_mean(scores + split, n - split);
	double waves;
	for (size_t i = 0; i < n; i++)
		rest[i] = scores[i] - (i < split ? left : right);
	return serial_correlation(rest, n, &waves);
}

static void search_between(const struct search *search, size_t from, size_t to,
			   struct spreads *spreads)
{
	size_t n = to - from;
	if (n < 2 * SPREAD_MIN_VALUES)
		return;
	AUTO_FREE double *scores = NEW_ARRAY(double, 2 * n);
	any_change_scores(search->sizes + from, n, search->table, scores, scores + n);
	if (!(any_change_split_p(scores, n, 0) <= search->alpha))
		return;
	size_t at = best_split(search, from, to);
	double p = any_change_split_p(scores, n, correlation_apart(scores, n, at - from));
	if (!(p <= search->alpha))
		return;
	double before = deviation(search, from, at), after = deviation(search, at, to);
	if (MAX(before, after) < SPREAD_MIN_RATIO * MIN(before, after))
		return;
	search_between(search, from, at, spreads);
	ARRAY_RESERVE(spreads->items, spreads->count, spreads->cap);
	spreads->items[spreads->count++] = (struct spread){ at, before, after, p };
	search_between(search, at, to, spreads);
}

void spread_find(const double *distances, size_t n, const size_t *cuts, size_t cut_count,
		 double alpha, struct any_change_table *table, struct spreads *spreads)
{
	if (n < 2 * SPREAD_MIN_VALUES)
		return;
	AUTO_FREE double *sizes = NEW_ARRAY(double, n);
	AUTO_FREE double *squares = NEW_ARRAY(double, n + 1);
	for (size_t i = 0; i < n; i++)
		sizes[i] = squares[i] = fabs(distances[i]);
	stats_sort(squares, n);
	double limit = DISTANCE_LIMIT * stats_median(squares, n);
	if (!(limit > 0))
		return; /* counts: nothing to speak of */
	squares[0] = 0;
	for (size_t i = 0; i < n; i++) {
		sizes[i] = MIN(sizes[i], limit);
		squares[i + 1] = squares[i] + sizes[i] * sizes[i] + DBL_MIN;
	}
	struct search search = { sizes, squares, cuts, cut_count, alpha, table };
	search_between(&search, 0, n, spreads);
}
