#include "unit.h"

#include <signal.h>
#include <stdio.h>

#include "core/worker/exit_code.h"
#include "run/tell/history.h"

static struct history history;

static void begin(void)
{
	history_begin(&history, 10);
	history_begin_attempt(&history, 0, 4, 20);
}

static struct history_failure *add(uint32_t rank, struct exit_status status)
{
	struct history_failure *failure = history_add(&history);
	failure->rank = failure->local_rank = rank;
	failure->status = status;
	failure->pid = 100 + (pid_t)rank;
	failure->id = rank + 1;
	return failure;
}

static int end(enum attempt_end how, enum outcome_kind kind)
{
	history_end_attempt(&history, how, 100);
	history_end(&history, 110);
	int code = history_exit_code(&history, kind);
	history_done(&history);
	return code;
}

TEST(first_cause_is_the_one_that_was_named_not_the_one_written_first)
{
	begin();
	add(0, (struct exit_status){ EXIT_SIGNAL, SIGTERM, false });
	add(1, (struct exit_status){ EXIT_CODE, 1, false });
	ck_assert_ptr_null(history_cause(history_last(&history)));
	add(2, (struct exit_status){ EXIT_SIGNAL, SIGSEGV, false })->first = true;
	ck_assert_uint_eq(history_cause(history_last(&history))->rank, 2);
	ck_assert_int_eq(end(ATTEMPT_FAILED, OUTCOME_FAILED), 128 + SIGSEGV);
}

TEST(what_the_coordinator_names_replaces_what_the_group_named)
{
	begin();
	add(0, (struct exit_status){ EXIT_CODE, 1, false })->first = true;
	add(1, (struct exit_status){ EXIT_CODE, 4, false });
	struct cause here = { .rank = 1, .local_rank = 1, .pid = 101 };
	snprintf(here.name, sizeof(here.name), "%s", history.host);
	history_blame(&history, &here, 90);
	ck_assert_uint_eq(history_last(&history)->count, 2);
	ck_assert_uint_eq(history_cause(history_last(&history))->rank, 1);

	struct cause there = { .rank = 7, .pid = 101, .status = { EXIT_CODE, 9, false } };
	snprintf(there.name, sizeof(there.name), "another");
	history_blame(&history, &there, 90);
	ck_assert(history_cause(history_last(&history))->elsewhere);
	ck_assert_int_eq(end(ATTEMPT_FAILED, OUTCOME_FAILED), 9);
}

TEST(what_is_ruled_later_is_what_counts)
{
	begin();
	struct cause there = { .reason = FAILURE_HANG, .rank = 7, .pid = 101 };
	snprintf(there.name, sizeof(there.name), "another");
	history_blame(&history, &there, 90);
	there.status = (struct exit_status){ EXIT_SIGNAL, SIGKILL, false };
	history_blame(&history, &there, 95);
	ck_assert_uint_eq(history_last(&history)->count, 1);
	ck_assert_int_eq(history_cause(history_last(&history))->status.value, SIGKILL);
	ck_assert_int_eq(end(ATTEMPT_FAILED, OUTCOME_FAILED), 128 + SIGKILL);
}

TEST(exit_code_forgets_earlier_attempts)
{
	begin();
	add(0, (struct exit_status){ EXIT_CODE, 3, false })->first = true;
	history_end_attempt(&history, ATTEMPT_FAILED, 40);
	history_begin_attempt(&history, 1, 4, 50);
	ck_assert_int_eq(end(ATTEMPT_DONE, OUTCOME_DONE), 0);
}

TEST(exit_code_of_a_stopped_job_is_its_signal)
{
	begin();
	add(0, (struct exit_status){ EXIT_SIGNAL, SIGTERM, false });
	history.stop_signal = SIGINT;
	ck_assert_int_eq(end(ATTEMPT_STOPPED, OUTCOME_SIGNAL), 130);
	history_begin(&history, 10);
	ck_assert_int_eq(history_exit_code(&history, OUTCOME_FAILED), EXIT_CODE_SYSTEM);
	history_done(&history);
}

TEST(output_is_kept_for_the_last_attempts_only)
{
	history_begin(&history, 10);
	for (uint32_t i = 0; i < HISTORY_TAILS_MAX + 2; i++) {
		history_begin_attempt(&history, i, 4, 20);
		struct history_failure *failure =
			add(i, (struct exit_status){ EXIT_CODE, 1, false });
		buf_append_str(&failure->tail, "words");
		ck_assert_ptr_eq(history_find(&history, i + 1), failure);
	}
	ck_assert_uint_eq(buf_len(&history_find(&history, 2)->tail), 0);
	ck_assert_str_eq(buf_str(&history_find(&history, 3)->tail), "words");
	ck_assert_ptr_null(history_find(&history, 99));
	history_done(&history);
}

TEST(a_job_that_restarts_for_ever_keeps_its_first_and_last_attempts)
{
	enum { TOTAL = 1000 };
	struct history_forgotten counts;
	history_begin(&history, 10);
	for (uint32_t i = 0; i < TOTAL; i++) {
		history_begin_attempt(&history, i, 4, 20);
		if (i % 2)
			add(i, (struct exit_status){ EXIT_CODE, 1, false })->first = true;
		history_end_attempt(&history, i % 2 ? ATTEMPT_FAILED : ATTEMPT_REGROUP, 30);
	}
	ck_assert_uint_eq(history.count, HISTORY_ATTEMPTS_MAX);
	ck_assert_uint_eq(history.count + history.forgotten.count, TOTAL);
	ck_assert_uint_eq(history.attempts[HISTORY_FIRST_MAX - 1].restart_count,
			  HISTORY_FIRST_MAX - 1);
	ck_assert_uint_eq(history.attempts[HISTORY_FIRST_MAX].restart_count,
			  TOTAL - HISTORY_ATTEMPTS_MAX + HISTORY_FIRST_MAX);
	ck_assert_uint_eq(history_last(&history)->restart_count, TOTAL - 1);
	history_count(&history, true, &counts);
	ck_assert_uint_eq(counts.causes[FAILURE_EXIT], TOTAL / 2);
	ck_assert_uint_eq(counts.others[ATTEMPT_REGROUP], TOTAL / 2);
	history_count(&history, false, &counts);
	ck_assert_uint_eq(counts.causes[FAILURE_EXIT], TOTAL / 2 - 1);
	history_done(&history);
}
