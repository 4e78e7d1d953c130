#include "core/batch/levels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/batch/stats.h"

#define MIN_PRICE 6 /* of a cut, in squared noise */
#define PRICE_LOG 2 /* and so many logarithms of the length */

void levels_init(struct levels *levels, const double *values, size_t n)
{
	*levels = (struct levels){ .n = n, .count = 1 };
	levels->values = NEW_ARRAY(double, n);
	levels->sums = NEW_ARRAY(double, n + 1);
	levels->squares = NEW_ARRAY(double, n + 1);
	levels->cuts = NEW_ARRAY(size_t, n + 1);
	levels->cuts[0] = 0;
	levels->cuts[1] = n;
	/* Sums of squares lose digits when the mean is large beside the spread. */
	double middle = stats_mean(values, n);
	levels->sums[0] = levels->squares[0] = 0;
	for (size_t i = 0; i < n; i++) {
		double value = levels->values[i] = values[i] - middle;
		levels->sums[i + 1] = levels->sums[i] + value;
		levels->squares[i + 1] = levels->squares[i] + value * value;
	}
}

void levels_done(struct levels *levels)
{
	free(levels->values);
	free(levels->sums);
	free(levels->squares);
	free(levels->cuts);
	*levels = LEVELS_INIT;
}

double levels_mean(const struct levels *levels, size_t from, size_t to)
{
	return (levels->sums[to] - levels->sums[from]) / (double)(to - from);
}

double levels_deviation(const struct levels *levels, size_t from, size_t to)
{
	double sum = levels->sums[to] - levels->sums[from];
	double deviation =
		levels->squares[to] - levels->squares[from] - sum * sum / (double)(to - from);
	return MAX(deviation, 0.0);
}

double levels_price(size_t n)
{
	return MAX((double)MIN_PRICE, PRICE_LOG * log((double)n));
}

/* Noise from the differences of neighbours: their median, which changes of level hardly touch.
 * Where most differences are zero (counts, or a coarse clock), their mean square, which knows how
 * often the series jumps. */
static double neighbour_noise(const struct levels *levels, double fine)
{
	size_t count = levels->n - 1;
	AUTO_FREE double *steps = NEW_ARRAY(double, levels->n);
	double squares = 0;
	for (size_t i = 0; i < count; i++) {
		steps[i] = fabs(levels->values[i + 1] - levels->values[i]);
		squares += steps[i] * steps[i];
	}
	stats_sort(steps, count);
	double noise = stats_median(steps, count) / (STATS_NORMAL_MAD * M_SQRT2);
	if (!(noise > fine))
		noise = sqrt(squares / (2 * (double)count));
	return MAX(noise, fine);
}

/* best[t]: the price of the best cuts of the first t values; last[t]: where its last level begins.
 *
 * A start s of the last level costs best[s], and a parabola over the mean that this level may have.
 * For each mean one start is the cheapest, now and for ever: both costs grow alike with the values
 * that follow. So the means fall into ranges, each with its start, and a start without a range can
 * never win: only a few are left, however long the series is. */
struct range {
	double low, high; /* of means */
	size_t start;
};

struct table {
	double *best;
	size_t *last;
	struct range *ranges, *next; /* ascending; next: room for those of the next step */
	size_t count;
	double unit, price;
};

static void table_done(struct table *table)
{
	free(table->best);
	free(table->last);
	free(table->ranges);
	free(table->next);
}

static void table_init(struct table *table, size_t n)
{
	/* A start splits a range into three at most, and no two starts meet twice. */
	*table = (struct table){ .best = NEW_ARRAY(double, n + 1),
				 .last = NEW_ARRAY(size_t, n + 1),
				 .ranges = NEW_ARRAY(struct range, 2 * n + 3),
				 .next = NEW_ARRAY(struct range, 2 * n + 3) };
}

static void add_range(struct table *table, size_t *count, double low, double high, size_t start)
{
	if (!(low < high))
		return;
	if (*count && table->next[*count - 1].start == start)
		table->next[*count - 1].high = high;
	else
		table->next[(*count)++] = (struct range){ low, high, start };
}

/* A level that begins at `t` is open to any mean at the same price: it takes the means for which
 * all others are dearer. */
static void add_start(struct table *table, const struct levels *levels, size_t t)
{
	size_t count = 0;
	for (size_t i = 0; i < table->count; i++) {
		struct range range = table->ranges[i];
		double length = (double)(t - range.start);
		double mean = levels_mean(levels, range.start, t);
		double least = table->best[range.start] +
			       levels_deviation(levels, range.start, t) * table->unit;
		double spare = (table->best[t] - least) / (table->unit * length);
		double reach = spare > 0 ? sqrt(spare) : -1;
		double low = MAX(range.low, mean - reach), high = MIN(range.high, mean + reach);
		if (low < high) {
			add_range(table, &count, range.low, low, t);
			add_range(table, &count, low, high, range.start);
			add_range(table, &count, high, range.high, t);
		} else {
			add_range(table, &count, range.low, range.high, t);
		}
	}
	struct range *old = table->ranges;
	table->ranges = table->next;
	table->next = old;
	table->count = count;
}

/* The cheapest of the starts that are left; of equal ones the first. */
static void choose_start(struct table *table, const struct levels *levels, size_t t)
{
	table->best[t] = INFINITY;
	for (size_t i = 0; i < table->count; i++) {
		size_t from = table->ranges[i].start;
		double own = table->best[from] + levels_deviation(levels, from, t) * table->unit +
			     table->price;
		if (own < table->best[t] || (own == table->best[t] && from < table->last[t])) {
			table->best[t] = own;
			table->last[t] = from;
		}
	}
}

void levels_cut(struct levels *levels, double fine)
{
	AUTO(table_done) struct table table = { .count = 0 };
	size_t n = levels->n;
	if (n < 2)
		return;
	table_init(&table, n);
	double noise = neighbour_noise(levels, fine);
	table.unit = 1 / (noise * noise);
	table.price = levels_price(n);
	table.best[0] = -table.price;
	table.ranges[table.count++] = (struct range){ -INFINITY, INFINITY, 0 };
	for (size_t t = 1; t <= n; t++) {
		choose_start(&table, levels, t);
		add_start(&table, levels, t);
	}
	levels->count = 0;
	for (size_t t = n; t > 0; t = table.last[t])
		levels->count++;
	levels->cuts[levels->count] = n;
	for (size_t t = n, level = levels->count; t > 0; t = table.last[t])
		levels->cuts[--level] = table.last[t];
}

void levels_join(struct levels *levels, size_t i)
{
	assert(i >= 1 && i < levels->count);
	memmove(levels->cuts + i, levels->cuts + i + 1,
		(levels->count - i) * sizeof(*levels->cuts));
	levels->count--;
}

void levels_join_all(struct levels *levels)
{
	levels->cuts[1] = levels->n;
	levels->count = 1;
}

void levels_move(struct levels *levels)
{
	for (size_t i = 1; i < levels->count; i++) {
		size_t from = levels->cuts[i - 1], to = levels->cuts[i + 1];
		double least = INFINITY;
		for (size_t at = from + 1; at < to; at++) {
			double deviation = levels_deviation(levels, from, at) +
					   levels_deviation(levels, at, to);
			if (deviation < least) {
				least = deviation;
				levels->cuts[i] = at;
			}
		}
	}
}
