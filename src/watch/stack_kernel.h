/* What the kernel tells about where a process waits, without stopping it: for processes that no
 * program can read the stack of. */
#ifndef WATCH_STACK_KERNEL_H
#define WATCH_STACK_KERNEL_H

#include "core/stacks/stack.h"

/* Adds its threads, each with the kernel function and the system call it waits in, as far as they
 * are told, or its state. */
void stack_kernel_read(pid_t pid, struct stack_process *process);

/* What its main thread does, for a sentence: "stopped by a signal", "waiting for a lock", "in the
 * system call read"; "": that is not known. `ret_odd`: no healthy worker is in this state for long.
 */
void stack_kernel_state(pid_t pid, char *ret_text, size_t size, bool *ret_odd);

/* Why this process may not be traced, with a remedy; "": nothing speaks against it. */
const char *stack_kernel_refusal(pid_t pid);

/* Whether only the ancestors of a process may trace it, and this user has no special rights. */
bool stack_kernel_is_strict(void);

#endif
