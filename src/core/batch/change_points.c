#include "core/batch/change_points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/batch/levels.h"
#include "core/batch/serial.h"
#include "core/batch/stats.h"
#include "core/batch/student.h"

#define NOISE_FLOOR 1e-9 /* relative; what arithmetic itself does */
#define FINE_NOISE 4	 /* noise this many times below what matters is not resolved */
#define SHORT_LEVEL 4	 /* values; so few must stand out from all others */
#define LOCAL_DF 8	 /* degrees of freedom from which neighbours know the noise */
#define FAR_VALUE 3.5	 /* standard deviations; nearer values are not outliers */
#define OUTLIERS_PART 10 /* of all values; more are not outliers */
#define SPREAD_PART 5	 /* changes of noise are told at alpha divided by this */

/* From simulation of series without a change: of normal, uniform, one-sided, long-tailed, bimodal
 * and autocorrelated noise, 20 to 500 values. */
#define SEARCH_FACTOR 2 /* places a cut could have had, a value */
#define EASE 5
#define LONE_PLACES 16.0    /* where a few values could stand alone: an end, or in a row */
#define WAVES_PRICE 4.0	    /* what levels must explain better than waves, before any cut, */
#define WAVES_PRICE_MORE 8  /* more with strong waves, */
#define WAVES_CUT_PRICE 0.8 /* and for every cut, in prices of a cut; */
#define OUTLIER_PRICE 0.5   /* an outlier costs so many cuts, */
#define OUTLIERS_PAID 8.0   /* but not more of them */
#define WAVES_SHARE 0.35    /* of the correlation that levels explain, still counted as waves */
#define CLEAR_ERRORS 2	    /* standard errors from which correlation within levels counts */

/* What earlier searches of a series found. */
struct known {
	double dropped[2]; /* the farthest that outliers were below and above their level */
	/* Noise of two modes looks like outliers, but they are too many: all values belong to the
	 * levels. */
	bool all_belong;
};

struct work {
	const struct change_rule *rule;
	struct known known;
	struct levels levels; /* of the logarithms */
	double correlation;   /* of neighbours within the levels, for the tests of cuts */
	double inflation;     /* by waves, of what stands alone */
};

/* ------------------------------------------------------------------------ tests */

/* How many of the values of a level say something about the noise. */
static double free_values(const struct work *work, double length)
{
	return MAX(length - serial_inflation(work->correlation, length), 0.0);
}

/* Variance within all levels, and its degrees of freedom. */
static double common_variance(const struct work *work, double *ret_df)
{
	const struct levels *levels = &work->levels;
	double sum = 0;
	*ret_df = 0;
	for (size_t i = 0; i < levels->count; i++) {
		size_t from = levels->cuts[i], to = levels->cuts[i + 1];
		sum += levels_deviation(levels, from, to);
		*ret_df += free_values(work, (double)(to - from));
	}
	return *ret_df > 0 ? sum / *ret_df : 0;
}

/* The change at cuts[i], from level i - 1 to level i, in logarithms. */
struct test {
	double effect, error, df, p;
	double lone_p; /* without regard to the shape of the noise; 1: not a level of a few values
			*/
};

/* The farthest that a value outside [from, to) lies below (side -1) or above (1) its level. */
static double farthest(const struct work *work, size_t from, size_t to, int side)
{
	const struct levels *levels = &work->levels;
	double far = work->known.dropped[side > 0];
	for (size_t level = 0; level < levels->count; level++) {
		size_t start = levels->cuts[level], end = levels->cuts[level + 1];
		if (start == from && end == to)
			continue;
		double mean = levels_mean(levels, start, end);
		for (size_t i = start; i < end; i++)
			far = MAX(far, side * (levels->values[i] - mean));
	}
	return far;
}

/* A few values are a level of their own only if no other value of the series was ever as far from
 * its level: noise with long tails makes such pairs by chance, the more rarely the farther they
 * stand out (as the square: tails are hardly ever longer). */
static double lone_p(const struct work *work, size_t i, double effect)
{
	const struct levels *levels = &work->levels;
	size_t from = levels->cuts[i - 1], at = levels->cuts[i], to = levels->cuts[i + 1];
	bool first = at - from < to - at;
	double far = first ? farthest(work, from, at, effect > 0 ? -1 : 1)
			   : farthest(work, at, to, effect > 0 ? 1 : -1);
	double ratio = MAX(far, NOISE_FLOOR) / fabs(effect);
	if (ratio >= 1)
		return 1;
	return MIN(1.0, LONE_PLACES / (double)levels->n * ratio * ratio * work->inflation);
}

static struct test test_cut(const struct work *work, size_t i)
{
	const struct levels *levels = &work->levels;
	size_t from = levels->cuts[i - 1], at = levels->cuts[i], to = levels->cuts[i + 1];
	double m = (double)(at - from), n = (double)(to - at), shorter = MIN(m, n), variance;
	struct test test = { .df = free_values(work, m) + free_values(work, n),
			     .p = 1,
			     .lone_p = 1 };
	if (test.df >= LOCAL_DF)
		variance = (levels_deviation(levels, from, at) + levels_deviation(levels, at, to)) /
			   test.df;
	else
		variance = common_variance(work, &test.df);
	test.effect = levels_mean(levels, at, to) - levels_mean(levels, from, at);
	test.error = sqrt(MAX(variance, NOISE_FLOOR * NOISE_FLOOR) *
			  (serial_inflation(work->correlation, m) / m +
			   serial_inflation(work->correlation, n) / n));
	bool few = shorter <= SHORT_LEVEL;
	if (few)
		test.lone_p = lone_p(work, i, test.effect);
	double places = SEARCH_FACTOR * (double)levels->n / shorter * (1 + log2(shorter));
	bool outlier = work->known.all_belong && shorter < 2;
	if (test.df > 0 && !outlier && (!few || test.lone_p < 1))
		test.p = MIN(1.0,
			     places * student_two_sided(fabs(test.effect) / test.error, test.df));
	return test;
}

/* The cut to take back next: the least significant while it is not significant, else the smallest
 * while it is too small; 0: none. Whether there is any change at all is asked elsewhere, so that
 * a cut beside others need not carry the proof alone. */
static size_t weakest_cut(const struct work *work, const struct test *tests)
{
	size_t weakest = 1, smallest = 1;
	for (size_t i = 2; i < work->levels.count; i++) {
		if (tests[i].p > tests[weakest].p)
			weakest = i;
		if (fabs(tests[i].effect) < fabs(tests[smallest].effect))
			smallest = i;
	}
	if (tests[weakest].p > work->rule->alpha * EASE)
		return weakest;
	return fabs(tests[smallest].effect) < log1p(work->rule->min_change) ? smallest : 0;
}

/* Takes weak cuts back. Only the tests of the neighbours of one taken back are made again, until
 * none seems weak; then all, for the common noise has changed, too. */
static void merge(struct work *work)
{
	struct levels *levels = &work->levels;
	AUTO_FREE struct test *tests = NEW_ARRAY(struct test, levels->count + 1);
	bool removed = true;
	while (removed && levels->count > 1) {
		removed = false;
		for (size_t i = 1; i < levels->count; i++)
			tests[i] = test_cut(work, i);
		for (size_t at; levels->count > 1 && (at = weakest_cut(work, tests)) > 0;) {
			levels_join(levels, at);
			memmove(tests + at, tests + at + 1,
				(levels->count - at + 1) * sizeof(*tests));
			removed = true;
			if (at > 1)
				tests[at - 1] = test_cut(work, at - 1);
			if (at < levels->count)
				tests[at] = test_cut(work, at);
		}
	}
}

/* Where its neighbours were taken back, a cut may fit better elsewhere. */
static void settle(struct work *work)
{
	for (size_t before = 0; before != work->levels.count;) {
		before = work->levels.count;
		merge(work);
		levels_move(&work->levels);
	}
}

/* ---------------------------------------------------------------------- outliers */

/* How far it lies from the nearer of the levels around it. */
static void note_outlier(const struct work *work, size_t level, struct known *known)
{
	const size_t *cuts = work->levels.cuts + level;
	double value = levels_mean(&work->levels, cuts[0], cuts[1]);
	double right = value - levels_mean(&work->levels, cuts[1], cuts[2]);
	double left = level ? value - levels_mean(&work->levels, cuts[-1], cuts[0]) : right;
	double far = fabs(left) < fabs(right) ? left : right;
	known->dropped[far > 0] = MAX(known->dropped[far > 0], fabs(far));
}

/* Moves the values of levels too short to be levels from `places` to the outliers. The last
 * level stays: what follows may confirm it. Returns how many values are left. */
static size_t drop_outliers(const struct work *work, size_t *places, struct known *known,
			    struct change_points *changes)
{
	const struct levels *levels = &work->levels;
	size_t kept = 0;
	for (size_t level = 0; level < levels->count; level++) {
		size_t from = levels->cuts[level], to = levels->cuts[level + 1];
		bool last = level + 1 == levels->count;
		for (size_t i = from; i < to; i++) {
			if (!last && to - from <= CHANGE_POINTS_OUTLIER_MAX) {
				note_outlier(work, level, known);
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

/* -------------------------------------------------------------------- any at all */

/* The series with its outliers. */
struct whole {
	size_t n, first;		/* the place of its first value */
	double *logs, *scores, *sorted; /* sorted: the logarithms */
	struct any_change_table *table; /* borrowed */
	double correlation, with_waves; /* of neighbours (serial.h), if there is no change */
};

static void whole_done(struct whole *whole)
{
	free(whole->logs);
	free(whole->scores);
	free(whole->sorted);
}

static void whole_init(struct whole *whole, const double *values, size_t first, size_t n,
		       struct any_change_table *table)
{
	*whole = (struct whole){ .n = n,
				 .first = first,
				 .logs = NEW_ARRAY(double, n),
				 .scores = NEW_ARRAY(double, n),
				 .sorted = NEW_ARRAY(double, n),
				 .table = table };
	for (size_t i = 0; i < n; i++)
		whole->logs[i] = log(values[first + i]);
	any_change_scores(whole->logs, n, table, whole->scores, whole->sorted);
	whole->correlation = serial_correlation(whole->scores, n, &whole->with_waves);
}

/* Variance of what the value before does not predict; also the correlation of the two. */
static double surprise(const double *values, size_t n, double *ret_correlation)
{
	double squares = 0, products = 0;
	for (size_t i = 0; i < n; i++) {
		squares += values[i] * values[i];
		if (i)
			products += values[i] * values[i - 1];
	}
	*ret_correlation = squares > 0 ? products / squares : 0;
	return squares / (double)n * (1 - *ret_correlation * *ret_correlation);
}

/* What levels explain of a series, compared with waves of noise (an AR(1) process) without any
 * change. */
struct contest {
	bool win;	    /* also after paying for every cut */
	double correlation; /* of neighbours within the levels */
	double doubt;	    /* 1: levels win by a hair; 0: they win by far */
};

static struct contest levels_against_waves(const struct levels *levels, const struct whole *whole)
{
	AUTO_FREE double *rest = NEW_ARRAY(double, levels->n);
	for (size_t level = 0; level < levels->count; level++) {
		size_t from = levels->cuts[level], to = levels->cuts[level + 1];
		double mean = levels_mean(levels, from, to);
		for (size_t i = from; i < to; i++)
			rest[i] = levels->values[i] - mean;
	}
	double before, after, n = (double)levels->n, floor = NOISE_FLOOR * NOISE_FLOOR;
	double waves = surprise(levels->values, levels->n, &before);
	double steps = surprise(rest, levels->n, &after);
	double outliers = MIN((double)(whole->n - levels->n), OUTLIERS_PAID);
	double paid = (double)(levels->count - 1) + OUTLIER_PRICE * outliers, left = n - paid - 2;
	double price = WAVES_PRICE + WAVES_PRICE_MORE * whole->correlation * whole->correlation +
		       WAVES_CUT_PRICE * levels_price(levels->n) * paid;
	double gain = left > 0 ? left * log(waves / MAX(steps, floor) * left / (n - 2)) : 0;
	/* Kendall's correction, as in serial.c. */
	double correlation = steps > floor ? (n * after + 1) / (n - 3) : 0;
	return (struct contest){ .win = gain > price,
				 .correlation = MIN(whole->correlation, MAX(0.0, correlation)),
				 .doubt = price / gain };
}

/* Takes cuts back until they agree with the correlation of neighbours that they leave, and says how
 * much of it there is for the series as a whole. */
static double settle_with_waves(struct work *work, const struct whole *whole)
{
	settle(work);
	struct contest contest = levels_against_waves(&work->levels, whole);
	if (!contest.win || contest.correlation > CLEAR_ERRORS / sqrt((double)whole->n)) {
		work->correlation = contest.win ? contest.correlation : whole->with_waves;
		settle(work);
		contest = levels_against_waves(&work->levels, whole);
	}
	if (!contest.win)
		return whole->with_waves;
	return contest.correlation +
	       WAVES_SHARE * contest.doubt * (whole->correlation - contest.correlation);
}

/* -------------------------------------------------------------------------- all */

static void collect_changes(const struct work *work, const double *values, const size_t *places,
			    double any_p, struct change_points *changes)
{
	const struct levels *levels = &work->levels;
	double df;
	changes->noise = sqrt(common_variance(work, &df));
	changes->items = NEW_ARRAY(struct change, levels->count);
	double middle = log(values[places[0]]) - levels->values[0];
	for (size_t i = 1; i < levels->count; i++) {
		struct test test = test_cut(work, i);
		double reach = student_quantile(work->rule->alpha, test.df) * test.error;
		double before = levels_mean(levels, levels->cuts[i - 1], levels->cuts[i]) + middle;
		changes->items[changes->count++] = (struct change){
			.at = places[levels->cuts[i]],
			.ratio = { exp(test.effect), exp(test.effect - reach),
				   exp(test.effect + reach) },
			.p = MAX(test.p, MIN(any_p, test.lone_p)),
			.before = exp(before),
			.after = exp(before + test.effect),
		};
	}
}

/* Outliers belong to the noise. */
static void collect_spreads(const struct work *work, const struct whole *whole,
			    const size_t *places, struct change_points *changes)
{
	const struct levels *levels = &work->levels;
	AUTO_FREE double *distances = NEW_ARRAY(double, whole->n);
	AUTO_FREE size_t *starts = NEW_ARRAY(size_t, levels->count + 1);
	double middle = whole->logs[places[0] - whole->first] - levels->values[0];
	for (size_t i = 1; i < levels->count; i++)
		starts[i] = places[levels->cuts[i]] - whole->first;
	starts[0] = 0;
	starts[levels->count] = whole->n;
	for (size_t level = 0; level < levels->count; level++) {
		double mean = levels_mean(levels, levels->cuts[level], levels->cuts[level + 1]);
		for (size_t i = starts[level]; i < starts[level + 1]; i++)
			distances[i] = whole->logs[i] - middle - mean;
	}
	spread_find(distances, whole->n, starts + 1, levels->count - 1,
		    work->rule->alpha / SPREAD_PART, whole->table, &changes->spreads);
	for (size_t i = 0; i < changes->spreads.count; i++)
		changes->spreads.items[i].at += whole->first;
}

static double least_lone_p(const struct work *work)
{
	double p = 1;
	for (size_t i = 1; i < work->levels.count; i++)
		p = MIN(p, test_cut(work, i).lone_p);
	return p;
}

static void work_init(struct work *work, const struct whole *whole, const size_t *places, size_t n)
{
	AUTO_FREE double *picked = NEW_ARRAY(double, n);
	for (size_t i = 0; i < n; i++)
		picked[i] = whole->logs[places[i] - whole->first];
	levels_init(&work->levels, picked, n);
}

static size_t all_places(const struct whole *whole, size_t *ret_places)
{
	for (size_t i = 0; i < whole->n; i++)
		ret_places[i] = whole->first + i;
	return whole->n;
}

/* One search over the values at `places`. Returns how many of them are not outliers. */
static size_t search(const struct whole *whole, const double *values, size_t *places, size_t n,
		     const struct change_rule *rule, struct known *known,
		     struct change_points *changes)
{
	struct work work = { .rule = rule, .known = *known, .inflation = 1 };
	work_init(&work, whole, places, n);
	levels_cut(&work.levels, MAX(NOISE_FLOOR, log1p(rule->min_change) / FINE_NOISE));
	double correlation = settle_with_waves(&work, whole);
	work.inflation = serial_inflation(correlation, (double)whole->n);
	size_t kept = drop_outliers(&work, places, known, changes);
	if (kept == n) {
		double any_p = any_change_p(whole->scores, whole->n, correlation);
		if (MIN(any_p, least_lone_p(&work)) > rule->alpha)
			levels_join_all(&work.levels);
		collect_changes(&work, values, places, any_p, changes);
		collect_spreads(&work, whole, places, changes);
	}
	levels_done(&work.levels);
	return kept;
}

/* A series that shows no change and no value far from all others needs no search: most are so. */
static bool quiet(const struct whole *whole, const struct change_rule *rule)
{
	const double *sorted = whole->sorted;
	double low = stats_quantile(sorted, whole->n, 0.25);
	double high = stats_quantile(sorted, whole->n, 0.75);
	double middle = (low + high) / 2;
	double limit = FAR_VALUE * (high - low) / (2 * STATS_NORMAL_MAD);
	return sorted[whole->n - 1] - middle <= limit && middle - sorted[0] <= limit &&
	       any_change_p(whole->scores, whole->n, 0) > rule->alpha;
}

static void find_nothing(const struct whole *whole, const double *values, const size_t *places,
			 const struct change_rule *rule, struct change_points *changes)
{
	struct work work = { .rule = rule };
	work_init(&work, whole, places, whole->n);
	collect_changes(&work, values, places, 1, changes);
	collect_spreads(&work, whole, places, changes);
	levels_done(&work.levels);
}

void change_points_find(const double *values, size_t n, const struct change_rule *rule,
			struct any_change_table *table, struct change_points *ret_changes)
{
	*ret_changes = CHANGE_POINTS_INIT;
	size_t first = n > CHANGE_POINTS_MAX_VALUES ? n - CHANGE_POINTS_MAX_VALUES : 0,
	       left = n - first;
	if (left < CHANGE_POINTS_MIN_VALUES)
		return;
	AUTO(any_change_table_done) struct any_change_table own = ANY_CHANGE_TABLE_INIT;
	AUTO(whole_done) struct whole whole = { .n = 0 };
	AUTO_FREE size_t *places = NEW_ARRAY(size_t, left);
	ret_changes->outliers = NEW_ARRAY(size_t, left);
	whole_init(&whole, values, first, left, table ? table : &own);
	all_places(&whole, places);
	if (quiet(&whole, rule)) {
		find_nothing(&whole, values, places, rule, ret_changes);
		return;
	}
	/* Each search without the outliers of the one before: it ends, for some are left every
	 * time. */
	struct known known = { .all_belong = false };
	for (size_t before = 0; left != before;) {
		if (ret_changes->outlier_count > whole.n / OUTLIERS_PART && !known.all_belong) {
			known = (struct known){ .all_belong = true };
			ret_changes->outlier_count = 0;
			left = all_places(&whole, places);
		}
		before = left;
		left = search(&whole, values, places, before, rule, &known, ret_changes);
	}
	qsort(ret_changes->outliers, ret_changes->outlier_count, sizeof(*ret_changes->outliers),
	      compare_places);
}

void change_points_done(struct change_points *changes)
{
	free(changes->items);
	free(changes->outliers);
	free(changes->spreads.items);
	*changes = CHANGE_POINTS_INIT;
}
