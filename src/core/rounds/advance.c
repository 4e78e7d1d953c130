#include "core/rounds/advance.h"

#include <stdio.h>

#include "base/clock.h"
#include "core/rounds/accord.h"
#include "core/rounds/closing.h"
#include "core/rounds/exchange.h"
#include "core/rounds/fence.h"
#include "core/rounds/formation.h"
#include "core/rounds/inspection.h"
#include "core/rounds/losses.h"
#include "core/rounds/pairing.h"

/* All addresses of a host: it may reach the store from any of them. */
static void send_peers(struct step *s, const struct member *to)
{
	const struct roster *roster = &s->c->roster;
	struct msg_peers *peers = NULL;
	for (size_t i = 0; i < roster->count; i++) {
		const struct member *member = roster->members[i];
		for (size_t a = 0; member->in_round && a < member->addr_count; a++) {
			if (!peers || peers->count == MSG_PEERS_MAX) {
				bool first = !peers;
				peers = &step_send(s, to->link, MSG_PEERS)->peers;
				peers->first = first;
			}
			peers->addrs[peers->count++] = member->addrs[a];
		}
	}
}

/* Only form() calls it. rule: formed-once */
static void send_formed(struct step *s, const struct member *member)
{
	if (member->group_rank == 0 && s->c->roster.heard.nodes > 1)
		send_peers(s, member);
	formation_msg(s->c, member, step_send(s, member->link, MSG_FORMED));
}

static void note_formed(struct step *s)
{
	const struct coordinator *c = s->c;
	struct note *note = step_note(s, NOTE_FORMED, NULL);
	note->nodes = c->roster.heard.nodes;
	note->world_size = c->world_size;
	note->restarts = c->restarts;
	note->max_restarts = c->max_restarts;
}

static void form(struct step *s)
{
	struct coordinator *c = s->c;
	bool first = ballot_is_none(c->roster.heard.ballot);
	if (!first && !c->failed)
		pace_take(&c->config.membership, s->now_ns);
	inspection_judge(s);
	formation_form(c);
	note_formed(s);
	inspection_note_needed(s);
	step_forget_round(s);
	exchange_begin(c);
	c->last_call_ns = NS_NEVER;
	c->regather_ns = 0;
	c->lease_noted = false;
	step_set_state(s, COORDINATOR_RUNNING);
	for (size_t i = 0; i < c->roster.count; i++)
		if (c->roster.members[i]->in_round) {
			accord_begin(c, c->roster.members[i]);
			send_formed(s, c->roster.members[i]);
		}
	advance_job(s);
}

/* The smallest budget of the present agents. */
static uint32_t budget(const struct coordinator *c)
{
	uint32_t least = UINT32_MAX;
	for (size_t i = 0; i < c->roster.count; i++)
		if (c->roster.members[i]->status == MEMBER_READY)
			least = MIN(least, c->roster.members[i]->max_restarts);
	return least;
}

/* All present agents were told to count only attempts without progress. rule: progress */
static bool by_progress(const struct coordinator *c)
{
	for (size_t i = 0; i < c->roster.count; i++)
		if (c->roster.members[i]->status == MEMBER_READY &&
		    !c->roster.members[i]->by_progress)
			return false;
	return true;
}

/* 1 + the highest step that the members of the last round know of. */
static uint64_t reached(const struct coordinator *c)
{
	uint64_t most = 0;
	for (size_t i = 0; i < c->roster.count; i++)
		if (c->roster.members[i]->status == MEMBER_READY &&
		    roster_in_heard(&c->roster, c->roster.members[i]))
			most = MAX(most, c->roster.members[i]->memory.reached);
	return most;
}

static uint64_t backoff_ns(const struct coordinator *c)
{
	uint64_t longest = 0;
	for (size_t i = 0; i < c->roster.count; i++) {
		const struct member *member = c->roster.members[i];
		if (member->status == MEMBER_READY)
			longest = MAX(longest,
				      policy_backoff_ns(member->backoff_ns, member->backoff_max_ns,
							c->restarts));
	}
	return longest;
}

/* All members of the last round are back or gone: charges its end, once per ballot. rule: budget */
static void settle(struct step *s)
{
	struct coordinator *c = s->c;
	c->settled = true;
	if (!c->failed) {
		c->stall.reached = MAX(c->stall.reached, reached(c));
		c->not_before_ns = pace_earliest_ns(&c->config.membership, 0);
		return;
	}
	inspection_strike(s, &c->cause);
	pairing_expire(c);
	struct stall stall = c->stall;
	stall_add(&stall, reached(c));
	bool used_up = by_progress(c) ? stall.attempts > budget(c) : c->restarts >= budget(c);
	if (c->cause.no_restart || used_up) {
		c->ruling = RULING_FAILED;
		c->stalled = by_progress(c) && !c->cause.no_restart;
		return;
	}
	c->stall = stall;
	c->restarts++;
	c->not_before_ns = ns_add(s->now_ns, backoff_ns(c));
}

/* All members of the last round that can come back are here. */
static bool reassembled(const struct step *s)
{
	const struct coordinator *c = s->c;
	return s->now_ns >= c->regather_ns ||
	       c->roster.tally.ready_heard + formation_gone(c) >= c->roster.heard.nodes;
}

/* Also a node that is not fit is worth waiting for another: a job lasts longer than a last call. */
static bool last_call_over(struct step *s)
{
	struct coordinator *c = s->c;
	if (c->last_call_ns == NS_NEVER)
		c->last_call_ns = ns_add(s->now_ns, c->config.last_call_ns);
	bool over = s->now_ns >= c->last_call_ns;
	/* Who has not been judged is willing so far. */
	if (!over && c->roster.tally.ready_willing < c->max_nodes)
		return false;
	if (pairing_holds(s))
		return false;
	inspection_judge(s);
	return over || c->roster.tally.ready_willing >= c->max_nodes;
}

/* Agents say of the last round, in which they were or whose ruling they know, that workers left as
 * agreed. */
static bool left(const struct coordinator *c)
{
	for (size_t i = 0; i < c->roster.count; i++) {
		const struct memory *memory = &c->roster.members[i]->memory;
		if (c->roster.members[i]->status == MEMBER_READY && memory->left &&
		    ballot_eq(memory->heard.ballot, c->roster.heard.ballot))
			return true;
	}
	return false;
}

/* Nodes enough are here, but their workers could outlive the lease. rule: fence */
static void note_lease(struct step *s)
{
	struct coordinator *c = s->c;
	if (c->holds_lease || c->lease_noted || !formation_by_lease(c) ||
	    roster_usable(&c->roster) < c->min_nodes)
		return;
	c->lease_noted = true;
	struct note *note = step_note(s, NOTE_LEASE, NULL);
	snprintf(note->refused, sizeof(note->refused),
		 fence_is_covered(c->fence_ns, c->lease_ns)
			 ? "the lease of %.1f s is not renewed, and workers may live %.1f s "
			   "without an answer; is what chooses the coordinator alive?"
			 : "the lease of %.1f s is too short, because workers may live %.1f s "
			   "without an answer; make it longer, or keep_alive_interval shorter",
		 (double)c->lease_ns / (double)NS_PER_S, (double)c->fence_ns / (double)NS_PER_S);
}

static void rule_failed(struct step *s)
{
	s->c->ruling = RULING_FAILED;
	s->c->lost_ns = NS_NEVER;
	closing_rule(s, RULING_FAILED);
	advance_job(s);
}

/* Too few nodes are left. Those that were lost may be started again, but not for ever; nor need
 * all others find out on their own that they are not. rule: lost-host */
static void wait_for_lost(struct step *s)
{
	struct coordinator *c = s->c;
	uint64_t patience_ns = losses_patience_ns(c);
	if (c->lost_ns == NS_NEVER && patience_ns) {
		c->lost_since_ns = s->now_ns;
		c->lost_ns = ns_add(s->now_ns, patience_ns);
		struct note *note = step_note(s, NOTE_WAITS, NULL);
		note->nodes = roster_usable(&c->roster);
		note->missing = c->min_nodes - note->nodes;
		note->has_cause = losses_cause(s, &note->cause);
		note->left_ns = patience_ns;
	}
	if (s->now_ns < c->lost_ns)
		return;
	struct cause cause = { .reason = FAILURE_LOST,
			       .no_restart = true,
			       .rank = -1,
			       .local_rank = -1,
			       .group_rank = -1,
			       .world_size = c->world_size };
	losses_cause(s, &cause);
	step_note_cause(s, &cause, s->now_ns - MIN(s->now_ns, cause.age_ns));
	rule_failed(s);
}

static void regather(struct step *s)
{
	struct coordinator *c = s->c;
	if (roster_ready(&c->roster) == 0 || !reassembled(s))
		return;
	bool has_quorum = formation_has_quorum(c);
	if (!has_quorum && !formation_heard_is_void(c)) {
		note_lease(s);
		return;
	}
	/* A void round decides nothing, unless its coordinator has made a ruling: agents that are
	 * not here may have acted on that. */
	c->failed &= has_quorum;
	c->voided = has_quorum ? BALLOT_NONE : c->roster.heard.ballot;
	enum ruling inherited = closing_inherited(c);
	if (inherited != RULING_NONE) {
		c->left = left(c);
		closing_rule(s, inherited);
		advance_job(s);
		return;
	}
	if (!c->settled)
		settle(s);
	if (c->ruling != RULING_NONE) {
		rule_failed(s);
	} else if (roster_usable(&c->roster) < c->min_nodes) {
		if (has_quorum)
			wait_for_lost(s);
	} else {
		c->lost_ns = NS_NEVER;
		if (s->now_ns >= c->not_before_ns && !pairing_holds(s))
			form(s);
	}
}

static void advance_gathering(struct step *s)
{
	struct coordinator *c = s->c;
	if (!c->has_job || roster_busy(&c->roster) > 0 || s->now_ns < c->moved_ns)
		return;
	if (!ballot_is_none(c->roster.heard.ballot)) {
		regather(s);
		return;
	}
	if (roster_usable(&c->roster) < c->min_nodes) {
		c->last_call_ns = NS_NEVER;
		return;
	}
	if (!last_call_over(s))
		return;
	if (formation_has_quorum(c))
		form(s);
	else
		note_lease(s);
}

/* Gathers newcomers for a while and lets them in together, but not once a member is done.
 * rule: scale-up */
static void advance_running(struct step *s)
{
	struct coordinator *c = s->c;
	if (c->roster.tally.ready_willing == 0 || c->done_count > 0 ||
	    c->accord.plan.phase != PLAN_NONE || c->roster.heard.nodes >= c->max_nodes) {
		c->scale_up_ns = NS_NEVER;
		return;
	}
	if (c->scale_up_ns == NS_NEVER)
		c->scale_up_ns = MAX(ns_add(s->now_ns, c->config.scale_up_delay_ns),
				     pace_earliest_ns(&c->config.membership,
						      c->config.membership.burst / 2));
	if (s->now_ns < c->scale_up_ns)
		return;
	inspection_judge(s);
	if (c->roster.tally.ready_willing > 0)
		step_stop_round(s, STOP_MEMBERS);
	else
		c->scale_up_ns = NS_NEVER;
}

static void advance_stopping(struct step *s)
{
	if (roster_busy(&s->c->roster) > 0)
		return;
	step_set_state(s, COORDINATOR_GATHERING);
	advance_job(s);
}

void advance_job(struct step *s)
{
	static void (*const by_state[])(struct step *) = {
		[COORDINATOR_GATHERING] = advance_gathering,
		[COORDINATOR_RUNNING] = advance_running,
		[COORDINATOR_STOPPING] = advance_stopping,
		[COORDINATOR_CLOSING] = closing_advance,
		[COORDINATOR_CLOSED] = closing_linger,
		[COORDINATOR_DEPOSED] = NULL,
	};
	static_assert(ARRAY_LEN(by_state) == COORDINATOR_STATE_COUNT, "every state needs an entry");
	if (by_state[s->c->state])
		by_state[s->c->state](s);
}
