/* What the kernel says about deaths on this host: the counter of a cgroup, and its log. */
#ifndef RUN_KERNEL_SAID_H
#define RUN_KERNEL_SAID_H

#include "base/util.h"

/* Processes of our cgroup and of those below it that the out-of-memory killer has ended so far; 0
 * where nobody counts them for us. */
uint64_t kernel_oom_kills(void);

/* The lines of the kernel's log since then (CLOCK_MONOTONIC) that tell of out-of-memory kills,
 * devices and disks, to free; NULL: there are none, or we may not read it. */
char *kernel_log_since(uint64_t since_ns);

#endif
