#include "core/rounds/job_exit.h"

#include <errno.h>

/* 126, 127 or 125 for a program that could not be started. */
static int code_of_spawn(int spawn_errno)
{
	switch (spawn_errno) {
	case ENOENT:
		return EXIT_CODE_NOT_FOUND;
	case EACCES:
	case EPERM:
	case ENOEXEC:
	case E2BIG:
		return EXIT_CODE_NOT_EXEC;
	default:
		return EXIT_CODE_SYSTEM;
	}
}

static bool is_watchdog(enum failure_reason reason)
{
	return reason == FAILURE_TIMER || reason == FAILURE_HANG;
}

static int code_of_cause(const struct cause *cause)
{
	if (cause->reason == FAILURE_SPAWN)
		return code_of_spawn(cause->spawn_errno);
	/* A node reports a worker that its watchdog gave up before the worker has ended. */
	if (failure_reason_is_host(cause->reason) && cause->status.kind == EXIT_UNKNOWN)
		return EXIT_CODE_TIMEOUT;
	if (is_watchdog(cause->reason) && cause->status.kind == EXIT_UNKNOWN)
		return EXIT_CODE_FAILED;
	int code = exit_status_shell_code(&cause->status);
	return code ? code : EXIT_CODE_FAILED; /* it was given up, then it ended with 0 */
}

int job_exit_code(enum outcome_kind kind, int stop_signal, const struct cause *first)
{
	if (kind == OUTCOME_TIMED_OUT)
		return EXIT_CODE_TIMEOUT;
	if (kind == OUTCOME_REFUSED)
		return EXIT_CODE_SYSTEM;
	if (kind == OUTCOME_UNKNOWN) /* the work of this node is done */
		return EXIT_CODE_OK;
	if (stop_signal)
		return EXIT_CODE_SIGNAL_BASE + stop_signal;
	if (kind == OUTCOME_DONE) /* a spare is done without having started a worker */
		return EXIT_CODE_OK;
	return first ? code_of_cause(first) : EXIT_CODE_SYSTEM;
}

enum exit_reason job_exit_reason(const struct outcome *outcome, int stop_signal)
{
	enum outcome_kind kind = outcome->kind;
	if (kind == OUTCOME_TIMED_OUT)
		return EXIT_REASON_NO_ROUND;
	if (kind == OUTCOME_REFUSED)
		return EXIT_REASON_SYSTEM;
	if (outcome->left) /* also if a signal, or a lost round, overtook them when they had saved
			    */
		return EXIT_REASON_SAVED;
	if (kind == OUTCOME_UNKNOWN)
		return EXIT_REASON_DONE;
	if (stop_signal)
		return EXIT_REASON_SIGNAL;
	if (kind == OUTCOME_DONE)
		return EXIT_REASON_DONE;
	if (outcome->stuck)
		return EXIT_REASON_BAD_NODE;
	if (outcome->stalled)
		return EXIT_REASON_NO_PROGRESS;
	if (failure_reason_is_host(outcome->cause.reason))
		return outcome->cause.status.kind == EXIT_SIGNAL ? EXIT_REASON_SIGNAL
								 : EXIT_REASON_NO_ROUND;
	/* Only a final cause ends a job before its last restart. */
	bool again = outcome->restarts > 0 && outcome->has_cause && !outcome->cause.no_restart;
	return again ? EXIT_REASON_BUDGET : EXIT_REASON_CAUSE;
}
