/* State that workers keep over a restart: each host has two slots, as if it had one worker. What is
 * in a slot depends on the state before it and on the round that made it, so that states of
 * different histories differ.
 *
 * 11. A round goes on from a state that each member has, for the ranks that it now has, with the
 *     same contents everywhere, and no newer one is common to what they brought. */
#include <string.h>

#include "sim/world.h"

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t x = a * 0x9e3779b97f4a7c15 + b;
	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9;
	return x ^ x >> 32;
}

static uint64_t ballot_number(struct ballot ballot)
{
	return mix(ballot.epoch, ballot.round);
}

static void commit(struct host *host, uint64_t step)
{
	struct sim_keep *keep = &host->keep;
	keep->slots[1] = keep->slots[0];
	keep->slots[0].state = (struct kept_state){ host->group_ballot, step };
	keep->contents = mix(keep->contents, mix(ballot_number(host->group_ballot), step));
	keep->slots[0].contents = keep->contents;
}

/* No member is more than one commit ahead, and one that is has not begun the next. */
void stash_work(struct host *host)
{
	uint64_t number = ballot_number(host->group_ballot), own = mix(number, host->index);
	uint64_t commits = number % 4 + own % 2, step = host->keep.slots[0].state.step;
	for (uint64_t i = 0; i < commits; i++)
		commit(host, step + 1 + i);
	if (own % 2 == 0 && own % 3 == 0)
		host->keep.slots[1].state = KEPT_STATE_NONE;
}

void stash_read(const struct host *host, struct kept_state ret_states[KEPT_STATES])
{
	for (size_t i = 0; i < KEPT_STATES; i++)
		ret_states[i] = host->keep.slots[i].state;
}

static const struct sim_slot_kept *find(const struct host *host, const struct kept_state *state)
{
	for (size_t i = 0; i < KEPT_STATES; i++)
		if (kept_compare(&host->keep.slots[i].state, state) == 0)
			return &host->keep.slots[i];
	return NULL;
}

static uint64_t go_on(struct world *world, struct host *host, const struct msg_formed *formed)
{
	struct sim_keep *keep = &host->keep;
	const struct sim_slot_kept *slot = find(host, &formed->kept);
	if (!slot) {
		check_broken(world,
			     "h%u is to go on from step %lu of %lu.%lu and has no such state",
			     host->index, formed->kept.step, formed->kept.ballot.epoch,
			     formed->kept.ballot.round);
		return 0;
	}
	if (keep->rank_base != formed->rank_base || keep->world_size != formed->world_size)
		check_broken(world, "h%u is to go on with the state of other ranks", host->index);
	return slot->contents;
}

void stash_begin(struct world *world, struct host *host, const struct msg_formed *formed)
{
	bool none = kept_is_none(&formed->kept);
	uint64_t contents = none ? 0 : go_on(world, host, formed);
	struct round_record *round = check_round(world, host->group_ballot);
	if (round && round->goes_on && round->contents != contents)
		check_broken(world, "h%u goes on with a state of another history", host->index);
	if (round) {
		round->goes_on = true;
		round->contents = contents;
	}
	host->keep = (struct sim_keep){ .slots = { { formed->kept, contents } },
					.contents = contents,
					.rank_base = formed->rank_base,
					.world_size = formed->world_size };
	world->result->resumed += !none;
}

void stash_joins(struct world *world, const struct host *host, const struct kept *kept)
{
	const struct sim_keep *keep = &host->keep;
	bool same = kept->rank_base == keep->rank_base && kept->world_size == keep->world_size;
	for (size_t i = 0; i < KEPT_STATES; i++)
		same = same && kept_compare(&kept->states[i], &keep->slots[i].state) == 0;
	if (!same)
		check_broken(world, "h%u says that it keeps other states than it has", host->index);
}

static bool brought(const struct member *member, const struct kept_state *state)
{
	for (size_t i = 0; i < KEPT_STATES; i++)
		if (kept_compare(&member->memory.kept.states[i], state) == 0)
			return true;
	return false;
}

static bool all_brought(const struct coordinator *c, const struct kept_state *state)
{
	for (size_t i = 0; i < c->roster.count; i++) {
		const struct member *member = c->roster.members[i];
		if (member->in_round && (!brought(member, state) ||
					 member->memory.kept.rank_base != member->rank_base ||
					 member->memory.kept.world_size != c->world_size))
			return false;
	}
	return true;
}

void stash_formed(struct world *world, const struct coordinator *c)
{
	for (size_t i = 0; i < c->roster.count; i++)
		for (size_t s = 0; s < KEPT_STATES; s++) {
			const struct kept_state *state =
				&c->roster.members[i]->memory.kept.states[s];
			if (c->roster.members[i]->in_round && kept_compare(state, &c->kept) > 0 &&
			    all_brought(c, state))
				check_broken(world, "all have step %lu, and go on from %lu",
					     state->step, c->kept.step);
		}
}
