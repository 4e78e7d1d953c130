#include "unit.h"

#include <math.h>

#include "core/batch/bisect.h"
#include "core/batch/noise.h"

#define COMMITS 64

static double random_unit(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return ((double)((z ^ z >> 31) >> 11) + 0.5) / (double)(1ull << 53);
}

/* A run as a busy host gives it: a floor, a tail, now and then a hiccup. */
static double run_time(uint64_t *state)
{
	double time = 1 - 0.02 * log(random_unit(state));
	return random_unit(state) < 0.1 ? time * 1.3 : time;
}

/* A run on a host whose other CPU is busy for a while and idle for a while, which changes the speed
 * of this one. */
static double shared_run_time(uint64_t *state)
{
	static bool slow;
	slow ^= random_unit(state) < 0.05;
	return (slow ? 1.6 : 1) * (1 + 0.05 * random_unit(state));
}

struct history {
	size_t first_bad;
	double change;
	size_t broken; /* does not build; 0: none */
	double (*run_time)(uint64_t *state);
};

/* Plays a whole search; returns the pairs it took. */
static size_t play(struct bisect *bisect, const struct history *history, uint64_t seed,
		   struct bisect_step *ret_end)
{
	size_t pairs = 0;
	for (;;) {
		bisect_next(bisect, ret_end);
		size_t commit = ret_end->commit;
		if (ret_end->type == BISECT_DONE)
			return pairs;
		if (ret_end->type == BISECT_BUILD) {
			bisect_built(bisect, commit, !history->broken || commit != history->broken);
			continue;
		}
		double factor = commit >= history->first_bad ? history->change : 1;
		double (*run)(uint64_t *) = history->run_time ? history->run_time : run_time;
		bool exact = bisect->rule.exact;
		double good = exact ? 1 : run(&seed);
		bisect_measured(bisect, commit, good, factor * (exact ? 1 : run(&seed)));
		pairs++;
	}
}

TEST(counting_finds_every_commit_with_one_pair_a_step)
{
	struct bisect_rule rule = { .confidence = 0.99, .min_change = 0.001, .exact = true };
	for (size_t bad = 1; bad < COMMITS; bad++) {
		struct bisect bisect;
		struct bisect_step end;
		struct history history = { .first_bad = bad, .change = 1.01 };
		bisect_init(&bisect, COMMITS, &rule);
		ck_assert_uint_le(play(&bisect, &history, 1, &end), 7);
		ck_assert_int_eq(end.result, BISECT_FOUND);
		ck_assert_uint_eq(bisect.first_bad, bad);
		bisect_done(&bisect);
	}
}

/* How many of 100 searches name the right commit, and how many pairs they take in the mean. */
static size_t searches_right(double (*run)(uint64_t *), size_t *ret_pairs)
{
	struct bisect_rule rule = { .confidence = 0.99, .min_change = 0.005 };
	size_t right = 0, pairs = 0;
	for (size_t i = 0; i < 100; i++) {
		struct bisect bisect;
		struct bisect_step end;
		struct history history = { .first_bad = 1 + i * 7 % (COMMITS - 1),
					   .change = 1.03,
					   .run_time = run };
		bisect_init(&bisect, COMMITS, &rule);
		pairs += play(&bisect, &history, i, &end);
		right += end.result == BISECT_FOUND && bisect.first_bad == history.first_bad;
		bisect_done(&bisect);
	}
	*ret_pairs = pairs / 100;
	return right;
}

TEST(noisy_times_find_nearly_every_commit)
{
	size_t pairs;
	ck_assert_uint_ge(searches_right(run_time, &pairs), 98);
	ck_assert_uint_le(pairs, 400);
}

TEST(a_host_that_is_slow_now_and_then_does_not_mislead)
{
	size_t pairs;
	ck_assert_uint_ge(searches_right(shared_run_time, &pairs), 98);
	ck_assert_uint_le(pairs, 600);
}

TEST(an_improvement_is_found_like_a_regression)
{
	struct bisect_rule rule = { .confidence = 0.99, .min_change = 0.005 };
	struct bisect bisect;
	struct bisect_step end;
	struct history history = { .first_bad = 20, .change = 0.9 };
	bisect_init(&bisect, COMMITS, &rule);
	play(&bisect, &history, 3, &end);
	ck_assert_int_eq(end.result, BISECT_FOUND);
	ck_assert_uint_eq(bisect.first_bad, 20);
	bisect_done(&bisect);
}

TEST(a_commit_that_does_not_build_is_passed_by)
{
	struct bisect_rule rule = { .confidence = 0.99, .min_change = 0.001, .exact = true };
	for (size_t broken = 1; broken < COMMITS - 1; broken++) {
		struct bisect bisect;
		struct bisect_step end;
		struct history history = { .first_bad = 32, .change = 1.03, .broken = broken };
		bisect_init(&bisect, COMMITS, &rule);
		play(&bisect, &history, 1, &end);
		/* Where the one beside the culprit, or the culprit, is broken, two are left. */
		bool beside = broken == 31 || broken == 32;
		ck_assert_int_eq(end.result, beside ? BISECT_RANGE : BISECT_FOUND);
		ck_assert_uint_lt(bisect.last_good, 32);
		ck_assert_uint_ge(bisect.first_bad, 32);
		ck_assert_uint_le(bisect.first_bad - bisect.last_good, beside ? 2 : 1);
		bisect_done(&bisect);
	}
}

TEST(without_a_difference_there_is_nothing_to_search)
{
	struct bisect_rule rule = { .confidence = 0.99, .min_change = 0.05 };
	struct bisect bisect;
	struct bisect_step end;
	struct history history = { .first_bad = COMMITS, .change = 1 };
	bisect_init(&bisect, COMMITS, &rule);
	play(&bisect, &history, 5, &end);
	ck_assert_int_eq(end.result, BISECT_NO_CHANGE);
	bisect_done(&bisect);
	history.broken = COMMITS - 1;
	bisect_init(&bisect, COMMITS, &rule);
	play(&bisect, &history, 5, &end);
	ck_assert_int_eq(end.result, BISECT_BROKEN);
	bisect_done(&bisect);
}

TEST(a_search_takes_at_most_the_pairs_that_the_rule_allows)
{
	struct bisect_rule rule = { .confidence = 0.99, .min_change = 0.05, .max_pairs = 9 };
	struct bisect bisect;
	struct bisect_step end;
	struct history history = { .first_bad = COMMITS, .change = 1.02 };
	bisect_init(&bisect, COMMITS, &rule);
	ck_assert_uint_eq(bisect.rule.max_pairs, 9);
	ck_assert_uint_le(play(&bisect, &history, 5, &end), 9);
	bisect_done(&bisect);
	rule.max_pairs = 0;
	bisect_init(&bisect, COMMITS, &rule);
	ck_assert_uint_eq(bisect.rule.max_pairs, BISECT_MAX_PAIRS);
	bisect_done(&bisect);
}

TEST(a_commit_that_fails_at_either_end_ends_the_search)
{
	struct bisect_rule rule = { .confidence = 0.99, .min_change = 0.05, .exact = true };
	struct bisect bisect;
	struct bisect_step step;
	for (size_t end = 0; end < COMMITS; end += COMMITS - 1) {
		bisect_init(&bisect, COMMITS, &rule);
		bisect_next(&bisect, &step);
		ck_assert_int_eq(step.type, BISECT_BUILD);
		ck_assert_uint_eq(step.commit, 0);
		bisect_built(&bisect, 0, true);
		ck_assert_int_eq(bisect.commits[0].state, BISECT_GOOD);
		bisect_built(&bisect, COMMITS - 1, true);
		ck_assert_int_eq(bisect.commits[COMMITS - 1].state, BISECT_BUILT);
		bisect_failed(&bisect, end);
		bisect_next(&bisect, &step);
		ck_assert_int_eq(step.type, BISECT_DONE);
		ck_assert_int_eq(step.result, BISECT_BROKEN);
		bisect_done(&bisect);
	}
}

TEST(a_disturbed_pair_decides_nothing_and_the_interval_has_the_mean)
{
	struct bisect_rule rule = { .confidence = 0.95, .min_change = 0.5 };
	struct bisect bisect;
	bisect_init(&bisect, 2, &rule);
	bisect_built(&bisect, 0, true);
	bisect_built(&bisect, 1, true);
	static const double slower[] = { 1.10, 1.11, 1.12, 1.11, 1.10, 1.12, 1.11, 40 };
	for (size_t i = 0; i < ARRAY_LEN(slower); i++)
		bisect_measured(&bisect, 1, 1, slower[i]);
	const struct bisect_commit *commit = &bisect.commits[1];
	/* Without a quarter at each end: 1.11 four times, 1.12 in place of what is above. */
	ck_assert_double_eq_tol(commit->mean, (3 * log(1.11) + log(1.12)) / 4, 1e-12);
	ck_assert_double_eq_tol(log(commit->ratio.high) - commit->mean,
				commit->mean - log(commit->ratio.low), 1e-12);
	/* Tukey and McLaughlin: 1.11 in place of both ends below, 1.12 above; 3 degrees of freedom
	 */
	double a = log(1.11), b = log(1.12), mean = (5 * a + 3 * b) / 8;
	double spread = sqrt((5 * (a - mean) * (a - mean) + 3 * (b - mean) * (b - mean)) / 7);
	double error = spread / (0.5 * sqrt(8));
	ck_assert_double_eq_tol(log(commit->ratio.high) - commit->mean, error * 3.182446305284263,
				1e-9);
	bisect_done(&bisect);
}

TEST(builds_ahead_are_those_that_can_be_asked_for_next)
{
	struct bisect_rule rule = { .confidence = 0.99, .min_change = 0.001, .exact = true };
	struct bisect bisect;
	size_t ahead[8];
	bisect_init(&bisect, 9, &rule);
	ck_assert_uint_eq(bisect_ahead(&bisect, ahead, 8), 5);
	const size_t expected[] = { 0, 8, 4, 2, 6 };
	for (size_t i = 0; i < ARRAY_LEN(expected); i++)
		ck_assert_uint_eq(ahead[i], expected[i]);
	bisect_built(&bisect, 4, false);
	ck_assert_uint_eq(bisect_ahead(&bisect, ahead, 3), 3);
	ck_assert_uint_eq(ahead[2], 5);
	bisect_done(&bisect);
}

TEST(a_quiet_host_is_good_and_a_busy_one_is_poor)
{
	double values[40];
	uint64_t seed = 4;
	struct noise_report report;
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		values[i] = 1 + 0.002 * random_unit(&seed);
	struct noise_facts facts = { .values = values, .n = ARRAY_LEN(values) };
	facts.disturbed[NOISE_ASLR] = ARRAY_LEN(values);
	noise_judge(&facts, &report);
	ck_assert_int_eq(report.grade, NOISE_GOOD);
	ck_assert_uint_le(report.runs_for_1, 2);
	ck_assert(!report.advise[NOISE_ASLR]);
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		values[i] = 1 + 0.4 * random_unit(&seed);
	facts.disturbed[NOISE_LOAD] = 20;
	facts.disturbed[NOISE_STEAL] = 1;
	noise_judge(&facts, &report);
	ck_assert_int_eq(report.grade, NOISE_POOR);
	ck_assert(report.advise[NOISE_LOAD]);
	ck_assert(!report.advise[NOISE_STEAL]);
	ck_assert_uint_gt(report.runs_for_1, 100);
}

TEST(the_steadier_metric_of_a_busy_host_is_named)
{
	double values[40], cpu[40];
	uint64_t seed = 4;
	struct noise_report report;
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		values[i] = 1 + 0.4 * random_unit(&seed);
		cpu[i] = 1 + 0.04 * random_unit(&seed);
	}
	struct noise_facts facts = { .values = values, .cpu = cpu, .n = ARRAY_LEN(values) };
	noise_judge(&facts, &report);
	ck_assert_double_lt(report.cpu_spread, 0.04);
	ck_assert(report.cpu_steadier);
	facts.cpu = values;
	noise_judge(&facts, &report);
	ck_assert(!report.cpu_steadier);
}

TEST(a_host_that_warms_up_drifts)
{
	double values[40];
	uint64_t seed = 4;
	struct noise_report report;
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		values[i] = 1 + 0.002 * random_unit(&seed) + 0.0005 * (double)i;
	struct noise_facts facts = { .values = values, .n = ARRAY_LEN(values) };
	noise_judge(&facts, &report);
	ck_assert_double_lt(report.drift_p, 0.01);
	ck_assert_double_eq_tol(report.drift, 0.01, 0.003);
	ck_assert_int_eq(report.grade, NOISE_FAIR);
}
