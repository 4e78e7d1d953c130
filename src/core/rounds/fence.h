/* Figures of a job's keep-alives, and of the lease of an arbiter that covers them: the program, the
 * election and the simulator have them from here. rule: fence */
#ifndef CORE_ROUNDS_FENCE_H
#define CORE_ROUNDS_FENCE_H

#include "base/clock.h"
#include "base/util.h"

/* An agent kills its workers after so many periods without an answer, unless the user says
 * otherwise; the coordinator waits one longer. */
#define FENCE_LEASE_PERIODS 4
#define FENCE_NODES_PER_PERIOD_S 2000

/* A lease that nobody gave lasts so many times as long as workers live alone; one that is shorter
 * than the second would end between two renewals. */
#define FENCE_LEASE_TIMES 3
#define FENCE_LEASE_TIMES_MIN 2

/* Between two PINGs of an agent. */
static inline uint64_t fence_period_ns(uint32_t max_nodes)
{
	return MAX(NS_PER_S, max_nodes * (NS_PER_S / FENCE_NODES_PER_PERIOD_S));
}

/* What is asked of the arbiter, in whole seconds, for workers that live so long. */
static inline uint64_t fence_lease_s(uint64_t fence_s)
{
	return FENCE_LEASE_TIMES * fence_s;
}

static inline bool fence_is_covered(uint64_t fence, uint64_t lease)
{
	return lease / FENCE_LEASE_TIMES_MIN >= fence;
}

#endif
