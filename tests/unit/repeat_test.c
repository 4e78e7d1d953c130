#include "unit.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "core/batch/repeat.h"

#define STEPS_MAX 4000

/* Runs to the end with a constant wall time; the variants as a text, warm-up in small letters. */
static void play(const struct repeat_rules *rules, uint64_t wall_ns, char text[STEPS_MAX])
{
	struct repeat repeat;
	repeat_init(&repeat, rules);
	struct repeat_step step;
	size_t n = 0;
	while (repeat_next(&repeat, &step)) {
		ck_assert_uint_lt(n, STEPS_MAX - 1);
		char letter = step.variant ? step.variant : 'X';
		text[n++] = step.warmup ? letter | 0x20 : letter;
		repeat_record(&repeat, wall_ns, true);
	}
	text[n] = '\0';
	ck_assert_uint_eq(repeat_left(&repeat), 0);
	repeat_done(&repeat);
}

static struct repeat_rules rules_of(uint32_t runs, uint32_t warmup, uint32_t variants)
{
	struct repeat_rules rules;
	repeat_rules_init(&rules);
	rules.runs = runs;
	rules.warmup = warmup;
	rules.variants = variants;
	return rules;
}

TEST(an_order_runs_once_unless_asked_otherwise)
{
	char text[STEPS_MAX];
	struct repeat_rules rules;
	repeat_rules_init(&rules);
	play(&rules, 1, text);
	ck_assert_str_eq(text, "X");
	rules = rules_of(3, 2, 0);
	play(&rules, 1, text);
	ck_assert_str_eq(text, "xxXXX");
}

TEST(variants_come_in_blocks_that_cancel_a_drift)
{
	char text[STEPS_MAX];
	struct repeat_rules rules = rules_of(4, 1, 2);
	play(&rules, 1, text);
	ck_assert_str_eq(text, "abABBAABBA");
}

TEST(three_variants_take_turns_in_who_begins)
{
	char text[STEPS_MAX];
	struct repeat_rules rules = rules_of(6, 1, 3);
	play(&rules, 1, text);
	ck_assert_str_eq(text, "abcABCCBABCAACBCABBAC");
	rules.interleave = REPEAT_RANDOM;
	rules.warmup = 0;
	rules.runs = 60;
	play(&rules, 1, text);
	size_t first[3] = { 0 };
	for (size_t i = 0; i < strlen(text); i += 3) {
		ck_assert_int_eq(text[i] + text[i + 1] + text[i + 2], 'A' + 'B' + 'C');
		first[text[i] - 'A']++;
	}
	for (size_t i = 0; i < ARRAY_LEN(first); i++)
		ck_assert_uint_gt(first[i], 60 / 6);
}

TEST(every_block_has_both_variants_and_random_ones_differ)
{
	struct repeat_rules rules = rules_of(40, 0, 2);
	rules.interleave = REPEAT_RANDOM;
	char text[STEPS_MAX], again[STEPS_MAX];
	play(&rules, 1, text);
	play(&rules, 1, again);
	ck_assert_str_eq(text, again);
	rules.seed = 99;
	play(&rules, 1, again);
	ck_assert_str_ne(text, again);
	for (size_t i = 0; i < strlen(text); i += 2)
		ck_assert_int_ne(text[i], text[i + 1]);
}

TEST(without_a_number_short_commands_run_for_three_seconds_and_long_ones_ten_times)
{
	char text[STEPS_MAX];
	struct repeat_rules rules = rules_of(0, 0, 0);
	play(&rules, 10 * NS_PER_S, text);
	ck_assert_uint_eq(strlen(text), 10);
	play(&rules, 100 * NS_PER_MS, text);
	ck_assert_uint_eq(strlen(text), 30);
	rules.max_runs = 20;
	play(&rules, 100 * NS_PER_MS, text);
	ck_assert_uint_eq(strlen(text), 20);
}

TEST(runs_stop_when_the_median_is_known_precisely_enough)
{
	struct repeat_rules rules = rules_of(0, 0, 0);
	rules.precision = 0.01;
	struct repeat repeat;
	for (int noise = 1; noise <= 40; noise += 13) {
		repeat_init(&repeat, &rules);
		struct repeat_step step;
		uint64_t state = 7;
		while (repeat_next(&repeat, &step)) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			repeat_record(&repeat, 1000000 + (state >> 40) % (uint64_t)(noise * 5000),
				      true);
		}
		bool precise = repeat_reach(&repeat) <= 0.01;
		ck_assert(precise || repeat.taken[0] == REPEAT_MAX_RUNS);
		ck_assert_uint_ge(repeat.taken[0], REPEAT_MIN_RUNS);
		if (noise == 1)
			ck_assert_uint_eq(repeat.taken[0], REPEAT_MIN_RUNS);
		else
			ck_assert_uint_gt(repeat.taken[0], REPEAT_MIN_RUNS);
		repeat_done(&repeat);
	}
}

TEST(runs_that_do_not_count_bring_no_precision)
{
	struct repeat_rules rules = rules_of(0, 0, 0);
	rules.precision = 0.5;
	rules.max_runs = 50;
	struct repeat repeat;
	repeat_init(&repeat, &rules);
	struct repeat_step step;
	while (repeat_next(&repeat, &step))
		repeat_record(&repeat, 1000, false);
	ck_assert_uint_eq(repeat.taken[0], 50);
	ck_assert(isinf(repeat_reach(&repeat)));
	repeat_done(&repeat);
}

TEST(runs_and_blocks_have_numbers_and_warmups_are_numbered_apart)
{
	struct repeat_rules rules = rules_of(4, 2, 2);
	struct repeat repeat;
	struct repeat_step step;
	static const struct {
		uint32_t run;
		int32_t block;
		char variant;
	} expected[] = {
		{ 0, -1, 'A' }, { 0, -1, 'B' }, { 1, -1, 'A' }, { 1, -1, 'B' }, /* warm up */
		{ 0, 0, 'A' },	{ 0, 0, 'B' },	{ 1, 1, 'B' },	{ 1, 1, 'A' },
		{ 2, 2, 'A' },	{ 2, 2, 'B' },	{ 3, 3, 'B' },	{ 3, 3, 'A' },
	};
	repeat_init(&repeat, &rules);
	for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
		ck_assert(repeat_next(&repeat, &step));
		ck_assert_int_eq(step.warmup, i < 4);
		ck_assert_uint_eq(step.run, expected[i].run);
		ck_assert_int_eq(step.block, expected[i].block);
		ck_assert_int_eq(step.variant, expected[i].variant);
		repeat_record(&repeat, 1, true);
	}
	ck_assert(!repeat_next(&repeat, &step));
	ck_assert_uint_eq(repeat.wall_count[0], 0); /* nobody asks for a precision */
	repeat_done(&repeat);
}

TEST(a_block_is_finished_whatever_ends_the_runs)
{
	struct repeat_rules rules = rules_of(0, 0, 3);
	char text[STEPS_MAX];
	rules.min_runs = rules.max_runs = 5;
	play(&rules, 1, text);
	ck_assert_uint_eq(strlen(text), 15);
	rules.min_runs = 10;
	rules.max_runs = 0;
	play(&rules, 10 * NS_PER_S, text);
	ck_assert_uint_eq(strlen(text) % 3, 0);
	ck_assert_uint_eq(strlen(text), 30);
}

TEST(many_runs_are_kept_for_a_precision)
{
	struct repeat_rules rules = rules_of(300, 0, 0);
	struct repeat repeat;
	rules.precision = 0.01;
	repeat_init(&repeat, &rules);
	for (uint64_t i = 0; i < 300; i++)
		repeat_record(&repeat, i, true);
	ck_assert_uint_eq(repeat.wall_count[0], 300);
	for (uint64_t i = 0; i < 300; i++)
		ck_assert_double_eq(repeat.walls[0][i], (double)i);
	ck_assert_uint_ge(repeat.wall_cap[0], 300);
	ck_assert_uint_le(repeat.wall_cap[0], 512); /* doubled as it grows */
	repeat_done(&repeat);
}
