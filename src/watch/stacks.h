/* Where the workers of this host stand: their stacks by py-spy, where that is installed.
 *
 * Each worker is looked at by a process of its own, several at a time. That py-spy may look at all
 * is the kernel's decision (kernel.yama.ptrace_scope); what it says instead of a stack is shown in
 * its place.
 */
#ifndef WATCH_STACKS_H
#define WATCH_STACKS_H

#include "base/buf.h"
#include "base/err.h"

#define STACKS_DEFAULT_NS (10 * NS_PER_S)

struct stacks_worker {
	size_t rank;
	pid_t pid;
	bool stopped; /* it stands still by SIGSTOP: there is no need to hold it */
};

/* Appends the stacks, like ones together, the odd ones first (core/lines/stack_groups.h). Waits:
 * for commands and for threads outside the loop. Who does not answer by the deadline, or before
 * `cancel_fd` (-1: none) becomes readable, is named as such; no process is left. -ENOENT: there is
 * no py-spy. */
int stacks_collect(const struct stacks_worker *workers, size_t count, uint64_t deadline_ns,
		   int cancel_fd, struct buf *out, struct err *err);

#endif
