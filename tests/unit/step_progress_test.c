#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "proto/step_pattern.h"
#include "core/worker/goodput.h"
#include "core/worker/standstill.h"
#include "core/worker/worker_page.h"

#define S NS_PER_S
#define MS NS_PER_MS

/* ---- what a worker tells through its page ---- */

static struct step_progress told(uint64_t first, uint64_t count, uint64_t by, uint64_t each_ns)
{
	static struct worker_page page;
	struct step_progress progress;
	memset(&page, 0, sizeof(page));
	for (uint64_t i = 0; i < count; i++)
		worker_page_tell(&page, first + i * by, 100 * S + i * each_ns);
	worker_page_read(&page, &progress);
	return progress;
}

TEST(a_page_without_steps_says_so)
{
	struct step_progress progress = told(0, 0, 0, 0);
	ck_assert_uint_eq(progress.told, 0);
	ck_assert_double_eq(step_progress_rate(&progress, 200 * S), 0);
	ck_assert(step_progress_left_s(&progress, 200 * S) < 0);
}

TEST(a_rate_is_that_of_the_last_steps)
{
	struct step_progress progress = told(1, 3, 1, 500 * MS);
	ck_assert_uint_eq(progress.step, 3);
	ck_assert_uint_eq(progress.first_step, 1);
	ck_assert_double_eq_tol(step_progress_rate(&progress, progress.last_ns), 2, 1e-9);
	progress = told(1, 1000, 1, 10 * MS);
	ck_assert_uint_eq(progress.last_ns - progress.oldest_ns, 63 * 10 * MS);
	ck_assert_double_eq_tol(step_progress_rate(&progress, progress.last_ns), 100, 1e-6);
}

TEST(a_worker_may_tell_every_tenth_step)
{
	struct step_progress progress = told(10, 200, 10, S);
	ck_assert_double_eq_tol(step_progress_rate(&progress, progress.last_ns), 10, 1e-6);
}

TEST(a_worker_that_waits_becomes_slower)
{
	struct step_progress progress = told(1, 11, 1, S);
	ck_assert_double_eq_tol(step_progress_rate(&progress, progress.last_ns + S), 1, 1e-9);
	ck_assert_double_eq_tol(step_progress_rate(&progress, progress.last_ns + 90 * S), 0.1,
				1e-9);
}

TEST(the_time_that_is_left_needs_a_total)
{
	struct step_progress progress = told(1, 11, 1, S);
	ck_assert(step_progress_left_s(&progress, progress.last_ns) < 0);
	progress.total = 111;
	ck_assert_double_eq_tol(step_progress_left_s(&progress, progress.last_ns), 100, 1e-6);
	progress.total = 5;
	ck_assert_double_eq(step_progress_left_s(&progress, progress.last_ns), 0);
}

TEST(sections_have_names_times_and_a_limit)
{
	struct worker_page *page = NEW(struct worker_page);
	struct step_progress progress;
	char name[STEP_PROGRESS_SECTION_MAX + 1];
	int data = worker_page_find_section(page, "data");
	worker_page_enter(page, data, 10 * S);
	worker_page_read(page, &progress);
	ck_assert_str_eq(progress.section, "data");
	ck_assert_int_eq(worker_page_find_section(page, "data"), data);
	worker_page_enter(page, -1, 12 * S);
	worker_page_read(page, &progress);
	ck_assert_str_eq(progress.section, "");
	ck_assert_uint_eq(page->sections[data].ns, 2 * S);
	ck_assert_uint_eq(page->sections[data].count, 1);
	for (int i = 1; i < WORKER_PAGE_SECTIONS; i++) {
		snprintf(name, sizeof(name), "section %d", i);
		ck_assert_int_eq(worker_page_find_section(page, name), i);
	}
	ck_assert_int_eq(worker_page_find_section(page, "one more"), -ENOSPC);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	ck_assert_int_eq(worker_page_find_section(page, name), -ENAMETOOLONG);
	ck_assert_int_eq(worker_page_find_section(page, ""), -ENAMETOOLONG);
	free(page);
}

TEST(a_page_full_of_nonsense_is_read_without_harm)
{
	struct worker_page *page = NEW(struct worker_page);
	struct step_progress progress;
	memset(page, 0xff, sizeof(*page));
	worker_page_read(page, &progress);
	ck_assert(step_progress_rate(&progress, 0) >= 0);
	page->section = 3;
	worker_page_read(page, &progress);
	ck_assert_uint_eq(strlen(progress.section), STEP_PROGRESS_SECTION_MAX - 1);
	free(page);
}

/* ---- standing still ---- */

TEST(a_worker_stands_still_when_no_step_is_told_for_far_longer_than_usual)
{
	struct step_progress progress = told(1, 300, 1, 250 * MS);
	uint64_t last_ns = progress.last_ns;
	ck_assert_uint_eq(standstill_usual_ns(&progress), 250 * MS);
	ck_assert_uint_eq(standstill_of(&progress, last_ns), 0);
	ck_assert_uint_eq(standstill_of(&progress, last_ns + STANDSTILL_LEAST_NS - 1), 0);
	ck_assert_uint_eq(standstill_of(&progress, last_ns + 150 * S), 150 * S);
	ck_assert_uint_eq(standstill_of(&progress, last_ns - 1), 0); /* told meanwhile */
	progress.total = 2000;
	ck_assert(standstill_left_s(&progress, last_ns + S) > 0);
	ck_assert(standstill_left_s(&progress, last_ns + 150 * S) < 0);
	progress.total = 300; /* it has told its last one */
	ck_assert_uint_eq(standstill_of(&progress, last_ns + 150 * S), 0);
}

TEST(slow_steps_are_usual_for_a_worker_that_has_told_them)
{
	struct step_progress progress = told(1, 40, 1, 30 * S);
	ck_assert_uint_eq(standstill_of(&progress, progress.last_ns + 500 * S), 0);
	ck_assert_uint_eq(standstill_of(&progress, progress.last_ns + 600 * S), 600 * S);
	progress = told(1, 3, 1, 250 * MS); /* nothing is usual yet */
	ck_assert_uint_eq(standstill_usual_ns(&progress), 0);
	ck_assert_uint_eq(standstill_of(&progress, progress.last_ns + 600 * S), 0);
}

TEST(a_checkpoint_that_was_seen_makes_the_next_one_no_surprise)
{
	static struct worker_page page;
	struct step_progress progress;
	memset(&page, 0, sizeof(page));
	for (uint64_t i = 0; i < 60; i++)
		worker_page_tell(&page, i, i < 30 ? i * S : 90 * S + i * S);
	worker_page_read(&page, &progress);
	ck_assert_uint_eq(progress.longest_ns, 91 * S);
	ck_assert_uint_eq(standstill_usual_ns(&progress), S);
	ck_assert_uint_eq(standstill_of(&progress, progress.last_ns + 100 * S), 0);
	ck_assert_uint_eq(standstill_of(&progress, progress.last_ns + 182 * S), 182 * S);
}

TEST(a_standstill_is_told_once_and_again_only_when_it_is_much_longer)
{
	struct standstill standstill = { .told = false };
	uint64_t lasted_ns;
	ck_assert_int_eq(standstill_look(&standstill, 0, &lasted_ns), STANDSTILL_NOTHING);
	ck_assert_int_eq(standstill_look(&standstill, 70 * S, &lasted_ns), STANDSTILL_BEGINS);
	ck_assert_int_eq(standstill_look(&standstill, 90 * S, &lasted_ns), STANDSTILL_NOTHING);
	ck_assert_int_eq(standstill_look(&standstill, 0, &lasted_ns), STANDSTILL_ENDS);
	ck_assert_uint_eq(lasted_ns, 90 * S);
	ck_assert_int_eq(standstill_look(&standstill, 100 * S, &lasted_ns), STANDSTILL_NOTHING);
	ck_assert_int_eq(standstill_look(&standstill, 0, &lasted_ns), STANDSTILL_NOTHING);
	ck_assert_int_eq(standstill_look(&standstill, 150 * S, &lasted_ns), STANDSTILL_NOTHING);
	ck_assert_int_eq(standstill_look(&standstill, 210 * S, &lasted_ns), STANDSTILL_BEGINS);
	ck_assert_uint_eq(lasted_ns, 210 * S);
}

TEST(a_job_goes_on_while_one_of_its_ranks_does)
{
	struct step_progress_sum sum = STEP_PROGRESS_SUM_INIT;
	step_progress_add(&sum, &(struct step_progress_rank){ .still_ns = 90 * S, .usual_ns = S });
	step_progress_add(&sum, &(struct step_progress_rank){ .ended = true });
	step_progress_add(&sum, &(struct step_progress_rank){ .still_ns = 80 * S, .usual_ns = MS });
	ck_assert_uint_eq(sum.still_ns, 80 * S);
	ck_assert_uint_eq(sum.usual_ns, MS);
	step_progress_add(&sum, &(struct step_progress_rank){ .still_ns = 0, .usual_ns = S });
	ck_assert_uint_eq(sum.still_ns, 0);
}

/* ---- the workers together ---- */

TEST(the_rank_with_the_least_steps_is_behind)
{
	struct step_progress_sum sum = STEP_PROGRESS_SUM_INIT;
	step_progress_add(&sum, &(struct step_progress_rank){
					.rank = 0, .step = 12, .rate = 2, .left_s = 4 });
	step_progress_add(&sum, &(struct step_progress_rank){
					.rank = 1, .step = 10, .rate = 1, .left_s = 9 });
	step_progress_add(&sum, &(struct step_progress_rank){
					.rank = 2, .step = 11, .total = 19, .left_s = -1 });
	ck_assert_uint_eq(sum.least, 10);
	ck_assert_uint_eq(sum.most, 12);
	ck_assert_int_eq(sum.behind, 1);
	ck_assert_double_eq(sum.rate, 1);
	ck_assert_double_eq(sum.left_s, 9);
	ck_assert_uint_eq(sum.total, 19);
}

TEST(all_have_saved_what_the_last_of_them_has)
{
	struct step_progress_sum sum = STEP_PROGRESS_SUM_INIT;
	step_progress_add(&sum, &(struct step_progress_rank){ .has_saved = true, .saved = 30 });
	step_progress_add(&sum, &(struct step_progress_rank){ .has_saved = true, .saved = 20 });
	ck_assert(sum.has_saved);
	ck_assert_uint_eq(sum.saved, 20);
	step_progress_add(&sum, &(struct step_progress_rank){ .has_saved = false });
	ck_assert(!sum.has_saved);
}

TEST(an_attempt_spans_the_steps_of_its_workers)
{
	struct step_progress_span span = { .workers = 0 };
	step_progress_span_add(&span, &(struct step_progress){ .told = 0 });
	step_progress_span_add(&span, &(struct step_progress){ .told = 5,
							       .first_step = 7,
							       .step = 11,
							       .first_ns = 2 * S,
							       .last_ns = 9 * S,
							       .has_saved = true,
							       .saved = 10 });
	step_progress_span_add(
		&span,
		&(struct step_progress){
			.told = 4, .first_step = 8, .step = 12, .first_ns = S, .last_ns = 8 * S });
	ck_assert_uint_eq(span.workers, 2);
	ck_assert_uint_eq(span.first_step, 7);
	ck_assert_uint_eq(span.least, 11);
	ck_assert_uint_eq(span.most, 12);
	ck_assert_uint_eq(span.first_ns, S);
	ck_assert_uint_eq(span.last_ns, 9 * S);
	ck_assert_uint_eq(span.savers, 1);
	ck_assert_uint_eq(span.saved, 10);
}

/* ---- where the time went ---- */

TEST(the_time_of_a_job_is_split_without_a_rest)
{
	struct goodput goodput;
	struct step_progress_span first = {
		.workers = 1, .first_step = 1, .most = 11, .first_ns = 20 * S, .last_ns = 40 * S
	};
	struct step_progress_span second = {
		.workers = 1, .first_step = 6, .most = 26, .first_ns = 60 * S, .last_ns = 80 * S
	};
	goodput_begin(&goodput, 9 * S);
	/* 10 s to start, 20 s in 10 new steps, 5 s until the end */
	ck_assert_uint_eq(goodput_add(&goodput, 10 * S, 45 * S, &first), 15 * S);
	/* 10 s to start, 20 steps in 20 s, of which 5 (7 to 11) were done before */
	ck_assert_uint_eq(goodput_add(&goodput, 50 * S, 80 * S, &second), 15 * S);
	goodput_end(&goodput, 81 * S);
	ck_assert_uint_eq(goodput.steps, 25);
	ck_assert_uint_eq(goodput.again, 5);
	ck_assert_uint_eq(goodput.steps_ns, 35 * S);
	ck_assert_uint_eq(goodput.again_ns, 5 * S);
	ck_assert_uint_eq(goodput.start_ns, 20 * S);
	ck_assert_uint_eq(goodput.end_ns, 5 * S);
	ck_assert_uint_eq(goodput.wait_ns, 7 * S);
	ck_assert_uint_eq(goodput.total_ns, 72 * S);
}

TEST(an_attempt_without_steps_is_all_start)
{
	struct goodput goodput;
	goodput_begin(&goodput, 0);
	ck_assert_uint_eq(goodput_add(&goodput, S, 4 * S, &(struct step_progress_span){ 0 }),
			  3 * S);
	ck_assert_uint_eq(goodput.start_ns, 3 * S);
	ck_assert_uint_eq(goodput.total_ns, 4 * S);
}

TEST(wrong_times_of_workers_do_not_make_more_time)
{
	struct goodput goodput;
	struct step_progress_span odd = {
		.workers = 1, .first_step = 9, .most = 3, .first_ns = UINT64_MAX, .last_ns = 1
	};
	goodput_begin(&goodput, 0);
	goodput_add(&goodput, S, 4 * S, &odd);
	goodput_end(&goodput, 5 * S);
	ck_assert_uint_eq(goodput.total_ns, 5 * S);
	ck_assert_uint_eq(goodput.steps_ns + goodput.again_ns + goodput.start_ns + goodput.end_ns +
				  goodput.wait_ns,
			  5 * S);
}

TEST(the_wait_for_the_next_attempt_counts_once)
{
	struct goodput goodput;
	goodput_begin(&goodput, S);
	goodput_end(&goodput, 3 * S);
	goodput_end(&goodput, 5 * S);
	ck_assert_uint_eq(goodput.wait_ns, 4 * S);
	ck_assert_uint_eq(goodput.total_ns, 4 * S);
}

TEST(an_attempt_that_repeats_one_step_has_spent_all_its_time_on_that)
{
	struct goodput goodput;
	struct step_progress_span first = {
		.workers = 1, .first_step = 1, .most = 11, .first_ns = S, .last_ns = 11 * S
	};
	struct step_progress_span one = {
		.workers = 1, .first_step = 5, .most = 5, .first_ns = 12 * S, .last_ns = 15 * S
	};
	goodput_begin(&goodput, 0);
	goodput_add(&goodput, 0, 12 * S, &first);
	goodput_add(&goodput, 12 * S, 16 * S, &one);
	ck_assert_uint_eq(goodput.again, 0);
	ck_assert_uint_eq(goodput.again_ns, 3 * S);
	ck_assert_uint_eq(goodput.steps_ns, 10 * S);
}

TEST(steps_that_go_backwards_have_no_rate)
{
	struct step_progress odd = {
		.told = 3, .first_step = 9, .step = 4, .oldest_ns = S, .last_ns = 3 * S
	};
	ck_assert_double_eq(step_progress_rate(&odd, 3 * S), 0);
}

/* ---- what a worker says in its output ---- */

/* The step in `line`; -1: none. */
static int64_t find(const char *text, const char *line, uint64_t *ret_total)
{
	struct step_pattern *pattern;
	struct err err = ERR_INIT;
	uint64_t step;
	ck_assert_msg(step_pattern_new(text, &pattern, &err) == 0, "%s: %s", text, err.msg);
	bool found = step_pattern_find(pattern, line, strlen(line), &step, ret_total);
	step_pattern_free(pattern);
	return found ? (int64_t)step : -1;
}

TEST(a_pattern_finds_the_number_of_the_step)
{
	static const struct {
		const char *pattern, *line;
		int64_t step;
		uint64_t total;
	} cases[] = {
		{ "step (\\d+)", "epoch 3 step 12 loss 0.5", 12, 0 },
		{ "step (\\d+)", "steps 12", -1, 0 },
		{ "step (\\d+)", "step ", -1, 0 },
		{ "step (\\d+)", "step x step 7", 7, 0 },
		{ "step[ =:]+(\\d+)/(\\d+)", "step: 12/100", 12, 100 },
		{ "step (\\d+)(?: of (\\d+))?", "step 5", 5, 0 },
		{ "step (\\d+)(?: of (\\d+))?", "step 5 of 9", 5, 9 },
		{ "(?:step|iter(?:ation)?) (\\d+)", "iteration 44", 44, 0 },
		{ "^(\\d+)\\s", "17\t0.25", 17, 0 },
		{ "^(\\d+)\\s", "at 17 x", -1, 0 },
		{ "(\\d+)$", "a 1 b 23", 23, 0 },
		{ "[Ss]tep.?(\\d+)", "Step#8", 8, 0 },
		{ "\\[(\\d+)\\]", "[31] ok", 31, 0 },
		{ "x*(\\d+)", "xx9", 9, 0 },
		{ "(?:a*)*b(\\d+)", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", -1, 0 },
		{ "(\\d+)", "99999999999999999999999999", -1, 0 },
		{ "([a-z]+)", "word", -1, 0 },
		{ "it=([^ ,]+)", "it=77,", 77, 0 },
		{ "(\\d+)|x", "x", -1, 0 },
		{ "\\{\"step\": (\\d{1,6})\\b", "{\"step\": 17}", 17, 0 },
		{ "{\"step\": (\\d+)", "{\"step\": 18}", 18, 0 },
		{ "[^a-f\\]]=(\\d+)", "]=1 ^=2", 2, 0 },
		{ "[]^[-]=(\\d+)[\\w-]+ (\\d+)", "^=3-a_B 4", 3, 4 },
		{ "[[:upper:]\\t](\\d+)\\D(?:x)(\\d+)", "5\t6\x80x7", 6, 7 },
		{ "\\W\\S<(\\d+)\\>\\.", "a b<8>.", 8, 0 },
		{ "(\\d+) (\\d+) (\\w+)", "1 2 x", 1, 2 },
		{ "step.(\\d+)",
		  "step\xff"
		  "6",
		  6, 0 },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint64_t total = 0;
		int64_t step = find(cases[i].pattern, cases[i].line, &total);
		ck_assert_msg(step == cases[i].step && total == cases[i].total,
			      "'%s' in '%s': %lld of %llu", cases[i].pattern, cases[i].line,
			      (long long)step, (unsigned long long)total);
	}
}

TEST(a_wrong_pattern_is_refused_with_its_place)
{
	static const struct {
		const char *pattern, *why;
	} cases[] = {
		{ "step", "no group" },
		{ "step (\\d+", "Unmatched (" },
		{ "(\\d+))", "a ')' too many at ')'" },
		{ "*(\\d)", "Invalid preceding regular expression" },
		{ "[a(\\d)", "']' is missing" },
		{ "(\\d+?) of", "a second sign of repetition at '+?) of'" },
		{ "(\\d{2}+)", "a second sign of repetition at '{2}+)'" },
		{ "(\\d)\\1", "back-references are not known at '\\1'" },
		{ "\\A(\\d)", "an escape that is not known at '\\A" },
		{ "[\\S](\\d)", "only \\d, \\s and \\w are known in brackets at '\\S]" },
		{ "[+-\\d](\\d)", "a range without an end at '\\d]" },
		{ "[\\w-z](\\d)", "Invalid range end" },
		{ "(\\d{99999})", "Regular expression too big" },
		{ "(?=x)(\\d)", "only (...) and (?:...)" },
		{ "(\\d+)\\", "nothing follows" },
		{ "[z-a](\\d)", "Invalid range end" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct step_pattern *pattern;
		struct err err = ERR_INIT;
		ck_assert_int_eq(step_pattern_new(cases[i].pattern, &pattern, &err), -EINVAL);
		ck_assert_msg(strstr(err.msg, cases[i].why), "'%s': %s", cases[i].pattern, err.msg);
	}
	char long_one[STEP_PATTERN_MAX + 2];
	struct step_pattern *pattern;
	memset(long_one, 'x', sizeof(long_one) - 1);
	long_one[sizeof(long_one) - 1] = '\0';
	ck_assert_int_eq(step_pattern_new(long_one, &pattern, NULL), -EINVAL);
}

TEST(only_the_beginning_of_a_long_line_is_looked_at)
{
	char line[STEP_PATTERN_LINE + 16];
	uint64_t total;
	memset(line, ' ', sizeof(line));
	strcpy(line + STEP_PATTERN_LINE + 2, "step 3");
	ck_assert_int_eq(find("step (\\d+)", line, &total), -1);
	strcpy(line + STEP_PATTERN_LINE - 8, "step 3 ");
	ck_assert_int_eq(find("step (\\d+)", line, &total), 3);
}
