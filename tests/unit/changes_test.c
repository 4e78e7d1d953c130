#include "unit.h"

#include <math.h>

#include "core/batch/changes.h"
#include "core/batch/student.h"
#include "core/batch/trend.h"

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

TEST(a_step_is_found_where_it_is_with_its_size)
{
	double values[60];
	make(values, ARRAY_LEN(values), 0.02, 1);
	for (size_t i = 35; i < ARRAY_LEN(values); i++)
		values[i] *= 1.1;
	struct changes changes;
	changes_find(values, ARRAY_LEN(values), &rule, &changes);
	ck_assert_uint_eq(changes.count, 1);
	ck_assert_uint_eq(changes.items[0].at, 35);
	ck_assert_double_lt(changes.items[0].ratio.low, 1.1);
	ck_assert_double_gt(changes.items[0].ratio.high, 1.1);
	ck_assert_double_eq_tol(changes.items[0].before, 100, 2);
	ck_assert_double_eq_tol(changes.items[0].after, 110, 2);
	ck_assert_double_eq_tol(changes.noise, 0.02, 0.006);
	changes_done(&changes);
}

TEST(a_regression_and_its_fix_are_two_changes)
{
	double values[80];
	make(values, ARRAY_LEN(values), 0.02, 2);
	for (size_t i = 30; i < 38; i++)
		values[i] *= 1.15;
	struct changes changes;
	changes_find(values, ARRAY_LEN(values), &rule, &changes);
	ck_assert_uint_eq(changes.count, 2);
	ck_assert_uint_eq(changes.items[0].at, 30);
	ck_assert_uint_eq(changes.items[1].at, 38);
	changes_done(&changes);
}

TEST(one_value_far_away_is_an_outlier_and_no_change)
{
	double values[50];
	make(values, ARRAY_LEN(values), 0.02, 3);
	values[20] *= 1.6;
	struct changes changes;
	changes_find(values, ARRAY_LEN(values), &rule, &changes);
	ck_assert_uint_eq(changes.count, 0);
	ck_assert_uint_eq(changes.outlier_count, 1);
	ck_assert_uint_eq(changes.outliers[0], 20);
	changes_done(&changes);
}

TEST(values_without_noise_change_only_where_they_change)
{
	double values[40];
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		values[i] = i < 17 ? 1000000 : 1010000;
	struct changes changes;
	changes_find(values, ARRAY_LEN(values), &rule, &changes);
	ck_assert_uint_eq(changes.count, 1);
	ck_assert_uint_eq(changes.items[0].at, 17);
	changes_done(&changes);
	/* Two values by turns are noise, however exact. */
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		values[i] = i * 7 % 5 < 2 ? 100 : 103;
	changes_find(values, ARRAY_LEN(values), &rule, &changes);
	ck_assert_uint_eq(changes.count, 0);
	changes_done(&changes);
}

TEST(a_change_smaller_than_what_matters_is_none)
{
	struct change_rule coarse = { .alpha = 0.05, .min_change = 0.02 };
	double values[40];
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		values[i] = i < 17 ? 1000 : 1010;
	struct changes changes;
	changes_find(values, ARRAY_LEN(values), &coarse, &changes);
	ck_assert_uint_eq(changes.count, 0);
	changes_done(&changes);
}

TEST(series_without_a_change_alarm_no_more_often_than_said)
{
	double values[VALUES_MAX];
	size_t alarms = 0, rounds = 400;
	for (size_t i = 0; i < rounds; i++) {
		struct changes changes;
		make(values, 60, 0.03, 1000 + i);
		changes_find(values, 60, &rule, &changes);
		alarms += changes.count > 0;
		changes_done(&changes);
	}
	ck_assert_uint_le(alarms, rounds / 20);
}

TEST(short_and_long_series_are_no_trouble)
{
	double values[3] = { 1, 2, 3 };
	struct changes changes;
	for (size_t n = 0; n <= 3; n++) {
		changes_find(values, n, &rule, &changes);
		ck_assert_uint_eq(changes.count, 0);
		changes_done(&changes);
	}
}

TEST(the_newest_version_is_judged_by_the_last_change_that_is_news)
{
	double values[40];
	make(values, ARRAY_LEN(values), 0.01, 9);
	for (size_t i = 36; i < ARRAY_LEN(values); i++)
		values[i] *= 1.2;
	struct changes changes;
	changes_find(values, ARRAY_LEN(values), &rule, &changes);
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
	changes_done(&changes);
}
