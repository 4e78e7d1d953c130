#include "unit.h"

#include <errno.h>
#include <signal.h>

#include "core/rounds/job_exit.h"
#include "core/worker/exit_code.h"

static int failed(enum failure_reason reason, struct exit_status status, int spawn_errno)
{
	struct cause cause = { .reason = reason, .status = status, .spawn_errno = spawn_errno };
	return job_exit_code(OUTCOME_FAILED, 0, &cause);
}

#define CODE(value) ((struct exit_status){ EXIT_CODE, value, false })
#define SIGNAL(value) ((struct exit_status){ EXIT_SIGNAL, value, false })
#define UNKNOWN ((struct exit_status){ .kind = EXIT_UNKNOWN })

TEST(exit_code_is_that_of_the_first_cause)
{
	ck_assert_int_eq(failed(FAILURE_EXIT, CODE(3), 0), 3);
	ck_assert_int_eq(failed(FAILURE_EXIT, SIGNAL(SIGSEGV), 0), 128 + SIGSEGV);
	ck_assert_int_eq(failed(FAILURE_WARDEN, UNKNOWN, 0), EXIT_CODE_SYSTEM);
	ck_assert_int_eq(job_exit_code(OUTCOME_FAILED, 0, NULL), EXIT_CODE_SYSTEM);
}

TEST(exit_code_of_a_lost_host_is_that_of_its_signal_or_of_a_timeout)
{
	ck_assert_int_eq(failed(FAILURE_LOST, UNKNOWN, 0), EXIT_CODE_TIMEOUT);
	ck_assert_int_eq(failed(FAILURE_LEFT, SIGNAL(SIGTERM), 0), 128 + SIGTERM);
	struct outcome outcome = { .kind = OUTCOME_FAILED,
				   .has_cause = true,
				   .cause = { .reason = FAILURE_LOST } };
	ck_assert_int_eq(job_exit_reason(&outcome, 0), EXIT_REASON_NO_ROUND);
	outcome.cause.status = SIGNAL(SIGTERM);
	ck_assert_int_eq(job_exit_reason(&outcome, 0), EXIT_REASON_SIGNAL);
}

TEST(exit_code_of_a_start_that_failed_is_the_shells)
{
	ck_assert_int_eq(failed(FAILURE_SPAWN, UNKNOWN, ENOENT), EXIT_CODE_NOT_FOUND);
	ck_assert_int_eq(failed(FAILURE_SPAWN, UNKNOWN, ENOEXEC), EXIT_CODE_NOT_EXEC);
	ck_assert_int_eq(failed(FAILURE_SPAWN, UNKNOWN, EACCES), EXIT_CODE_NOT_EXEC);
	ck_assert_int_eq(failed(FAILURE_SPAWN, UNKNOWN, E2BIG), EXIT_CODE_NOT_EXEC);
	ck_assert_int_eq(failed(FAILURE_SPAWN, UNKNOWN, EAGAIN), EXIT_CODE_SYSTEM);
}

TEST(a_worker_that_a_watchdog_gave_up_never_counts_as_success)
{
	ck_assert_int_eq(failed(FAILURE_TIMER, SIGNAL(SIGKILL), 0), 128 + SIGKILL);
	ck_assert_int_eq(failed(FAILURE_TIMER, CODE(0), 0), EXIT_CODE_FAILED);
	ck_assert_int_eq(failed(FAILURE_HANG, UNKNOWN, 0), EXIT_CODE_FAILED);
}

TEST(a_job_whose_workers_left_says_so_whatever_ended_it)
{
	static const enum outcome_kind kinds[] = { OUTCOME_DONE, OUTCOME_SIGNAL, OUTCOME_UNKNOWN };
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct outcome outcome = { .kind = kinds[i], .left = true };
		ck_assert_int_eq(job_exit_reason(&outcome, 0), EXIT_REASON_SAVED);
		ck_assert_int_eq(job_exit_reason(&outcome, SIGTERM), EXIT_REASON_SAVED);
	}
	struct outcome stopped = { .kind = OUTCOME_SIGNAL };
	ck_assert_int_eq(job_exit_reason(&stopped, SIGTERM), EXIT_REASON_SIGNAL);
}

TEST(exit_code_says_what_ended_a_job_without_a_failure)
{
	ck_assert_int_eq(job_exit_code(OUTCOME_DONE, 0, NULL), EXIT_CODE_OK);
	ck_assert_int_eq(job_exit_code(OUTCOME_DONE, SIGTERM, NULL), 143);
	ck_assert_int_eq(job_exit_code(OUTCOME_SIGNAL, SIGINT, NULL), 130);
	ck_assert_int_eq(job_exit_code(OUTCOME_FAILED, SIGINT, NULL), 130);
	ck_assert_int_eq(job_exit_code(OUTCOME_UNKNOWN, SIGTERM, NULL), EXIT_CODE_OK);
	ck_assert_int_eq(job_exit_code(OUTCOME_TIMED_OUT, 0, NULL), EXIT_CODE_TIMEOUT);
	ck_assert_int_eq(job_exit_code(OUTCOME_REFUSED, SIGTERM, NULL), EXIT_CODE_SYSTEM);
}
