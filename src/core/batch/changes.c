#include "core/batch/changes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/batch/stats.h"
#include "core/batch/student.h"

#define NORMAL_MAD 0.6744897501960817 /* median of |Z| */
#define NOISE_FLOOR 1e-9	      /* relative; what arithmetic itself does */
#define MIN_PRICE 6		      /* of a cut, in squared noise */
#define PRICE_LOG 2		      /* and so many logarithms of the length */
#define SEARCH_FACTOR 2		      /* places a cut could have had, a value; from simulation */
#define FINE_NOISE 4		      /* noise this many times below what matters is not resolved */
#define CORRELATION_Z 1.5	      /* standard errors from which it counts */
#define CORRELATION_MAX 0.9
#define SHORT_LEVEL 4 /* values; so few must stand out from all others */
#define LOCAL_DF 8    /* degrees of freedom from which neighbours know the noise */

struct work {
	const struct change_rule *rule;
	size_t n;
	double *logs;
	double *sums, *squares; /* of the first i logarithms, from their mean */
	size_t *cuts;		/* first value of every level; cuts[0] = 0, cuts[levels] = n */
	size_t levels;
	double correlation; /* of neighbours within the levels; 0 or more */
	double dropped[2];  /* the farthest that outliers were below and above their level */
};

static void work_done(struct work *work)
{
	free(work->logs);
	free(work->sums);
	free(work->squares);
	free(work->cuts);
}

static double level_mean(const struct work *work, size_t from, size_t to)
{
	return (work->sums[to] - work->sums[from]) / (double)(to - from);
}

/* Sum of squared deviations from the mean of a stretch. */
static double level_deviation(const struct work *work, size_t from, size_t to)
{
	double sum = work->sums[to] - work->sums[from];
	double deviation =
		work->squares[to] - work->squares[from] - sum * sum / (double)(to - from);
	return MAX(deviation, 0.0);
}

static void work_init(struct work *work, const double *values, size_t n)
{
	work->n = n;
	work->logs = NEW_ARRAY(double, n);
	work->sums = NEW_ARRAY(double, n + 1);
	work->squares = NEW_ARRAY(double, n + 1);
	work->cuts = NEW_ARRAY(size_t, n + 1);
	for (size_t i = 0; i < n; i++)
		work->logs[i] = log(values[i]);
	/* Sums of squares lose digits when the mean is large beside the spread. */
	double middle = stats_mean(work->logs, n);
	work->sums[0] = work->squares[0] = 0;
	for (size_t i = 0; i < n; i++) {
		work->logs[i] -= middle;
		work->sums[i + 1] = work->sums[i] + work->logs[i];
		work->squares[i + 1] = work->squares[i] + work->logs[i] * work->logs[i];
	}
}

/* Noise from the differences of neighbours: their median, which changes of level hardly touch.
 * Where most differences are zero (counts, or a coarse clock), their mean square, which knows how
 * often the series jumps. */
static double neighbour_noise(const struct work *work)
{
	AUTO_FREE double *steps = NEW_ARRAY(double, work->n);
	double squares = 0, count = (double)(work->n - 1);
	for (size_t i = 0; i + 1 < work->n; i++) {
		steps[i] = fabs(work->logs[i + 1] - work->logs[i]);
		squares += steps[i] * steps[i];
	}
	stats_sort(steps, work->n - 1);
	double noise = stats_median(steps, work->n - 1) / (NORMAL_MAD * M_SQRT2);
	if (noise < NOISE_FLOOR)
		noise = sqrt(squares / (2 * count));
	return MAX(noise, MAX(NOISE_FLOOR, log1p(work->rule->min_change) / FINE_NOISE));
}

/* ------------------------------------------------------------------ the best cuts */

/* best[t]: the price of the best cuts of the first t values; last[t]: where its last level begins.
 * A start s that is dearer for t than best[t], even without the price of the cut, never wins later:
 * it is dropped. */
static void cut(struct work *work)
{
	size_t n = work->n, live = 0;
	AUTO_FREE double *best = NEW_ARRAY(double, n + 1);
	AUTO_FREE size_t *last = NEW_ARRAY(size_t, n + 1);
	AUTO_FREE size_t *starts = NEW_ARRAY(size_t, n + 1);
	AUTO_FREE double *prices = NEW_ARRAY(double, n + 1);
	AUTO_FREE double *parts = NEW_ARRAY(double, n + 1); /* 1 / length: a division is slow */
	double noise = neighbour_noise(work), unit = 1 / (noise * noise);
	double price = MAX((double)MIN_PRICE, PRICE_LOG * log((double)n));
	for (size_t i = 1; i <= n; i++)
		parts[i] = 1 / (double)i;
	best[0] = -price;
	for (size_t t = 1; t <= n; t++) {
		starts[live++] = t - 1;
		best[t] = INFINITY;
		for (size_t i = 0; i < live; i++) {
			size_t from = starts[i];
			double sum = work->sums[t] - work->sums[from];
			double deviation = work->squares[t] - work->squares[from] -
					   sum * sum * parts[t - from];
			prices[i] = best[from] + MAX(deviation, 0.0) * unit;
			if (prices[i] + price < best[t]) {
				best[t] = prices[i] + price;
				last[t] = from;
			}
		}
		size_t kept = 0;
		for (size_t i = 0; i < live; i++)
			if (prices[i] <= best[t])
				starts[kept++] = starts[i];
		live = kept;
	}
	for (size_t t = n; t > 0; t = last[t])
		work->levels++;
	work->cuts[work->levels] = n;
	for (size_t t = n, level = work->levels; t > 0; t = last[t])
		work->cuts[--level] = last[t];
}

/* ------------------------------------------------------------------------ tests */

/* Variance within all levels, and its degrees of freedom. */
static double common_variance(const struct work *work, double *ret_df)
{
	double sum = 0;
	for (size_t i = 0; i < work->levels; i++)
		sum += level_deviation(work, work->cuts[i], work->cuts[i + 1]);
	*ret_df = (double)(work->n - work->levels);
	return *ret_df > 0 ? sum / *ret_df : 0;
}

/* The change at cuts[i], from level i - 1 to level i, in logarithms. */
struct test {
	double effect, error, df, p;
};

/* The farthest that a value outside [from, to) lies below (side -1) or above (1) its level. */
static double farthest(const struct work *work, size_t from, size_t to, int side)
{
	double far = work->dropped[side > 0];
	for (size_t level = 0; level < work->levels; level++) {
		size_t start = work->cuts[level], end = work->cuts[level + 1];
		if (start == from && end == to)
			continue;
		double mean = level_mean(work, start, end);
		for (size_t i = start; i < end; i++)
			far = MAX(far, side * (work->logs[i] - mean));
	}
	return far;
}

/* A few values are a level of their own only if no other value of the series was ever as far from
 * its level: noise with long tails makes such pairs by chance. */
static bool stands_out(const struct work *work, size_t i, double effect)
{
	size_t from = work->cuts[i - 1], at = work->cuts[i], to = work->cuts[i + 1];
	bool first = at - from < to - at;
	if (MIN(at - from, to - at) > SHORT_LEVEL)
		return true;
	return fabs(effect) > (first ? farthest(work, from, at, effect > 0 ? -1 : 1)
				     : farthest(work, at, to, effect > 0 ? 1 : -1));
}

static struct test test_cut(const struct work *work, size_t i)
{
	size_t from = work->cuts[i - 1], at = work->cuts[i], to = work->cuts[i + 1];
	double m = (double)(at - from), n = (double)(to - at), variance;
	struct test test = { .df = m + n - 2, .p = 1 };
	if (test.df >= LOCAL_DF)
		variance =
			(level_deviation(work, from, at) + level_deviation(work, at, to)) / test.df;
	else
		variance = common_variance(work, &test.df);
	test.effect = level_mean(work, at, to) - level_mean(work, from, at);
	double shorter = MIN(m, n), rho = shorter > 1 ? work->correlation : 0;
	double inflation = (1 + rho) / (1 - rho);
	test.error = sqrt(MAX(variance, NOISE_FLOOR * NOISE_FLOOR) * (1 / m + 1 / n) * inflation);
	double places = SEARCH_FACTOR * (double)work->n / shorter * (1 + log2(shorter));
	if (test.df > 0 && stands_out(work, i, test.effect))
		test.p = MIN(1.0,
			     places * student_two_sided(fabs(test.effect) / test.error, test.df));
	return test;
}

/* The cut to take back next: the least significant while it is not significant, else the smallest
 * while it is too small; 0: none. */
static size_t weakest_cut(const struct work *work, const struct test *tests)
{
	size_t weakest = 1, smallest = 1;
	for (size_t i = 2; i < work->levels; i++) {
		if (tests[i].p > tests[weakest].p)
			weakest = i;
		if (fabs(tests[i].effect) < fabs(tests[smallest].effect))
			smallest = i;
	}
	if (tests[weakest].p > work->rule->alpha)
		return weakest;
	return fabs(tests[smallest].effect) < log1p(work->rule->min_change) ? smallest : 0;
}

/* Takes weak cuts back. Only the tests of the neighbours of one taken back are made again, until
 * none seems weak; then all, for the common noise has changed, too. */
static void merge(struct work *work)
{
	AUTO_FREE struct test *tests = NEW_ARRAY(struct test, work->levels + 1);
	bool removed = true;
	while (removed && work->levels > 1) {
		removed = false;
		for (size_t i = 1; i < work->levels; i++)
			tests[i] = test_cut(work, i);
		for (size_t at; work->levels > 1 && (at = weakest_cut(work, tests)) > 0;) {
			size_t after = work->levels - at;
			memmove(work->cuts + at, work->cuts + at + 1, after * sizeof(*work->cuts));
			memmove(tests + at, tests + at + 1, after * sizeof(*tests));
			work->levels--;
			removed = true;
			if (at > 1)
				tests[at - 1] = test_cut(work, at - 1);
			if (at < work->levels)
				tests[at] = test_cut(work, at);
		}
	}
}

/* Of neighbours within the levels: noise that comes in waves looks like changes. */
static double neighbour_correlation(const struct work *work)
{
	double product = 0, squares = 0;
	for (size_t level = 0; level < work->levels; level++) {
		size_t from = work->cuts[level], to = work->cuts[level + 1];
		double mean = level_mean(work, from, to);
		squares += level_deviation(work, from, to);
		for (size_t i = from; i + 1 < to; i++)
			product += (work->logs[i] - mean) * (work->logs[i + 1] - mean);
	}
	double rho = squares > 0 ? product / squares : 0;
	return rho > CORRELATION_Z / sqrt((double)work->n) ? MIN(rho, CORRELATION_MAX) : 0;
}

/* Where its neighbours were taken back, a cut may fit better elsewhere between those that are
 * left. */
static void move_cuts(struct work *work)
{
	for (size_t i = 1; i < work->levels; i++) {
		size_t from = work->cuts[i - 1], to = work->cuts[i + 1];
		double least = INFINITY;
		for (size_t at = from + 1; at < to; at++) {
			double deviation =
				level_deviation(work, from, at) + level_deviation(work, at, to);
			if (deviation < least) {
				least = deviation;
				work->cuts[i] = at;
			}
		}
	}
}

/* Fewer cuts show more of the correlation, and more of that takes more cuts back. */
static void settle(struct work *work)
{
	for (size_t before = 0; before != work->levels;) {
		before = work->levels;
		merge(work);
		move_cuts(work);
		work->correlation = neighbour_correlation(work);
	}
}

/* ---------------------------------------------------------------------- outliers */

/* How far it lies from the nearer of the levels around it. */
static void note_outlier(const struct work *work, size_t level, double dropped[2])
{
	const size_t *cuts = work->cuts + level;
	double value = level_mean(work, cuts[0], cuts[1]);
	double right = value - level_mean(work, cuts[1], cuts[2]);
	double left = level ? value - level_mean(work, cuts[-1], cuts[0]) : right;
	double far = fabs(left) < fabs(right) ? left : right;
	dropped[far > 0] = MAX(dropped[far > 0], fabs(far));
}

/* Moves the values of levels too short to be levels from `places` to the outliers. The last
 * level stays: what follows may confirm it. Returns how many values are left. */
static size_t drop_outliers(const struct work *work, size_t *places, double dropped[2],
			    struct changes *changes)
{
	size_t kept = 0;
	for (size_t level = 0; level < work->levels; level++) {
		size_t from = work->cuts[level], to = work->cuts[level + 1];
		bool last = level + 1 == work->levels;
		for (size_t i = from; i < to; i++) {
			if (!last && to - from <= CHANGES_OUTLIER_MAX) {
				note_outlier(work, level, dropped);
				changes->outliers[changes->outlier_count++] = places[i];
			} else {
				places[kept++] = places[i];
			}
		}
	}
	return kept;
}

static int compare_places(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	return (x > y) - (x < y);
}

/* -------------------------------------------------------------------------- all */

static void collect(const struct work *work, const double *values, const size_t *places,
		    struct changes *changes)
{
	double df;
	changes->noise = sqrt(common_variance(work, &df));
	changes->items = NEW_ARRAY(struct change, work->levels);
	double middle = log(values[places[0]]) - work->logs[0];
	for (size_t i = 1; i < work->levels; i++) {
		struct test test = test_cut(work, i);
		double reach = student_quantile(work->rule->alpha, test.df) * test.error;
		double before = level_mean(work, work->cuts[i - 1], work->cuts[i]) + middle;
		changes->items[changes->count++] = (struct change){
			.at = places[work->cuts[i]],
			.ratio = { exp(test.effect), exp(test.effect - reach),
				   exp(test.effect + reach) },
			.p = test.p,
			.before = exp(before),
			.after = exp(before + test.effect),
		};
	}
}

/* One search over the values at `places`. Returns how many of them are no outliers. */
static size_t search(const double *values, size_t *places, size_t n, const struct change_rule *rule,
		     double dropped[2], struct changes *changes)
{
	AUTO(work_done)
	struct work work = { .rule = rule, .dropped = { dropped[0], dropped[1] } };
	AUTO_FREE double *picked = NEW_ARRAY(double, n);
	for (size_t i = 0; i < n; i++)
		picked[i] = values[places[i]];
	work_init(&work, picked, n);
	cut(&work);
	settle(&work);
	size_t kept = drop_outliers(&work, places, dropped, changes);
	if (kept == n)
		collect(&work, values, places, changes);
	return kept;
}

void changes_find(const double *values, size_t n, const struct change_rule *rule,
		  struct changes *ret_changes)
{
	*ret_changes = CHANGES_INIT;
	size_t first = n > CHANGES_MAX_VALUES ? n - CHANGES_MAX_VALUES : 0, left = n - first;
	if (left < CHANGES_MIN_VALUES)
		return;
	AUTO_FREE size_t *places = NEW_ARRAY(size_t, left);
	ret_changes->outliers = NEW_ARRAY(size_t, left);
	for (size_t i = 0; i < left; i++)
		places[i] = first + i;
	/* Each search without the outliers of the one before: it ends, for some are left every
	 * time. */
	double dropped[2] = { 0, 0 };
	for (size_t before = 0; left != before;) {
		before = left;
		left = search(values, places, before, rule, dropped, ret_changes);
	}
	qsort(ret_changes->outliers, ret_changes->outlier_count, sizeof(*ret_changes->outliers),
	      compare_places);
}

void changes_done(struct changes *changes)
{
	free(changes->items);
	free(changes->outliers);
	*changes = CHANGES_INIT;
}
