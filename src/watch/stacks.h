/* The stacks of the workers of this host and of their child processes.
 *
 * Programs read them, several at a time: py-spy those of Python, with native frames; eu-stack or
 * gdb those of any other program. Each holds its process still for a moment. A program that is
 * missing, fails or hangs is replaced by the next, and in the end by what the kernel tells; a note
 * says what is missing then, and the remedy. */
#ifndef WATCH_STACKS_H
#define WATCH_STACKS_H

#include "base/clock.h"
#include "core/stacks/stack_set.h"

#define STACKS_DEFAULT_NS (10 * NS_PER_S)

struct stacks_worker {
	size_t rank;
	pid_t pid;
	bool stopped;	    /* by SIGSTOP: it need not be held still, and py-spy could not */
	bool works, prints; /* lately; for those who ask whether it hangs */
};

/* Adds a stack for each worker and child process to `set`. Blocks: call it in a command or in a
 * thread outside the loop. At the deadline, or when `cancel_fd` (-1: none) becomes readable, the
 * rest has what the kernel tells. Leaves no process behind. */
void stacks_read(const struct stacks_worker *workers, size_t count, uint64_t deadline_ns,
		 int cancel_fd, struct stack_set *set);

#endif
