#include "unit.h"

#include <errno.h>
#include <signal.h>

#include "core/worker/exit_code.h"
#include "run/tell/history.h"

static struct history history;
static const struct entry entry = { .path = "/bin/x" };

static void begin(void)
{
	history_begin(&history, 10);
	history_begin_attempt(&history, 0, 4, 20);
}

static struct history_failure *add(uint32_t rank, struct exit_status status, bool stopped,
				   uint64_t when)
{
	struct history_failure *failure = history_add(&history);
	failure->rank = failure->local_rank = rank;
	failure->status = status;
	failure->stopped = stopped;
	failure->ended_ns = when;
	return failure;
}

static int end(enum attempt_end how)
{
	history_end_attempt(&history, how, 100);
	history_end(&history, 110);
	int code = history_exit_code(&history, &entry);
	history_done(&history);
	return code;
}

TEST(first_cause_is_the_earliest_death_nobody_asked_for)
{
	begin();
	add(0, (struct exit_status){ EXIT_SIGNAL, SIGTERM, false }, true, 30);
	add(1, (struct exit_status){ EXIT_CODE, 1, false }, false, 60);
	add(2, (struct exit_status){ EXIT_SIGNAL, SIGSEGV, false }, false, 50);
	ck_assert_uint_eq(history_cause(history_last(&history))->rank, 2);
	ck_assert_int_eq(end(ATTEMPT_FAILED), 128 + SIGSEGV);
}

TEST(exit_code_is_that_of_the_first_cause)
{
	begin();
	add(0, (struct exit_status){ EXIT_CODE, 3, false }, false, 30);
	ck_assert_int_eq(end(ATTEMPT_FAILED), 3);

	begin();
	struct history_failure *failure =
		add(0, (struct exit_status){ .kind = EXIT_UNKNOWN }, false, 30);
	failure->reason = FAILURE_SPAWN;
	failure->spawn_errno = ENOEXEC;
	ck_assert_int_eq(end(ATTEMPT_FAILED), EXIT_CODE_NOT_EXEC);

	begin();
	add(0, (struct exit_status){ .kind = EXIT_UNKNOWN }, false, 30)->reason = FAILURE_WARDEN;
	ck_assert_int_eq(end(ATTEMPT_FAILED), EXIT_CODE_SYSTEM);

	begin();
	add(0, (struct exit_status){ EXIT_CODE, 0, false }, false, 30)->reason = FAILURE_TIMER;
	ck_assert_int_eq(end(ATTEMPT_FAILED), EXIT_CODE_FAILED);
}

TEST(exit_code_forgets_earlier_attempts)
{
	begin();
	add(0, (struct exit_status){ EXIT_CODE, 3, false }, false, 30);
	history_end_attempt(&history, ATTEMPT_FAILED, 40);
	history_begin_attempt(&history, 1, 4, 50);
	ck_assert_int_eq(end(ATTEMPT_DONE), 0);
}

TEST(exit_code_of_a_stopped_job_is_its_signal)
{
	begin();
	add(0, (struct exit_status){ EXIT_SIGNAL, SIGTERM, false }, true, 30);
	history.stop_signal = SIGINT;
	ck_assert_int_eq(end(ATTEMPT_STOPPED), 130);
	history_begin(&history, 10);
	ck_assert_int_eq(history_exit_code(&history, &entry), EXIT_CODE_SYSTEM);
	history_done(&history);
}
