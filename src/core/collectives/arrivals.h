/* Who came last to each of the last collectives, from the records of all ranks: a rank that is last
 * again and again holds the others up (core/pace), though nothing hangs.
 *
 *     arrivals_find(&join, offsets, &arrivals);
 *     for each: arrivals.items[i].last came arrivals.items[i].lag_ns after the others
 */
#ifndef CORE_COLLECTIVES_ARRIVALS_H
#define CORE_COLLECTIVES_ARRIVALS_H

#include "core/collectives/join.h"

struct arrival {
	const struct record_group *group; /* borrowed from a record */
	uint64_t seq;
	uint32_t last;	 /* the lowest rank, if several came in the same moment */
	uint64_t lag_ns; /* after the one before it: what the others could have saved */
	uint64_t at_ns;	 /* when it came, by our clock */
};

struct arrivals {
	struct arrival *items; /* in the order of `at_ns` */
	size_t count, cap;
};

#define ARRIVALS_INIT ((struct arrivals){ .items = NULL })
void arrivals_done(struct arrivals *arrivals);

/* Of each collective that all members of its group have come to, and that all records still have:
 * at most RECORD_DONE_MAX and those under way for each group. `offset_ns`, for each rank of the
 * join: the wall clock of its host minus ours; NULL: all ranks have one clock. A lag is wrong by as
 * much as two offsets are. */
void arrivals_find(const struct join *join, const int64_t *offset_ns,
		   struct arrivals *ret_arrivals);

#endif
