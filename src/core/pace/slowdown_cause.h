/* Why a worker may be slow: what the kernel counts about it, and what that means over some time.
 * Pure. */
#ifndef CORE_PACE_SLOWDOWN_CAUSE_H
#define CORE_PACE_SLOWDOWN_CAUSE_H

#include "base/buf.h"

/* Counters since the worker (or the host) began; those that are not known stay 0. */
struct slowdown {
	uint64_t at_ns;
	uint64_t wait_ns;      /* its threads were ready to run, and waited for a CPU */
	uint64_t throttled_ns; /* its cgroup had used up its quota */
	uint64_t major_faults; /* it waited for the disk, for memory */
	uint64_t steal_ns;     /* the hypervisor gave the host's CPUs to others; of all CPUs */
};

/* Appends what stands out between two moments: "for 31 % of the time it waited for a CPU". If
 * nothing does, that its work or its input takes longer. */
void slowdown_explain(const struct slowdown *before, const struct slowdown *now, uint32_t cpus,
		      struct buf *out);

#endif
