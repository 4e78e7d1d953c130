/* Who comes last to the collectives of a group too often, from the records of all its members. All
 * ranks take as long for a step then, because they wait for each other; only the order in which
 * they come tells who holds the others up, though nothing hangs.
 *
 *     arrivals_judge(&join, &laggards);
 *
 * A collective counts if somebody was waited for: the last one came by so much after the others
 * that it matters. The last of those that count are the trials of a sign test
 * (core/pace/straggler.h), which count against a rank that came later than the clocks of the hosts
 * may be wrong. A rank is named only if what the
 * others waited for it is also a part of the time that matters: a program may have many collectives
 * of which one is waited for. */
#ifndef CORE_COLLECTIVES_ARRIVALS_H
#define CORE_COLLECTIVES_ARRIVALS_H

#include "core/collectives/join.h"
#include "core/pace/straggler.h"

struct laggard {
	const struct record_group *group; /* borrowed from a record */
	struct straggler_news news;	  /* of collectives in place of steps */
};

struct laggards {
	struct laggard *items;
	size_t count, cap;
};

#define LAGGARDS_INIT ((struct laggards){ .items = NULL })
void laggards_done(struct laggards *laggards);

/* Of the collectives that all members of a group have come to, and that all records still have:
 * at most RECORD_TIMES_MAX for each group. Groups with a member whose clock is not known are left
 * out. */
void arrivals_judge(const struct join *join, struct laggards *ret_laggards);

#endif
