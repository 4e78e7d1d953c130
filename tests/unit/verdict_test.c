#include "unit.h"

#include <math.h>

#include "core/batch/stats.h"
#include "core/batch/stats_rank.h"
#include "core/batch/verdict.h"

/* splitmix64, and a normal deviate from it: the simulations below replay exactly. */
static uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static double random_unit(uint64_t *state)
{
	return ((double)(random_next(state) >> 11) + 0.5) / (double)(1ull << 53);
}

/* Wall time as hosts give it: a floor, a one-sided tail, now and then a hiccup. */
static double random_wall(uint64_t *state)
{
	double wall = 1 - 0.02 * log(random_unit(state));
	return random_unit(state) < 0.05 ? wall * 1.2 : wall;
}

#define RUNS_MAX 64

static struct verdict_evidence compare_walls(uint64_t *state, size_t runs, double slower)
{
	double a[RUNS_MAX], b[RUNS_MAX];
	for (size_t i = 0; i < runs; i++) {
		a[i] = random_wall(state);
		b[i] = random_wall(state) * slower;
	}
	stats_sort(a, runs);
	stats_sort(b, runs);
	struct verdict_evidence e = { .ratio = stats_unpaired_ratio(a, runs, b, runs, 0.95),
				      .runs = runs };
	e.p = e.q = stats_rank_sum(a, runs, b, runs).p;
	return e;
}

TEST(self_comparisons_of_many_orders_raise_false_alarms_no_more_often_than_alpha)
{
	struct verdict_rule rule = { .alpha = 0.05 }; /* no noise threshold: the hardest case */
	uint64_t state = 1;
	int alarms = 0;
	for (int comparison = 0; comparison < 1000; comparison++) {
		struct verdict_evidence orders[20];
		double q[20];
		for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
			orders[i] = compare_walls(&state, 10, 1);
			q[i] = orders[i].p;
		}
		stats_benjamini_hochberg(q, ARRAY_LEN(q), q);
		bool alarm = false;
		for (size_t i = 0; i < ARRAY_LEN(orders); i++)
			alarm |= verdict_of(&rule, &orders[i].ratio, q[i]) != VERDICT_UNDECIDED;
		alarms += alarm;
	}
	ck_assert_int_le(alarms, 50);
}

TEST(self_comparisons_of_one_order_raise_false_alarms_no_more_often_than_alpha)
{
	struct verdict_rule rule = { .alpha = 0.05 };
	uint64_t state = 2;
	int alarms = 0;
	for (int comparison = 0; comparison < 1000; comparison++) {
		struct verdict_evidence e = compare_walls(&state, 20, 1);
		alarms += verdict_of(&rule, &e.ratio, e.q) != VERDICT_UNDECIDED;
	}
	ck_assert_int_le(alarms, 50);
}

TEST(a_five_percent_slowdown_is_found_or_undecided_and_never_called_same)
{
	struct verdict_rule rule = { .alpha = 0.05, .same_within = 0.01, .change_beyond = 0.01 };
	uint64_t state = 3;
	int count[VERDICT_COUNT] = { 0 };
	for (int comparison = 0; comparison < 1000; comparison++) {
		struct verdict_evidence e = compare_walls(&state, 20, 1.05);
		count[verdict_of(&rule, &e.ratio, e.q)]++;
	}
	ck_assert_int_eq(count[VERDICT_SAME] + count[VERDICT_FASTER], 0);
	ck_assert_int_gt(count[VERDICT_SLOWER], 900);
}

TEST(learned_noise_hides_no_change_behind_the_word_same)
{
	struct verdict_rule rule = { .alpha = 0.05, .same_within = 0.01, .change_beyond = 0.10 };
	struct ratio five_percent = { .value = 1.05, .low = 1.04, .high = 1.06 };
	ck_assert_int_eq(verdict_of(&rule, &five_percent, 0), VERDICT_UNDECIDED);
}

TEST(a_two_percent_change_of_counts_is_found_and_the_tolerance_is_kept)
{
	double before[] = { 1000000, 1000000, 1000001 }, after[] = { 1020000, 1020001 };
	struct ratio ratio = verdict_count_ratio(before, 3, after, 2);
	ck_assert_int_eq(verdict_of_counts(0.001, &ratio), VERDICT_SLOWER);
	ratio = verdict_count_ratio(after, 2, before, 3);
	ck_assert_int_eq(verdict_of_counts(0.001, &ratio), VERDICT_FASTER);
	ck_assert_int_eq(verdict_of_counts(0.05, &ratio), VERDICT_SAME);
	ratio = verdict_count_ratio(before, 2, before, 2);
	ck_assert_int_eq(verdict_of_counts(0, &ratio), VERDICT_SAME);
}

TEST(counts_that_overlap_across_the_tolerance_stay_undecided)
{
	double before[] = { 1000, 1100 }, after[] = { 1050, 1200 };
	struct ratio ratio = verdict_count_ratio(before, 2, after, 2);
	ck_assert_int_eq(verdict_of_counts(0.001, &ratio), VERDICT_UNDECIDED);
}

TEST(without_a_test_nothing_is_claimed)
{
	struct verdict_rule rule = { .alpha = 0.05, .same_within = 0.01, .change_beyond = 0.01 };
	struct ratio doubled = { .value = 2, .low = 1.9, .high = 2.1 };
	ck_assert_int_eq(verdict_of(&rule, &doubled, NAN), VERDICT_UNDECIDED);
	ck_assert_int_eq(verdict_of(&rule, &doubled, 0.01), VERDICT_SLOWER);
}

TEST(the_runs_said_to_be_needed_do_decide)
{
	struct verdict_rule rule = { .alpha = 0.05, .same_within = 0.01, .change_beyond = 0.01 };
	uint64_t state = 4;
	int asked = 0, decided = 0;
	for (int comparison = 0; comparison < 800; comparison++) {
		struct verdict_evidence e = compare_walls(&state, 8, 1.05);
		if (verdict_of(&rule, &e.ratio, e.q) != VERDICT_UNDECIDED)
			continue;
		size_t runs = e.runs + verdict_runs_needed(&rule, &e);
		if (runs > RUNS_MAX)
			continue;
		e = compare_walls(&state, runs, 1.05);
		asked++;
		decided += verdict_of(&rule, &e.ratio, e.q) != VERDICT_UNDECIDED;
	}
	ck_assert_int_gt(asked, 50);
	ck_assert_int_gt(decided * 2, asked);
}

TEST(runs_needed_grow_with_the_closeness_to_the_threshold)
{
	struct verdict_rule rule = { .alpha = 0.05, .same_within = 0.01, .change_beyond = 0.01 };
	struct verdict_evidence e = {
		.ratio = { 1.05, 1.00, 1.10 }, .p = 0.01, .q = 0.01, .runs = 10
	};
	size_t clear = verdict_runs_needed(&rule, &e);
	e.ratio = (struct ratio){ 1.03, 0.98, 1.08 };
	ck_assert_uint_gt(verdict_runs_needed(&rule, &e), clear);
	e.ratio = (struct ratio){ 1.01, 0.96, 1.06 };
	ck_assert_uint_eq(verdict_runs_needed(&rule, &e), VERDICT_RUNS_MANY);
}

TEST(a_sample_too_small_for_any_test_is_told_the_smallest_that_is_not)
{
	struct verdict_rule rule = { .alpha = 0.05, .same_within = 0.01, .change_beyond = 0.01 };
	struct verdict_evidence e = {
		.ratio = { 1.5, 0, INFINITY }, .p = NAN, .q = NAN, .runs = 1
	};
	ck_assert_uint_eq(verdict_runs_needed(&rule, &e), 3); /* 4 a side: p = 2/70 */
	e.paired = true;
	ck_assert_uint_eq(verdict_runs_needed(&rule, &e), 5); /* 6 blocks: p = 2/64 */
}

TEST(noise_is_learned_from_changes_that_are_none)
{
	double sizes[] = { 0.001, 0.002, 0.002, 0.003, 0.003, 0.004, 0.004, 0.005 };
	double noise;
	ck_assert(verdict_learn_noise(sizes, ARRAY_LEN(sizes), &noise));
	ck_assert_double_gt(noise, 0.005);
	ck_assert_double_lt(noise, 0.02);
	ck_assert(!verdict_learn_noise(sizes, VERDICT_LEARN_MIN - 1, &noise));
}

TEST(a_ratio_of_counts_is_that_of_the_medians_between_those_of_the_ends)
{
	const double before[] = { 10, 20, 40 }, after[] = { 30, 60, 90 };
	struct ratio ratio = verdict_count_ratio(before, 3, after, 3);
	ck_assert_double_eq(ratio.value, 3);
	ck_assert_double_eq(ratio.low, 0.75);
	ck_assert_double_eq(ratio.high, 9);
}

TEST(a_q_at_the_limit_is_a_discovery)
{
	struct verdict_rule rule = { .alpha = 0.05 };
	const struct ratio slower = { .value = 1.2, .low = 1.1, .high = 1.3 };
	ck_assert_int_eq(verdict_of(&rule, &slower, 0.05), VERDICT_SLOWER);
	ck_assert_int_eq(verdict_of(&rule, &slower, 0.0501), VERDICT_UNDECIDED);
}

/* Half the interval must fit into the room between the effect and the nearest limit, and it shrinks
 * with the square root of the runs. */
TEST(the_runs_that_an_interval_needs_are_those_that_fit_it_into_its_room)
{
	const struct verdict_rule rule = { .alpha = 0.05,
					   .same_within = 0.01,
					   .change_beyond = 0.01 };
	struct verdict_evidence e = {
		.ratio = { 1.03, 0.98, 1.0826 }, .p = 1e-9, .q = 1e-9, .runs = 20
	};
	double reach = log(e.ratio.high / e.ratio.low) / 2, room = log(1.03) - log(1.01);
	double wanted = 20 * (reach / room) * (reach / room);
	ck_assert_uint_eq(verdict_runs_needed(&rule, &e), (size_t)ceil(wanted) - 20);
}
