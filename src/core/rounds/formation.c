#include "core/rounds/formation.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/worker/ranks.h"

static bool is_majority(uint32_t present, uint32_t nodes, uint32_t gone, bool half_is_enough)
{
	uint64_t alive = nodes - MIN(gone, nodes);
	uint64_t twice = 2 * (uint64_t)present;
	return alive == 0 || twice > alive || (twice == alive && half_is_enough);
}

/* All members that are back saw the coordinator of `heard` die. rule: reset */
static bool coordinator_died(const struct coordinator *c)
{
	const struct tally *tally = &c->roster.tally;
	return !c->own && c->coordinator_in_heard && tally->ready_heard > 0 &&
	       tally->ready_witness == tally->ready_heard;
}

uint32_t formation_gone(const struct coordinator *c)
{
	return c->roster.tally.left_heard + coordinator_died(c);
}

bool formation_by_lease(const struct coordinator *c)
{
	return c->config.quorum == QUORUM_LEASE && c->until_ns;
}

/* The same for `base`: a coordinator found dead when the next round formed still counts as dead.
 * Before there is a base, it was one of the MAX agents that stand for it. rule: reset */
static uint32_t dead_in_base(const struct coordinator *c)
{
	struct ballot base = c->roster.base.ballot;
	if (ballot_is_none(base))
		return !ballot_is_none(c->bereft) || coordinator_died(c);
	return ballot_eq(c->bereft, base);
}

static bool enough_of_base(const struct coordinator *c, struct presence present,
			   bool half_is_enough)
{
	const struct roster *roster = &c->roster;
	if (ballot_is_none(roster->base.ballot))
		return is_majority(present.all, c->max_nodes, dead_in_base(c), false);
	bool own_base = c->own && roster->base.ballot.epoch == c->epoch;
	return is_majority(present.in_base, roster->base.nodes,
			   roster->tally.left_base + dead_in_base(c), half_is_enough && own_base);
}

/* rule: quorum. rule: arbiter-tie: only the coordinator that formed the round wins with half. */
static bool enough(const struct coordinator *c, struct presence present, bool half_is_enough)
{
	const struct roster *roster = &c->roster;
	if (c->config.quorum == QUORUM_ANY)
		return true;
	if (formation_by_lease(c))
		return c->holds_lease;
	if (ballot_is_none(roster->heard.ballot))
		return is_majority(present.all, c->max_nodes, 0, false);
	if (!is_majority(present.in_heard, roster->heard.nodes, formation_gone(c),
			 half_is_enough && c->own))
		return false;
	/* `heard` may have reached too few members of its predecessor to have replaced it. */
	return ballot_eq(roster->base.ballot, roster->heard.ballot) ||
	       enough_of_base(c, present, half_is_enough);
}

static struct presence ready(const struct coordinator *c)
{
	const struct tally *tally = &c->roster.tally;
	return (struct presence){ tally->ready_heard, tally->ready_base, roster_ready(&c->roster) };
}

bool formation_has_quorum(const struct coordinator *c)
{
	return enough(c, ready(c), true);
}

/* `heard` never replaces `base`, and no coordinator ever has a quorum of it: more than half of its
 * members, or half of the members of `base`, will never start it. rule: void */
static bool never_succeeds(const struct coordinator *c)
{
	const struct roster *roster = &c->roster;
	const struct tally *tally = &roster->tally;
	if (c->own && is_majority(tally->outside_own, roster->heard.nodes, 0, false))
		return true;
	if (ballot_is_none(roster->base.ballot))
		return is_majority(tally->unaware, c->max_nodes, 0, false);
	uint32_t inside = roster->base.nodes - MIN(tally->outside_heard, roster->base.nodes);
	return !is_majority(inside, roster->base.nodes, 0, false);
}

bool formation_heard_is_void(const struct coordinator *c)
{
	const struct roster *roster = &c->roster;
	return !formation_by_lease(c) && !ballot_eq(roster->base.ballot, roster->heard.ballot) &&
	       never_succeeds(c) && enough_of_base(c, ready(c), true);
}

/* rule: close */
bool formation_may_close(const struct coordinator *c, bool half_is_enough)
{
	struct presence ruled = c->roster.tally.ready_ruled[c->ruling];
	if (ballot_eq(c->voided, c->roster.heard.ballot))
		return enough_of_base(c, ruled, half_is_enough);
	return enough(c, ruled, half_is_enough);
}

static uint32_t shortage(uint32_t present, uint32_t nodes, uint32_t gone)
{
	uint32_t needed = (nodes - MIN(gone, nodes)) / 2 + 1;
	return needed - MIN(present, needed);
}

uint32_t formation_missing(const struct coordinator *c)
{
	const struct roster *roster = &c->roster;
	const struct tally *tally = &roster->tally;
	bool first = ballot_is_none(roster->base.ballot);
	if (formation_by_lease(c) || formation_has_quorum(c))
		return 0;
	uint32_t of_base = first ? shortage(roster_ready(roster), c->max_nodes, dead_in_base(c))
				 : shortage(tally->ready_base, roster->base.nodes,
					    tally->left_base + dead_in_base(c));
	if (ballot_is_none(roster->heard.ballot))
		return of_base;
	return MAX(of_base, shortage(tally->ready_heard, roster->heard.nodes, formation_gone(c)));
}

bool formation_can_have_quorum(const struct coordinator *c)
{
	const struct tally *tally = &c->roster.tally;
	struct presence linked = { tally->linked_heard, tally->linked_base,
				   roster_linked(&c->roster) };
	return enough(c, linked, true);
}

/* Members of the last round first, hosts of last resort last, otherwise by arrival. rule: places */
static int by_claim(const void *a, const void *b)
{
	const struct member *x = *(struct member *const *)a, *y = *(struct member *const *)b;
	if (roster_last_resort(x) != roster_last_resort(y))
		return roster_last_resort(x) ? 1 : -1;
	bool x_was_in = memory_was_in(&x->memory, x->memory.heard.ballot);
	bool y_was_in = memory_was_in(&y->memory, y->memory.heard.ballot);
	if (x_was_in != y_was_in)
		return x_was_in ? -1 : 1;
	return x->arrival < y->arrival ? -1 : x->arrival > y->arrival;
}

/* Takes hosts of last resort only up to MIN. rule: last-resort. rule: excluded */
static size_t pick(const struct coordinator *c, struct member **picked)
{
	size_t count = 0;
	for (size_t i = 0; i < c->roster.count; i++)
		if (c->roster.members[i]->status == MEMBER_READY && !c->roster.members[i]->excluded)
			picked[count++] = c->roster.members[i];
	qsort(picked, count, sizeof(*picked), by_claim);
	uint32_t willing = MAX(c->roster.tally.ready_willing, c->min_nodes);
	count = MIN(count, willing);
	return MIN(count, c->max_nodes);
}

static void assign(struct coordinator *c, struct member **picked, size_t count)
{
	AUTO_FREE struct ranks_node *nodes = NEW_ARRAY(struct ranks_node, count);
	for (size_t i = 0; i < count; i++)
		nodes[i] = (struct ranks_node){
			.node_rank = picked[i]->node_rank,
			.last_rank = picked[i]->memory.group_rank,
			.preferred = agent_id_eq(picked[i]->id, c->config.local),
			.nproc = picked[i]->nproc,
			.role = picked[i]->role,
		};
	c->world_size = ranks_assign(nodes, count); /* rule: ranks */
	for (size_t i = 0; i < count; i++) {
		picked[i]->group_rank = nodes[i].group_rank;
		picked[i]->rank_base = nodes[i].rank_base;
		picked[i]->role_rank_base = nodes[i].role_rank_base;
		picked[i]->role_world_size = nodes[i].role_world_size;
	}
}

/* The newest state that all ranks of the new round have; each must have been its own. A host that
 * is new, or has other ranks than before, has none. rule: kept */
static struct kept_state agree(const struct coordinator *c, struct member **picked, size_t count)
{
	struct kept_state common[KEPT_STATES];
	memcpy(common, picked[0]->memory.kept.states, sizeof(common));
	for (size_t i = 0; i < count; i++) {
		const struct kept *kept = &picked[i]->memory.kept;
		if (kept->rank_base != picked[i]->rank_base || kept->world_size != c->world_size)
			return KEPT_STATE_NONE;
		kept_meet(common, kept->states);
	}
	return common[0];
}

/* A round of our own epoch, above everything heard of. rule: salted-epochs */
static struct ballot next_ballot(struct coordinator *c)
{
	struct ballot heard = c->roster.heard.ballot;
	if (!c->config.epoch && !c->own)
		c->epoch = ballot_next_epoch(heard.epoch, c->config.salt);
	return (struct ballot){ c->epoch, heard.round + 1 };
}

void formation_form(struct coordinator *c)
{
	struct roster *roster = &c->roster;
	AUTO_FREE struct member **picked = NEW_ARRAY(struct member *, roster->count);
	size_t count = pick(c, picked);
	assign(c, picked, count);
	c->kept = count ? agree(c, picked, count) : KEPT_STATE_NONE;

	for (size_t i = 0; i < roster->count; i++)
		roster->members[i]->in_round = false;
	if (coordinator_died(c))
		c->bereft = roster->heard.ballot;
	struct round_ref heard = { next_ballot(c), (uint32_t)count };
	c->own = true;
	c->coordinator_in_heard = false;
	c->coordinator_index = c->config.index;
	c->max_restarts = UINT32_MAX;
	c->done_count = 0;
	c->acked_base = 0;
	roster_set_rounds(roster, &heard, &roster->base);
	for (size_t i = 0; i < count; i++) {
		struct member *member = picked[i];
		member->acked = false;
		roster_enter_round(roster, member);
		roster_set_status(roster, member, MEMBER_ACTIVE);
		c->max_restarts = MIN(c->max_restarts, member->max_restarts);
		c->coordinator_in_heard |= agent_id_eq(member->id, c->config.local);
		if (member->group_rank == 0) {
			memcpy(c->master_host, member->store_host, strlen(member->store_host) + 1);
			c->master_port = member->store_port;
		}
	}
	for (size_t i = 0; i < count; i++)
		if (picked[i]->death_ns == 0)
			formation_ack(c, picked[i]);
}

void formation_msg(const struct coordinator *c, const struct member *member, struct msg *ret_msg)
{
	const struct roster *roster = &c->roster;
	ret_msg->type = MSG_FORMED;
	ret_msg->ballot = roster->heard.ballot;
	ret_msg->formed = (struct msg_formed){
		.base = member->memory.base,
		.coordinator_in_round = c->coordinator_in_heard,
		.coordinator_index = c->coordinator_index,
		.nodes = roster->heard.nodes,
		.group_rank = member->group_rank,
		.rank_base = member->rank_base,
		.world_size = c->world_size,
		.role_rank_base = member->role_rank_base,
		.role_world_size = member->role_world_size,
		.restarts = c->restarts,
		.stall = c->stall,
		.kept = c->kept,
		.max_restarts = c->max_restarts,
		.hosts_store = member->group_rank == 0,
		.master_port = c->master_port,
	};
	memcpy(ret_msg->formed.master_host, c->master_host, sizeof(c->master_host));
}

void formation_forget_acks(struct coordinator *c)
{
	c->acked_base = 0;
	for (size_t i = 0; i < c->roster.count; i++)
		c->roster.members[i]->acked = false;
}

/* Before there is a base, more than half of MAX agents stand for its members. */
static void count_ack(struct coordinator *c, const struct member *member)
{
	bool first = ballot_is_none(c->roster.base.ballot);
	c->acked_base += first || roster_in_base(&c->roster, member);
}

/* When more than half of the predecessor's members know the round, every majority of them contains
 * one that knows it: the round has replaced its predecessor for good. rule: base */
static void confirm(struct coordinator *c)
{
	struct roster *roster = &c->roster;
	uint32_t nodes = ballot_is_none(roster->base.ballot) ? c->max_nodes : roster->base.nodes;
	bool enough_acks = c->config.quorum == QUORUM_ANY || formation_by_lease(c) ||
			   is_majority(c->acked_base, nodes, dead_in_base(c), false);
	if (enough_acks && !ballot_eq(roster->base.ballot, roster->heard.ballot))
		roster_set_rounds(roster, &roster->heard, &roster->heard);
}

void formation_recount_acks(struct coordinator *c)
{
	c->acked_base = 0;
	for (size_t i = 0; i < c->roster.count; i++)
		if (c->roster.members[i]->acked)
			count_ack(c, c->roster.members[i]);
	confirm(c);
}

void formation_ack(struct coordinator *c, struct member *member)
{
	if (member->acked || !roster_in_heard(&c->roster, member) ||
	    ballot_eq(c->roster.base.ballot, c->roster.heard.ballot))
		return;
	member->acked = true;
	count_ack(c, member);
	confirm(c);
}
