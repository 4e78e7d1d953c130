/* The number of a round. Every message between agents and coordinators carries one, and whoever has
 * heard of a higher one takes no orders under a lower one.
 *
 * The epoch names the coordinator's term, the round counts formed groups and goes on over epochs.
 * {0, 0} is before everything. */
#ifndef CORE_BALLOT_H
#define CORE_BALLOT_H

#include "base/util.h"

struct ballot {
	uint64_t epoch;
	uint64_t round;
};

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
