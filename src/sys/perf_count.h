/* Hardware counters of everything a process starts, without touching how it starts things.
 *
 * The counter hangs on the starter (a warden), disabled there and inherited by its children, where
 * it is switched on by exec: so the programs are counted from their first instruction, with all
 * they fork, and neither the starter nor the way to exec is. A child's count is added when it
 * exits, before its parent can reap it. A counter serves one run: the kernel may hand the starter's
 * own copy to the first child, with which it ends.
 *
 * Many machines have no counters (virtual ones), or forbid them; then opening fails and the caller
 * counts in another way. */
#ifndef SYS_PERF_COUNT_H
#define SYS_PERF_COUNT_H

#include "base/err.h"

enum perf_event {
	PERF_INSTRUCTIONS, /* retired in user mode */
	PERF_TASK_CLOCK,   /* nanoseconds on a CPU; a software counter, there everywhere */
	PERF_EVENT_COUNT,
};

struct perf_reading {
	uint64_t value;
	uint64_t enabled_ns,
		running_ns; /* different: others used the counter too, value is a part */
};

/* A CLOEXEC descriptor, or -errno: ENOENT, EOPNOTSUPP no such counter, EACCES, EPERM forbidden. */
int perf_count_open(pid_t starter, enum perf_event event, struct err *err);

int perf_count_read(int fd, struct perf_reading *ret_reading, struct err *err);

/* What was counted, scaled up when the counter was shared; false when it never ran. *ret_scaled
 * tells that it is an estimate. */
bool perf_count_value(const struct perf_reading *reading, uint64_t *ret_count, bool *ret_scaled);

#endif
