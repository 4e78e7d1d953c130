#include "core/batch/any_change.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "core/batch/serial.h"
#include "core/batch/stats.h"

/* All from simulation of independent values: the chance is right from 10 to 2,000 of them. */
#define FREE_SCALES 2  /* doublings of the length that cost nothing */
#define SPLITS 2       /* independent splits, a doubling by e */
#define LIGHT_TAILS 10 /* values */
#define WORTH_A_LOOK 4 /* squared standard errors */
#define SHORT_RUN 12   /* values that are sorted by insertion */
#define CLEAN_MAX 32   /* values; with more, a clean split is seen by its size */

struct ranked {
	double value;
	size_t place;
};

static void insert_in_order(struct ranked *items, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct ranked item = items[i];
		size_t k = i;
		for (; k > 0 && items[k - 1].value > item.value; k--)
			items[k] = items[k - 1];
		items[k] = item;
	}
}

static void merge_halves(const struct ranked *from, size_t half, size_t n, struct ranked *to)
{
	size_t left = 0, right = half;
	for (size_t i = 0; i < n; i++) {
		bool take_left =
			right == n || (left < half && from[left].value <= from[right].value);
		to[i] = from[take_left ? left++ : right++];
	}
}

/* qsort() would call a function for every comparison. Returns where the sorted items are: one of
 * the two arrays. */
static const struct ranked *sort_ranked(struct ranked *items, struct ranked *room, size_t n)
{
	for (size_t at = 0; at < n; at += SHORT_RUN)
		insert_in_order(items + at, MIN((size_t)SHORT_RUN, n - at));
	for (size_t run = SHORT_RUN; run < n; run *= 2) {
		for (size_t at = 0; at < n; at += 2 * run)
			merge_halves(items + at, MIN(run, n - at), MIN(2 * run, n - at), room + at);
		struct ranked *old = items;
		items = room;
		room = old;
	}
	return items;
}

void any_change_table_done(struct any_change_table *table)
{
	free(table->quantiles);
	*table = ANY_CHANGE_TABLE_INIT;
}

static void table_fit(struct any_change_table *table, size_t n)
{
	if (table->n == n)
		return;
	any_change_table_done(table);
	*table = (struct any_change_table){ NEW_ARRAY(double, 2 * n), n };
	for (size_t i = 0; i < 2 * n; i++)
		table->quantiles[i] = NAN;
}

static double table_quantile(struct any_change_table *table, size_t k)
{
	if (k == table->n) /* the middle: equal values have nothing that scaling could make large */
		return 0;
	if (isnan(table->quantiles[k]))
		table->quantiles[k] = stats_normal_quantile((double)k / (2 * (double)table->n));
	return table->quantiles[k];
}

void any_change_scores(const double *values, size_t n, struct any_change_table *table,
		       double *ret_scores, double *ret_sorted)
{
	AUTO_FREE struct ranked *room = NEW_ARRAY(struct ranked, 2 * n);
	for (size_t i = 0; i < n; i++)
		room[i] = (struct ranked){ values[i], i };
	const struct ranked *ranked = sort_ranked(room, room + n, n);
	table_fit(table, n);
	double squares = 0;
	for (size_t from = 0, to; from < n; from = to) {
		for (to = from + 1; to < n && ranked[to].value == ranked[from].value;)
			to++;
		double score = table_quantile(table, from + to);
		for (size_t i = from; i < to; i++) {
			ret_scores[ranked[i].place] = score;
			ret_sorted[i] = ranked[i].value;
		}
		squares += score * score * (double)(to - from);
	}
	double scale = squares > 0 ? sqrt((double)n / squares) : 0;
	for (size_t i = 0; i < n; i++)
		ret_scores[i] *= scale;
}

/* The largest sum of a stretch of this length, whichever its sign. */
static double largest_sum(const double *sums, size_t n, size_t length)
{
	double largest = 0;
	for (size_t i = length; i <= n; i++)
		largest = MAX(largest, fabs(sums[i] - sums[i - length]));
	return largest;
}

/* The chance that any of so many stretches reaches `z`: Gaussian sums cross a high level about z^2
 * times as often as independent ones. */
static double search_p(double z, double stretches)
{
	return 2 * stretches * (1 + z * z) * stats_normal_tail(z);
}

/* A series that falls into two parts without overlap at `split`: the chance of that, or of another
 * such split that is as rare. */
static double clean_split_p(size_t n, size_t split)
{
	double log_ways = 0, p = 0;
	if (split < 1 || split >= n)
		return 1;
	for (size_t i = 1; i <= MIN(split, n - split); i++)
		log_ways += log((double)(n + 1 - i) / (double)i);
	double own = log_ways;
	for (size_t i = MIN(split, n - split); i <= n / 2; i++) {
		p += (2 * i == n ? 2 : 4) * exp(-own);
		own += log((double)(n - i) / (double)(i + 1));
	}
	return p;
}

/* The place of the only split without overlap that matters, the most even one; 0: there is none. */
static size_t clean_split(const double *scores, size_t n)
{
	AUTO_FREE double *least = NEW_ARRAY(double, n), *most = NEW_ARRAY(double, n);
	size_t split = 0;
	double low = INFINITY, high = -INFINITY;
	for (size_t i = n; i-- > 0;) {
		least[i] = low = MIN(low, scores[i]);
		most[i] = high = MAX(high, scores[i]);
	}
	low = INFINITY, high = -INFINITY;
	for (size_t i = 1; i < n; i++) {
		low = MIN(low, scores[i - 1]);
		high = MAX(high, scores[i - 1]);
		if ((high < least[i] || low > most[i]) && MIN(i, n - i) > MIN(split, n - split))
			split = i;
	}
	return split;
}

/* Stretches of many lengths against all else. */
static double stretches_p(const double *sums, size_t n, double known, double correlation)
{
	double count = (double)n, scales = MAX(1.0, log2(count) - FREE_SCALES), p = 1;
	for (double step = 2; step <= count / 2; step = MAX(step * M_SQRT2, step + 1)) {
		double length = floor(step);
		double error = sqrt(length * (count - length) / (count * known) *
				    serial_inflation(correlation, length));
		double z = largest_sum(sums, n, (size_t)length) / error;
		p = MIN(p, search_p(z, scales * count / length));
	}
	return p;
}

/* All that comes before a value against all that follows. */
static double split_p(const double *sums, size_t n, double known, double correlation)
{
	double count = (double)n, p = 1;
	for (size_t i = 1; i < n; i++) {
		double length = MIN((double)i, count - (double)i);
		double square = length * (count - length) / (count * known);
		if (sums[i] * sums[i] < WORTH_A_LOOK * square)
			continue;
		double z = fabs(sums[i]) / sqrt(square * serial_inflation(correlation, length));
		p = MIN(p, search_p(z, SPLITS * log(count)));
	}
	return p;
}

/* Sums of the first i scores, from their mean, and the share of the variance that is seen. */
static double *prefix_sums(const double *scores, size_t n)
{
	double *sums = NEW_ARRAY(double, n + 1), middle = stats_mean(scores, n);
	sums[0] = 0;
	for (size_t i = 0; i < n; i++)
		sums[i + 1] = sums[i] + scores[i] - middle;
	return sums;
}

static double seen_share(double count, double correlation)
{
	return MAX(count - serial_inflation(correlation, count), 1.0) / count;
}

/* The tails of ranks are lighter than normal ones, the more so the fewer there are. */
static double light_tail(double p, double count)
{
	return exp((1 + LIGHT_TAILS / count) * log(p));
}

double any_change_split_p(const double *scores, size_t n, double correlation)
{
	AUTO_FREE double *sums = prefix_sums(scores, n);
	double count = (double)n;
	return light_tail(split_p(sums, n, seen_share(count, correlation), correlation), count);
}

double any_change_p(const double *scores, size_t n, double correlation)
{
	AUTO_FREE double *sums = prefix_sums(scores, n);
	double count = (double)n, known = seen_share(count, correlation);
	double p = light_tail(MIN(stretches_p(sums, n, known, correlation),
				  split_p(sums, n, known, correlation)),
			      count);
	if (n > CLEAN_MAX)
		return p;
	double worth = 1 / serial_inflation(correlation, count);
	size_t split = clean_split(scores, n);
	double side = (double)MIN(split, n - split); /* the same from both ends */
	return MIN(p, clean_split_p((size_t)(count * worth), (size_t)(side * worth)));
}
