#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/fd.h"
#include "core/rounds/job_exit.h"

static struct exit_map parse(const char *text)
{
	struct exit_map map;
	struct err err = ERR_INIT;
	ck_assert_msg(exit_map_parse(text, &map, &err) == 0, "%s", err.msg);
	return map;
}

static int mapped(const char *text, enum exit_reason reason, int code)
{
	struct exit_map map = parse(text);
	return exit_map_apply(&map, reason, code);
}

TEST(every_reason_has_a_row)
{
	for (size_t i = 0; i < EXIT_REASON_COUNT; i++)
		ck_assert(exit_rows[i].name && exit_rows[i].meaning);
}

/* The row as the manual has it, in mdoc. */
static void put_row(struct buf *out, const struct exit_row *row, enum exit_reason reason)
{
	static const char *const advices[] = { [EXIT_ADVICE_NOTHING] = "nothing",
					       [EXIT_ADVICE_FAIL] = "fail",
					       [EXIT_ADVICE_RETRY] = "retry",
					       [EXIT_ADVICE_AGAIN] = "start again" };
	buf_printf(out, ".It %s Ta ", row->name);
	if (row->code < 0)
		buf_append_str(out, reason == EXIT_REASON_SIGNAL ? "128+n" : "its own");
	else
		buf_printf(out, "%d%s", row->code, row->mapped ? " *" : "");
	buf_printf(out, " Ta %s Ta %s\n", advices[row->advice], row->meaning);
}

TEST(the_manual_has_the_table_row_by_row)
{
	AUTO(buf_done) struct buf manual = BUF_INIT;
	struct err err = ERR_INIT;
	if (file_read("man/muster.1", 1 << 20, &manual, &err) < 0)
		unit_skip(err.msg);
	for (size_t i = 0; i < EXIT_REASON_COUNT; i++) {
		AUTO(buf_done) struct buf row = BUF_INIT;
		put_row(&row, &exit_rows[i], (enum exit_reason)i);
		ck_assert_msg(strstr(buf_str(&manual), buf_str(&row)), "%s", buf_str(&row));
	}
}

TEST(without_a_map_causes_and_signals_keep_their_codes)
{
	struct exit_map none = { .given = false };
	ck_assert_int_eq(exit_map_apply(&none, EXIT_REASON_CAUSE, 7), 7);
	ck_assert_int_eq(exit_map_apply(&none, EXIT_REASON_SIGNAL, 143), 143);
	ck_assert_int_eq(exit_map_apply(&none, EXIT_REASON_BUDGET, 7), 7);
	ck_assert_int_eq(exit_map_apply(&none, EXIT_REASON_BAD_NODE, 137), 137);
	ck_assert_int_eq(exit_map_apply(&none, EXIT_REASON_NO_ROUND, 124), EXIT_CODE_TIMEOUT);
	ck_assert_int_eq(exit_map_apply(&none, EXIT_REASON_DONE, 0), 0);
}

TEST(a_name_turns_its_own_code_on_and_may_get_another)
{
	ck_assert_int_eq(mapped("budget", EXIT_REASON_BUDGET, 7), EXIT_CODE_BUDGET);
	ck_assert_int_eq(mapped("saved=0, budget=99", EXIT_REASON_BUDGET, 7), 99);
	ck_assert_int_eq(mapped("saved=0, budget=99", EXIT_REASON_SAVED, 0), 0);
	ck_assert_int_eq(mapped("cause=1", EXIT_REASON_CAUSE, 7), 1);
	ck_assert_int_eq(mapped("no-round=SIGTERM", EXIT_REASON_NO_ROUND, 124), 143);
}

TEST(codes_and_signals_are_mapped_where_the_reason_is_not)
{
	ck_assert_int_eq(mapped("SIGTERM=99,7=8", EXIT_REASON_SIGNAL, 143), 99);
	ck_assert_int_eq(mapped("SIGTERM=99,7=8", EXIT_REASON_CAUSE, 7), 8);
	ck_assert_int_eq(mapped("SIGTERM=99,7=8", EXIT_REASON_CAUSE, 9), 9);
	ck_assert_int_eq(mapped("budget,7=8", EXIT_REASON_BUDGET, 7), EXIT_CODE_BUDGET);
}

TEST(a_map_that_means_nothing_is_refused)
{
	static const char *const wrong[] = { "",      "budge", "7",   "cause", "budget=",
					     "=3",    "7=256", "7=x", "7=8=9", "budget,,saved",
					     "SIGX=1" };
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct exit_map map;
		struct err err = ERR_INIT;
		ck_assert_msg(exit_map_parse(wrong[i], &map, &err) == -EINVAL, "%s", wrong[i]);
	}
}

TEST(the_reason_tells_a_used_budget_from_a_first_failure_and_a_final_one)
{
	struct outcome outcome = { .kind = OUTCOME_FAILED, .has_cause = true };
	ck_assert_int_eq(job_exit_reason(&outcome, 0), EXIT_REASON_CAUSE);
	ck_assert_int_eq(job_exit_reason(&outcome, SIGTERM), EXIT_REASON_SIGNAL);
	outcome.restarts = 2;
	ck_assert_int_eq(job_exit_reason(&outcome, 0), EXIT_REASON_BUDGET);
	outcome.cause.no_restart = true;
	ck_assert_int_eq(job_exit_reason(&outcome, 0), EXIT_REASON_CAUSE);
	outcome.stalled = true;
	ck_assert_int_eq(job_exit_reason(&outcome, 0), EXIT_REASON_NO_PROGRESS);
	ck_assert_int_eq(exit_reason_code(EXIT_REASON_NO_PROGRESS, 7), EXIT_CODE_NO_PROGRESS);
	ck_assert_int_eq(exit_reason_code(EXIT_REASON_BUDGET, 7), 7);
	ck_assert_int_eq(exit_reason_code(EXIT_REASON_CAUSE, 7), 7);
	outcome.stuck = true;
	ck_assert_int_eq(job_exit_reason(&outcome, 0), EXIT_REASON_BAD_NODE);
	outcome.kind = OUTCOME_TIMED_OUT;
	ck_assert_int_eq(job_exit_reason(&outcome, SIGTERM), EXIT_REASON_NO_ROUND);
	outcome.kind = OUTCOME_UNKNOWN;
	ck_assert_int_eq(job_exit_reason(&outcome, SIGTERM), EXIT_REASON_DONE);
}

TEST(zero_is_a_code_that_can_be_mapped)
{
	ck_assert_int_eq(mapped("0=7", EXIT_REASON_CAUSE, 0), 7);
	ck_assert_int_eq(mapped("255=7", EXIT_REASON_CAUSE, 255), 7);
	ck_assert_int_eq(mapped("0=7", EXIT_REASON_CAUSE, 256), 256);
}
