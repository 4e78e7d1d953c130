#include "unit.h"

#include <math.h>

#include "core/batch/change_points.h"
#include "core/batch/levels.h"
#include "core/batch/serial.h"
#include "core/batch/student.h"
#include "core/batch/trend_news.h"

#define VALUES_MAX 512

static const struct change_rule rule = { .alpha = 0.05, .min_change = 0.001 };

/* splitmix64, and a normal deviate from it: the simulations below replay exactly. */
static double random_unit(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return ((double)((z ^ z >> 31) >> 11) + 0.5) / (double)(1ull << 53);
}

static double random_normal(uint64_t *state)
{
	double radius = sqrt(-2 * log(random_unit(state)));
	return radius * cos(2 * M_PI * random_unit(state));
}

static void make(double *values, size_t n, double noise, uint64_t seed)
{
	for (size_t i = 0; i < n; i++)
		values[i] = 100 * exp(noise * random_normal(&seed));
}

TEST(the_t_distribution_has_the_tails_of_the_tables)
{
	ck_assert_double_eq_tol(student_two_sided(12.706204736432095, 1), 0.05, 1e-10);
	ck_assert_double_eq_tol(student_two_sided(2.2281388519649385, 10), 0.05, 1e-10);
	ck_assert_double_eq_tol(student_two_sided(3.390, 100), 0.001002, 2e-6);
	ck_assert_double_eq_tol(student_quantile(0.05, 10), 2.2281388519649385, 1e-9);
	ck_assert_double_eq_tol(student_quantile(0.001, 3), 12.923978636687, 1e-6);
	ck_assert_double_eq(student_two_sided(INFINITY, 4), 0);
}

/* What a series cut at `cuts` costs, in units of `noise`. */
static double price_of(const struct levels *levels, double noise)
{
	double sum = levels_price(levels->n) * (double)(levels->count - 1);
	for (size_t i = 0; i < levels->count; i++)
		sum += levels_deviation(levels, levels->cuts[i], levels->cuts[i + 1]) /
		       (noise * noise);
	return sum;
}

/* Tries every start of every level. */
static double least_price(const struct levels *levels, double noise)
{
	double best[VALUES_MAX + 1] = { -levels_price(levels->n) };
	for (size_t t = 1; t <= levels->n; t++) {
		best[t] = INFINITY;
		for (size_t from = 0; from < t; from++)
			best[t] = fmin(best[t],
				       best[from] + levels_price(levels->n) +
					       levels_deviation(levels, from, t) / (noise * noise));
	}
	return best[levels->n];
}

TEST(levels_are_the_cheapest_of_all_ways_to_cut)
{
	size_t cut = 0;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct levels levels;
		uint64_t state = seed;
		double values[VALUES_MAX], mean = 0, noise = 2;
		size_t n = 3 + seed * 5;
		for (size_t i = 0; i < n; i++) {
			if (random_unit(&state) < 0.02 * (double)(seed % 4))
				mean += 4 * random_normal(&state);
			values[i] = mean + 0.1 * random_normal(&state);
		}
		levels_init(&levels, values, n);
		/* Neighbours differ by less than what is resolved: the noise is what we say. */
		levels_cut(&levels, noise);
		cut += levels.count > 1;
		ck_assert_double_eq_tol(price_of(&levels, noise), least_price(&levels, noise),
					1e-6);
		levels_done(&levels);
	}
	ck_assert_uint_ge(cut, 30);
}

TEST(a_step_is_found_where_it_is_with_its_size)
{
	double values[60];
	make(values, ARRAY_LEN(values), 0.02, 1);
	for (size_t i = 35; i < ARRAY_LEN(values); i++)
		values[i] *= 1.1;
	struct change_points changes;
	change_points_find(values, ARRAY_LEN(values), &rule, NULL, &changes);
	ck_assert_uint_eq(changes.count, 1);
	ck_assert_uint_eq(changes.items[0].at, 35);
	ck_assert_double_lt(changes.items[0].ratio.low, 1.1);
	ck_assert_double_gt(changes.items[0].ratio.high, 1.1);
	ck_assert_double_eq_tol(changes.items[0].before, 100, 2);
	ck_assert_double_eq_tol(changes.items[0].after, 110, 2);
	ck_assert_double_eq_tol(changes.noise, 0.02, 0.006);
	change_points_done(&changes);
}

TEST(a_regression_and_its_fix_are_two_changes)
{
	double values[80];
	make(values, ARRAY_LEN(values), 0.02, 2);
	for (size_t i = 30; i < 38; i++)
		values[i] *= 1.15;
	struct change_points changes;
	change_points_find(values, ARRAY_LEN(values), &rule, NULL, &changes);
	ck_assert_uint_eq(changes.count, 2);
	ck_assert_uint_eq(changes.items[0].at, 30);
	ck_assert_uint_eq(changes.items[1].at, 38);
	change_points_done(&changes);
}

TEST(one_value_far_away_is_an_outlier_and_no_change)
{
	double values[50];
	make(values, ARRAY_LEN(values), 0.02, 3);
	values[20] *= 1.6;
	struct change_points changes;
	change_points_find(values, ARRAY_LEN(values), &rule, NULL, &changes);
	ck_assert_uint_eq(changes.count, 0);
	ck_assert_uint_eq(changes.outlier_count, 1);
	ck_assert_uint_eq(changes.outliers[0], 20);
	change_points_done(&changes);
}

TEST(values_without_noise_change_only_where_they_change)
{
	double values[40];
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		values[i] = i < 17 ? 1000000 : 1010000;
	struct change_points changes;
	change_points_find(values, ARRAY_LEN(values), &rule, NULL, &changes);
	ck_assert_uint_eq(changes.count, 1);
	ck_assert_uint_eq(changes.items[0].at, 17);
	change_points_done(&changes);
	/* Two values by turns are noise, however exact. */
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		values[i] = i * 7 % 5 < 2 ? 100 : 103;
	change_points_find(values, ARRAY_LEN(values), &rule, NULL, &changes);
	ck_assert_uint_eq(changes.count, 0);
	change_points_done(&changes);
}

TEST(a_change_smaller_than_what_matters_is_none)
{
	struct change_rule coarse = { .alpha = 0.05, .min_change = 0.02 };
	double values[40];
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		values[i] = i < 17 ? 1000 : 1010;
	struct change_points changes;
	change_points_find(values, ARRAY_LEN(values), &coarse, NULL, &changes);
	ck_assert_uint_eq(changes.count, 0);
	change_points_done(&changes);
}

TEST(series_without_a_change_alarm_no_more_often_than_said)
{
	double values[VALUES_MAX];
	size_t alarms = 0, rounds = 400;
	for (size_t i = 0; i < rounds; i++) {
		struct change_points changes;
		make(values, 60, 0.03, 1000 + i);
		change_points_find(values, 60, &rule, NULL, &changes);
		alarms += changes.count > 0;
		change_points_done(&changes);
	}
	ck_assert_uint_le(alarms, rounds / 20);
}

/* ------------------------------------------------------------ other kinds of noise */

typedef void noise_fn(double *values, size_t n, uint64_t *state);

/* Student's t with 2 degrees of freedom: a normal deviate over the root of an exponential one. */
static void long_tails(double *values, size_t n, uint64_t *state)
{
	for (size_t i = 0; i < n; i++)
		values[i] = 100 * exp(0.02 * random_normal(state) / sqrt(-log(random_unit(state))));
}

static void two_modes(double *values, size_t n, uint64_t *state)
{
	for (size_t i = 0; i < n; i++)
		values[i] =
			(random_unit(state) < 0.3 ? 120 : 100) * exp(0.01 * random_normal(state));
}

static void waves(double *values, size_t n, uint64_t *state)
{
	double wave = random_normal(state);
	for (size_t i = 0; i < n; i++) {
		values[i] = 100 * exp(0.03 * wave);
		wave = 0.8 * wave + 0.6 * random_normal(state);
	}
}

static size_t count_alarms(noise_fn *noise, size_t n, size_t rounds, uint64_t seed)
{
	double values[VALUES_MAX];
	size_t alarms = 0;
	for (size_t i = 0; i < rounds; i++) {
		struct change_points changes;
		noise(values, n, &seed);
		change_points_find(values, n, &rule, NULL, &changes);
		alarms += changes.count > 0;
		change_points_done(&changes);
	}
	return alarms;
}

TEST(noise_of_any_shape_alarms_no_more_often_than_said)
{
	noise_fn *noises[] = { long_tails, two_modes, waves };
	for (size_t i = 0; i < ARRAY_LEN(noises); i++) {
		ck_assert_uint_le(count_alarms(noises[i], 50, 400, 77), 400 / 20);
		ck_assert_uint_le(count_alarms(noises[i], 200, 200, 78), 200 / 20);
	}
}

TEST(a_large_step_is_found_in_noise_of_any_shape)
{
	noise_fn *noises[] = { long_tails, two_modes, waves };
	for (size_t i = 0; i < ARRAY_LEN(noises); i++) {
		double values[200];
		uint64_t seed = 5;
		noises[i](values, ARRAY_LEN(values), &seed);
		for (size_t k = 120; k < ARRAY_LEN(values); k++)
			values[k] *= 1.5;
		struct change_points changes;
		change_points_find(values, ARRAY_LEN(values), &rule, NULL, &changes);
		bool found = false;
		for (size_t k = 0; k < changes.count; k++)
			found |= changes.items[k].at >= 118 && changes.items[k].at <= 122;
		ck_assert_msg(found, "noise %zu", i);
		change_points_done(&changes);
	}
}

TEST(noise_that_grows_is_told_and_is_not_a_change_of_level)
{
	double values[120];
	uint64_t seed = 11;
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		values[i] = 100 * exp((i < 60 ? 0.01 : 0.05) * random_normal(&seed));
	struct change_points changes;
	change_points_find(values, ARRAY_LEN(values), &rule, NULL, &changes);
	ck_assert_uint_eq(changes.count, 0);
	ck_assert_uint_eq(changes.spreads.count, 1);
	ck_assert_uint_ge(changes.spreads.items[0].at, 57);
	ck_assert_uint_le(changes.spreads.items[0].at, 63);
	ck_assert_double_eq_tol(changes.spreads.items[0].before, 0.01, 0.003);
	ck_assert_double_eq_tol(changes.spreads.items[0].after, 0.05, 0.015);
	change_points_done(&changes);
}

TEST(noise_of_a_short_series_that_grows_is_told)
{
	double values[60];
	size_t told = 0;
	for (uint64_t round = 0; round < 20; round++) {
		uint64_t seed = 100 + round;
		for (size_t i = 0; i < ARRAY_LEN(values); i++)
			values[i] = 100 * exp((i < 35 ? 0.01 : 0.06) * random_normal(&seed));
		struct change_points changes;
		change_points_find(values, ARRAY_LEN(values), &rule, NULL, &changes);
		told += changes.spreads.count > 0;
		change_points_done(&changes);
	}
	ck_assert_uint_ge(told, 15);
}

TEST(an_exact_count_that_moves_is_a_change_at_once)
{
	double values[12];
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		values[i] = i < 11 ? 1000000 : 1010000;
	struct change_points changes;
	change_points_find(values, ARRAY_LEN(values), &rule, NULL, &changes);
	ck_assert_uint_eq(changes.count, 1);
	ck_assert_uint_eq(changes.items[0].at, 11);
	ck_assert_double_lt(changes.items[0].p, 0.001);
	change_points_done(&changes);
}

TEST(neighbours_that_are_alike_are_measured)
{
	double values[VALUES_MAX], with_waves;
	uint64_t seed = 3;
	for (size_t i = 0; i < VALUES_MAX; i++)
		values[i] = random_normal(&seed);
	ck_assert_double_lt(serial_correlation(values, VALUES_MAX, &with_waves), 0.15);
	waves(values, VALUES_MAX, &seed);
	double correlation = serial_correlation(values, VALUES_MAX, &with_waves);
	ck_assert_double_eq_tol(correlation, 0.8, 0.1);
	ck_assert_double_ge(with_waves, correlation);
	/* The mean of two values with correlation 0.8 varies 1.8 times as much. */
	ck_assert_double_eq_tol(serial_inflation(0.8, 2), 1.8, 1e-9);
	ck_assert_double_eq_tol(serial_inflation(0, 50), 1, 1e-12);
	ck_assert_double_eq_tol(serial_inflation(0.8, 1e6), 9, 1e-3);
}

TEST(short_and_long_series_make_no_trouble)
{
	double values[4] = { 1, 2, 3, 4 };
	struct change_points changes;
	for (size_t n = 0; n <= 4; n++) {
		change_points_find(values, n, &rule, NULL, &changes);
		ck_assert_uint_eq(changes.count, 0);
		change_points_done(&changes);
	}
}

TEST(the_newest_version_is_judged_by_the_last_change_that_is_news)
{
	double values[40];
	make(values, ARRAY_LEN(values), 0.01, 9);
	for (size_t i = 36; i < ARRAY_LEN(values); i++)
		values[i] *= 1.2;
	struct change_points changes;
	change_points_find(values, ARRAY_LEN(values), &rule, NULL, &changes);
	struct trend_rule news = { .alpha = 0.05, .first = 30 };
	double p = trend_p(&changes, &news);
	ck_assert_double_lt(p, 0.05);
	ck_assert_int_eq(trend_judge(&changes, 40, &news, p).verdict, VERDICT_SLOWER);
	ck_assert_int_eq(trend_judge(&changes, 40, &news, 0.2).verdict, VERDICT_UNDECIDED);
	news.more_is_better = true;
	ck_assert_int_eq(trend_judge(&changes, 40, &news, p).verdict, VERDICT_FASTER);
	news.first = 37;
	ck_assert_double_eq(trend_p(&changes, &news), 1);
	ck_assert_int_eq(trend_judge(&changes, 40, &news, 1).verdict, VERDICT_SAME);
	ck_assert_int_eq(trend_judge(&changes, 4, &news, 1).verdict, VERDICT_UNDECIDED);
	change_points_done(&changes);
}
