/* Hardware counters of everything that a process starts, without changing how it starts it.
 *
 * The counter belongs to the starter (a warden), disabled there and inherited by its children,
 * where exec switches it on: so it counts the programs from their first instruction, with all they
 * fork, but neither the starter nor the way to exec. The kernel adds a child's count when it exits,
 * before its parent can reap it. A counter serves one run: the kernel may give the starter's own
 * copy to the first child, and it ends with that child.
 *
 * Many machines have no counters (virtual ones), or forbid them; then opening fails and the caller
 * counts in another way. */
#ifndef SYS_PERF_COUNT_H
#define SYS_PERF_COUNT_H

#include "base/err.h"

enum perf_event {
	PERF_INSTRUCTIONS, /* retired in user mode */
	PERF_TASK_CLOCK,   /* nanoseconds on a CPU; a software counter, available everywhere */
	PERF_EVENT_COUNT,
};

struct perf_reading {
	uint64_t value;
	uint64_t enabled_ns,
		running_ns; /* different: other programs used the counter too, so value is a part */
};

/* A CLOEXEC descriptor, or -errno: ENOENT, EOPNOTSUPP no such counter, EACCES, EPERM forbidden. */
int perf_count_open(pid_t starter, enum perf_event event, struct err *err);

int perf_count_read(int fd, struct perf_reading *ret_reading, struct err *err);

/* The count, scaled up when the counter was shared; false when it never ran. *ret_scaled: it is an
 * estimate. */
bool perf_count_value(const struct perf_reading *reading, uint64_t *ret_count, bool *ret_scaled);

#endif
