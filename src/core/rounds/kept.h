/* State that workers keep in memory over a restart (muster_keep()): which step do all ranks have?
 *
 * Each rank has room for two states and commits each under its step. Ranks that meet between two
 * commits are at most one commit apart, so one step is common to all of them. The round that forms
 * names it, and every rank begins with it.
 *
 * A state is known by the round in which it was committed and by its step: two rounds may commit
 * the same step with different contents. rule: kept */
#ifndef CORE_ROUNDS_KEPT_H
#define CORE_ROUNDS_KEPT_H

#include "core/rounds/ballot.h"

#define KEPT_STATES 2

struct kept_state {
	struct ballot ballot; /* of the round that committed it; none: there is no state */
	uint64_t step;
};

#define KEPT_STATE_NONE ((struct kept_state){ .step = 0 })

/* What all ranks of one host have committed, newest first. */
struct kept {
	struct kept_state states[KEPT_STATES];
	/* whose states these are: the ranks of this host, when they were committed */
	uint32_t rank_base, world_size;
};

static inline bool kept_is_none(const struct kept_state *state)
{
	return ballot_is_none(state->ballot);
}

/* Later rounds first, then later steps; no state comes last. */
int kept_compare(const struct kept_state *a, const struct kept_state *b);

/* Leaves of `states` those that `others` has, too, newest first. */
void kept_meet(struct kept_state states[KEPT_STATES], const struct kept_state others[KEPT_STATES]);

#endif
