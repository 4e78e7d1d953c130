/* The name of a round. Every message between agents and coordinators carries one, and a process
 * that has heard of a higher ballot ignores messages with a lower one.
 *
 * The epoch names the coordinator, the round counts formed groups across epochs. {0, 0} is before
 * everything.
 *
 * Without an arbiter an epoch is a count followed by a random salt in its low bits: a coordinator
 * that has heard of no round (all agents that knew the job have died) must not reuse ballots.
 * rule: salted-epochs */
#ifndef CORE_ROUNDS_BALLOT_H
#define CORE_ROUNDS_BALLOT_H

#include "base/util.h"

struct ballot {
	uint64_t epoch;
	uint64_t round;
};

#define BALLOT_SALT_BITS 20

static inline uint64_t ballot_next_epoch(uint64_t epoch, uint32_t salt)
{
	return ((epoch >> BALLOT_SALT_BITS) + 1) << BALLOT_SALT_BITS |
	       (salt & (((uint32_t)1 << BALLOT_SALT_BITS) - 1));
}

#define BALLOT_MAX ((uint64_t)INT64_MAX) /* of either number: no message has more */

#define BALLOT_NONE ((struct ballot){ 0, 0 })

static inline int ballot_compare(struct ballot a, struct ballot b)
{
	if (a.epoch != b.epoch)
		return a.epoch < b.epoch ? -1 : 1;
	if (a.round != b.round)
		return a.round < b.round ? -1 : 1;
	return 0;
}

static inline bool ballot_eq(struct ballot a, struct ballot b)
{
	return ballot_compare(a, b) == 0;
}

static inline bool ballot_is_none(struct ballot a)
{
	return ballot_eq(a, BALLOT_NONE);
}

#endif
