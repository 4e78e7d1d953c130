/* The stacks of the workers of this host, read by py-spy where that is installed.
 *
 * One py-spy process per worker, several at a time. The kernel decides whether py-spy may read them
 * (kernel.yama.ptrace_scope); its error message is shown in place of a stack. */
#ifndef WATCH_STACKS_H
#define WATCH_STACKS_H

#include "base/buf.h"
#include "base/err.h"

#define STACKS_DEFAULT_NS (10 * NS_PER_S)

struct stacks_worker {
	size_t rank;
	pid_t pid;
	bool stopped; /* it was stopped by SIGSTOP: py-spy need not pause it */
};

/* Appends the stacks, equal ones together, the odd ones first (core/lines/stack_groups.h). Blocks:
 * call it in a command or in a thread outside the loop. Names the workers without an answer at the
 * deadline, or before `cancel_fd` (-1: none) becomes readable; leaves no process behind. -ENOENT:
 * there is no py-spy. */
int stacks_collect(const struct stacks_worker *workers, size_t count, uint64_t deadline_ns,
		   int cancel_fd, struct buf *out, struct err *err);

#endif
