/* Whether a failure is worth a restart, how long to wait before it, and how often the membership
 * may change. Pure arithmetic over settings and counters. */
#ifndef CORE_ROUNDS_POLICY_H
#define CORE_ROUNDS_POLICY_H

#include "core/worker/exit_set.h"
#include "core/rounds/msg.h"

/* True if no restart can help: a listed end, or a program that is missing or not executable.
 * rule: final */
bool policy_is_final(const struct exit_set *no_restart_on, const struct cause *cause);

/* The pause before restart number `restart` (from 1): base, 2 base, 4 base … up to `max_ns`. */
uint64_t policy_backoff_ns(uint64_t base_ns, uint64_t max_ns, uint32_t restart);

/* An attempt that reached `reached` (struct stall) has failed: was there a new step? */
void stall_add(struct stall *stall, uint64_t reached);

/* Limits rounds caused by changes of members: `burst` at once, then one per `interval_ns`.
 * rule: pace */
struct pace {
	uint64_t interval_ns;
	uint32_t burst;
	uint64_t next_ns; /* when the bucket would be full again */
};

/* The earliest time at which one more is allowed while `reserve` of the burst stay untouched. */
uint64_t pace_earliest_ns(const struct pace *pace, uint32_t reserve);
void pace_take(struct pace *pace, uint64_t now_ns);

#endif
