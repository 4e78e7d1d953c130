/* How a process ended. "Unknown" is a value of its own (the process that could have told is gone),
 * and never counts as success. */
#ifndef CORE_WORKER_EXIT_STATUS_H
#define CORE_WORKER_EXIT_STATUS_H

#include "base/buf.h"

enum exit_kind {
	EXIT_UNKNOWN,
	EXIT_CODE,   /* value is the exit code */
	EXIT_SIGNAL, /* value is the signal */
};

struct exit_status {
	enum exit_kind kind;
	int value;
	bool core_dumped;
};

static inline bool exit_status_eq(const struct exit_status *a, const struct exit_status *b)
{
	return a->kind == b->kind && a->value == b->value;
}

static inline bool exit_status_ok(const struct exit_status *status)
{
	return status->kind == EXIT_CODE && status->value == 0;
}

/* SIGKILL ended it, or a child of the shell that it is: the shell then exits with 137. */
bool exit_status_killed(const struct exit_status *status);

/* From what waitpid() gives. */
struct exit_status exit_status_from_wait(int wait_status);

/* The code a shell would show: the code itself, 128 + signal, EXIT_CODE_SYSTEM for unknown. */
int exit_status_shell_code(const struct exit_status *status);

/* "exit code 3", "SIGSEGV (core dumped)", "unknown". */
void exit_status_describe(const struct exit_status *status, struct buf *out);

#endif
