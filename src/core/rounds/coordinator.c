#include "core/rounds/coordinator.h"

#include <stdlib.h>

#include "base/clock.h"
#include "core/rounds/accord.h"
#include "core/rounds/admission.h"
#include "core/rounds/closing.h"
#include "core/rounds/formation.h"
#include "core/rounds/inspection.h"

/* The columns of the table: events, and each type of message. */
enum input {
	IN_JOIN,
	IN_FAILED,
	IN_DONE,
	IN_LEAVE,
	IN_PING,
	IN_NOTICE,
	IN_VOTE,
	IN_LINK_DOWN,
	IN_TIMER,
	IN_SUPERSEDED,
	IN_LEASE,
	IN_RECORDED,
	INPUT_COUNT,
};

typedef void handler(struct step *s);

static void advance(struct step *s);

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

/* Rounds. */

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
	c->last_call_ns = NS_NEVER;
	c->regather_ns = 0;
	step_set_state(s, COORDINATOR_RUNNING);
	for (size_t i = 0; i < c->roster.count; i++)
		if (c->roster.members[i]->in_round)
			send_formed(s, c->roster.members[i]);
	advance(s);
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
	if (s->now_ns >= c->last_call_ns)
		return true;
	if (roster_usable(&c->roster) < c->max_nodes)
		return false;
	inspection_judge(s);
	return c->roster.tally.ready_willing >= c->max_nodes;
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

static void regather(struct step *s)
{
	struct coordinator *c = s->c;
	if (roster_ready(&c->roster) == 0 || !reassembled(s))
		return;
	bool has_quorum = formation_has_quorum(c);
	if (!has_quorum && !formation_heard_is_void(c))
		return;
	/* A void round decides nothing, unless its coordinator has made a ruling: agents that are
	 * not here may have acted on that. */
	c->failed &= has_quorum;
	c->voided = has_quorum ? BALLOT_NONE : c->roster.heard.ballot;
	enum ruling inherited = closing_inherited(c);
	if (inherited != RULING_NONE) {
		c->left = left(c);
		closing_rule(s, inherited);
		advance(s);
		return;
	}
	if (!c->settled)
		settle(s);
	if (c->ruling != RULING_NONE) {
		closing_rule(s, c->ruling);
		advance(s);
	} else if (roster_usable(&c->roster) >= c->min_nodes && s->now_ns >= c->not_before_ns) {
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
	if (last_call_over(s) && formation_has_quorum(c))
		form(s);
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
	advance(s);
}

/* Acts on the current counts. */
static void advance(struct step *s)
{
	static handler *const by_state[] = {
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

static bool is_active(const struct member *member)
{
	return member->in_round && member->status == MEMBER_ACTIVE;
}

static void on_join(struct step *s)
{
	if (admission_join(s))
		advance(s);
}

/* A member of the running round that joins again has lost its workers. */
static void running_join(struct step *s)
{
	struct coordinator *c = s->c;
	struct member *known = roster_by_id(&c->roster, s->event->msg->join.node->id);
	bool was_active = known && is_active(known);
	struct member *member = admission_join(s);
	if (!member)
		return;
	if (was_active && member->status == MEMBER_READY) {
		c->failed =
			member->memory.work == WORK_FAILED && roster_in_heard(&c->roster, member);
		step_stop_round(s, c->failed ? STOP_FAILURE : STOP_MEMBERS);
	}
	advance(s);
}

static void closing_join(struct step *s)
{
	struct member *member = admission_join(s);
	if (!member)
		return;
	closing_tell(s, member);
	advance(s);
}

static void closed_join(struct step *s)
{
	struct member *member = admission_join(s);
	if (member)
		closing_send(s, member);
}

/* Members of the round. */

/* The sender, if it is a member of the round that its message names. */
static struct member *sender_in_round(const struct step *s)
{
	struct member *member = roster_by_link(&s->c->roster, s->event->link);
	if (!member || !member->in_round ||
	    !ballot_eq(s->event->msg->ballot, s->c->roster.heard.ballot))
		return NULL;
	member->heard_ns = s->now_ns;
	return member;
}

/* Its host becomes one of last resort when it joins again. rule: culprit */
static void exclude_culprit(struct step *s, uint32_t rank)
{
	struct roster *roster = &s->c->roster;
	for (size_t i = 0; i < roster->count; i++) {
		const struct member *member = roster->members[i];
		if (!member->in_round || rank < member->rank_base ||
		    rank - member->rank_base >= member->nproc)
			continue;
		step_note(s, NOTE_EXCLUDED, member->name);
		roster_shun(roster, member);
		return;
	}
}

static void note_blame(struct step *s, const struct blame *blame)
{
	struct coordinator *c = s->c;
	if (c->blame.named || *c->blame.text)
		return;
	c->blame = *blame;
	if (blame->named && blame->exclude)
		exclude_culprit(s, blame->rank);
}

static bool note_failure(struct step *s)
{
	const struct cause *cause = &s->event->msg->failed.cause;
	struct member *member = sender_in_round(s);
	if (!member || !(step_stoppable(member) || member->status == MEMBER_STOPPING))
		return false;
	step_note_cause(s, cause, s->now_ns - MIN(s->now_ns, cause->age_ns));
	note_blame(s, &s->event->msg->failed.blame);
	if (step_stoppable(member))
		roster_set_status(&s->c->roster, member, MEMBER_STOPPING);
	return true;
}

static void running_failed(struct step *s)
{
	if (!note_failure(s))
		return;
	s->c->failed = true;
	step_stop_round(s, STOP_FAILURE);
	advance(s);
}

static void stopping_failed(struct step *s)
{
	note_failure(s);
}

static void running_done(struct step *s)
{
	struct coordinator *c = s->c;
	struct member *member = sender_in_round(s);
	if (!member || member->status != MEMBER_ACTIVE)
		return;
	roster_set_status(&c->roster, member, MEMBER_DONE);
	c->left |= s->event->msg->done.left;
	if (++c->done_count == c->roster.heard.nodes)
		closing_rule(s, RULING_DONE);
	else
		accord_review(s);
	advance(s);
}

/* The agent was, or may have been, a member of `heard`, and FORMED did not reach it. We do not tell
 * it of the round: another coordinator could not know then that it is not a spare. rule: void */
static bool missed_formed(const struct coordinator *c, const struct member *member)
{
	const struct roster *roster = &c->roster;
	if (roster_in_heard(roster, member) || c->state >= COORDINATOR_CLOSING)
		return false;
	if (c->own)
		return member->in_round;
	return ballot_is_none(roster->base.ballot) || roster_in_base(roster, member);
}

static void on_ping(struct step *s)
{
	struct coordinator *c = s->c;
	const struct msg *ping = s->event->msg;
	struct member *member = roster_by_link(&c->roster, s->event->link);
	if (!member)
		return;
	if (formation_by_lease(c) && !c->holds_lease && member->status != MEMBER_READY)
		return;
	member->heard_ns = s->now_ns;
	if (ping->ping.stamp <= s->now_ns)
		member->fresh_ns = MAX(member->fresh_ns, ping->ping.stamp);
	if (ballot_eq(ping->ballot, c->roster.heard.ballot))
		formation_ack(c, member);
	step_send(s, s->event->link, MSG_PONG)->pong = (struct msg_pong){
		.coordinator_id = c->config.id,
		.cookie = ping->ping.cookie,
		.stamp = s->now_ns,
		.heard = missed_formed(c, member) ? member->memory.heard : c->roster.heard,
		.base = c->roster.base,
		.wait = c->state == COORDINATOR_RUNNING || s->now_ns < c->not_before_ns,
		.present = roster_linked(&c->roster),
		.missing = c->state == COORDINATOR_GATHERING ? formation_missing(c) : 0,
	};
}

/* An agent outside the round may know it from our last PONG: now it can be told the ruling. */
static void closing_ping(struct step *s)
{
	struct roster *roster = &s->c->roster;
	struct member *member = roster_by_link(roster, s->event->link);
	on_ping(s);
	if (!member || !ballot_eq(s->event->msg->ballot, roster->heard.ballot))
		return;
	roster_hears(roster, member);
	closing_tell(s, member);
}

/* Workers live on our answers for as long as our lease must still last. rule: fence */
static bool lasts(const struct coordinator *c, uint64_t now_ns)
{
	return ns_add(now_ns, c->fence_ns) < c->until_ns;
}

/* The missing members may be forming their own round by now, so there is no time for a graceful
 * stop. Without their links the agents kill their workers, and come back or fall silent.
 * rule: minority */
static void abandon_round(struct step *s)
{
	struct roster *roster = &s->c->roster;
	if (s->c->state == COORDINATOR_RUNNING)
		step_note(s, NOTE_STOPPED, NULL);
	for (size_t i = roster->count; i-- > 0;) {
		struct member *member = roster->members[i];
		if (!step_stoppable(member) && member->status != MEMBER_STOPPING)
			continue;
		step_act(s, COORDINATOR_HANG_UP, member->link);
		roster_doubt(roster, member);
	}
	step_set_state(s, COORDINATOR_GATHERING);
}

/* A member has gone, or is about to; `active`: it had workers in this round. */
static void after_loss(struct step *s, bool active)
{
	struct coordinator *c = s->c;
	if (active && c->state == COORDINATOR_RUNNING)
		step_stop_round(s, STOP_MEMBERS);
	bool has_workers = c->state == COORDINATOR_RUNNING || c->state == COORDINATOR_STOPPING;
	if (has_workers && !formation_can_have_quorum(c))
		abandon_round(s);
}

static void note_loss(struct step *s, const struct member *member)
{
	s->c->tie_ns =
		MAX(s->c->tie_ns, ns_add(s->now_ns, member->death_ns + member->death_ns / 5));
}

static void lose(struct step *s, struct member *member, bool left)
{
	bool active = is_active(member);
	if (active)
		roster_count_loss(&s->c->roster, member);
	note_loss(s, member);
	roster_part(&s->c->roster, member, left);
	after_loss(s, active);
}

/* The link is unusable. A member with workers becomes doubtful rather than absent: its workers may
 * run until the lease expires. */
static void lose_link(struct step *s, struct member *member)
{
	if (member->status == MEMBER_READY) {
		lose(s, member, false);
		return;
	}
	bool active = is_active(member);
	if (active)
		roster_count_loss(&s->c->roster, member);
	note_loss(s, member);
	roster_doubt(&s->c->roster, member);
	after_loss(s, active);
}

static void on_leave(struct step *s)
{
	struct coordinator *c = s->c;
	const struct msg_leave *leave = &s->event->msg->leave;
	struct member *member = roster_by_link(&c->roster, s->event->link);
	if (step_outranked(s, s->event->msg->ballot)) {
		step_down(s);
		return;
	}
	if (!member)
		return;
	if (leave->why != LEAVE_CLOSED)
		step_note(s, NOTE_LEFT, member->name)->leave = leave->why;
	bool active = is_active(member), elsewhere = leave_is_elsewhere(leave->why);
	note_loss(s, member);
	if (leave->empty) {
		roster_part(&c->roster, member, !elsewhere);
	} else {
		roster_set_status(&c->roster, member, MEMBER_LEAVING);
		member->elsewhere = elsewhere;
	}
	after_loss(s, active);
	advance(s);
}

static void on_link_down(struct step *s)
{
	struct member *member = roster_by_link(&s->c->roster, s->event->link);
	if (!member)
		return;
	if (member->status != MEMBER_LEAVING)
		step_note(s, NOTE_LOST, member->name)->why = s->event->why;
	/* rule: unreachable: a member that is unreachable, or left with dying workers, is not dead.
	 * rule: reset: a reset ends its part in the round at once but does not prove its death;
	 * only a member that sent LEAVE will not join another coordinator. */
	if (s->event->dead && !member->elsewhere)
		lose(s, member, member->status == MEMBER_LEAVING);
	else
		lose_link(s, member);
	advance(s);
}

/* rule: silence-first: after a pause, messages may come from agents that have left since. */
static void part_silent(struct step *s)
{
	struct roster *roster = &s->c->roster;
	bool any = false;
	for (struct member *member; (member = roster_next_silent(roster, s->now_ns)); any = true) {
		if (member->link) {
			step_note(s, NOTE_LOST, member->name);
			step_act(s, COORDINATOR_HANG_UP, member->link);
		}
		if (member->status == MEMBER_LEAVING)
			lose(s, member, !member->elsewhere);
		else
			lose_link(s, member);
	}
	if (any)
		advance(s);
}

/* A JOIN on the link of a member that cannot come from the same agent, which keeps its id and
 * counts its links up. The member must not stay behind without the link. */
static bool contradicts_member(const struct step *s)
{
	if (s->event->type != COORDINATOR_MSG || s->event->msg->type != MSG_JOIN)
		return false;
	const struct msg_join *join = &s->event->msg->join;
	const struct member *member = roster_by_link(&s->c->roster, s->event->link);
	return member &&
	       (!agent_id_eq(member->id, join->node->id) || join->attempt < member->attempt ||
		admission_is_beyond_reason(s->c, join->memory.heard.ballot));
}

/* A JOIN on a link that this step has just closed. */
static bool is_too_late(const struct step *s, size_t first_action)
{
	if (s->event->type != COORDINATOR_MSG || s->event->msg->type != MSG_JOIN)
		return false;
	for (size_t i = first_action; i < s->actions->count; i++)
		if (s->actions->items[i].type == COORDINATOR_HANG_UP &&
		    s->actions->items[i].link == s->event->link)
			return true;
	return false;
}

static void part_from_sender(struct step *s)
{
	uint64_t link = s->event->link;
	on_link_down(s);
	step_act(s, COORDINATOR_HANG_UP, link);
}

/* Before our lease can end, and another coordinator begin, all workers must be dead.
 * rule: fence */
static void keep_fence(struct step *s)
{
	struct coordinator *c = s->c;
	c->holds_lease = lasts(c, s->now_ns);
	bool has_workers = c->state == COORDINATOR_RUNNING || c->state == COORDINATOR_STOPPING ||
			   (c->state == COORDINATOR_CLOSING && roster_busy(&c->roster) > 0);
	if (formation_by_lease(c) && !c->holds_lease && has_workers)
		abandon_round(s);
}

static void on_lease(struct step *s)
{
	struct coordinator *c = s->c;
	c->until_ns = MAX(c->until_ns, s->event->until_ns);
	c->holds_lease = lasts(c, s->now_ns);
	c->recording = false; /* the last RECORD may be lost */
	advance(s);
}

static void on_recorded(struct step *s)
{
	s->c->recorded = true;
	advance(s);
}

static void on_timer(struct step *s)
{
	s->c->timer_ns = s->now_ns;
	accord_timer(s);
	advance(s);
}

static void on_superseded(struct step *s)
{
	step_down(s);
}

/* An empty cell: the event changes nothing in that state. */
static handler *const table[][INPUT_COUNT] = {
	[COORDINATOR_GATHERING] = {
		[IN_JOIN] = on_join,
		[IN_LEAVE] = on_leave,
		[IN_PING] = on_ping,
		[IN_LINK_DOWN] = on_link_down,
		[IN_TIMER] = on_timer,
		[IN_SUPERSEDED] = on_superseded,
		[IN_LEASE] = on_lease,
		[IN_RECORDED] = on_recorded,
	},
	[COORDINATOR_RUNNING] = {
		[IN_JOIN] = running_join,
		[IN_FAILED] = running_failed,
		[IN_DONE] = running_done,
		[IN_NOTICE] = accord_notice,
		[IN_VOTE] = accord_vote,
		[IN_LEAVE] = on_leave,
		[IN_PING] = on_ping,
		[IN_LINK_DOWN] = on_link_down,
		[IN_TIMER] = on_timer,
		[IN_SUPERSEDED] = on_superseded,
		[IN_LEASE] = on_lease,
		[IN_RECORDED] = on_recorded,
	},
	[COORDINATOR_STOPPING] = {
		[IN_JOIN] = on_join,
		[IN_FAILED] = stopping_failed,
		[IN_LEAVE] = on_leave,
		[IN_PING] = on_ping,
		[IN_LINK_DOWN] = on_link_down,
		[IN_TIMER] = on_timer,
		[IN_SUPERSEDED] = on_superseded,
		[IN_LEASE] = on_lease,
		[IN_RECORDED] = on_recorded,
	},
	[COORDINATOR_CLOSING] = {
		[IN_JOIN] = closing_join,
		[IN_LEAVE] = on_leave,
		[IN_PING] = closing_ping,
		[IN_LINK_DOWN] = on_link_down,
		[IN_TIMER] = on_timer,
		[IN_SUPERSEDED] = on_superseded,
		[IN_LEASE] = on_lease,
		[IN_RECORDED] = on_recorded,
	},
	[COORDINATOR_CLOSED] = {
		[IN_JOIN] = closed_join,
		[IN_LEAVE] = on_leave,
		[IN_PING] = on_ping,
		[IN_LINK_DOWN] = on_link_down,
		[IN_TIMER] = on_timer,
	},
	[COORDINATOR_DEPOSED] = { NULL },
};
static_assert(ARRAY_LEN(table) == COORDINATOR_STATE_COUNT, "every state needs a row");

static enum input msg_input(enum msg_type type)
{
	static const enum input inputs[] = {
		[MSG_JOIN] = IN_JOIN,	[MSG_FAILED] = IN_FAILED, [MSG_DONE] = IN_DONE,
		[MSG_LEAVE] = IN_LEAVE, [MSG_PING] = IN_PING,	  [MSG_NOTICE] = IN_NOTICE,
		[MSG_VOTE] = IN_VOTE,
	};
	return inputs[type];
}

void coordinator_init(struct coordinator *c, const struct coordinator_config *config)
{
	*c = (struct coordinator){
		.config = *config,
		.epoch = config->epoch,
		.until_ns = config->until_ns,
		.coordinator_index = -1,
		.last_call_ns = NS_NEVER,
		.scale_up_ns = NS_NEVER,
		.close_ns = NS_NEVER,
	};
	roster_init(&c->roster);
}

void coordinator_done(struct coordinator *c)
{
	roster_done(&c->roster);
}

void coordinator_step(struct coordinator *c, const struct coordinator_event *event, uint64_t now_ns,
		      struct coordinator_actions *actions)
{
	struct step step = { c, event, now_ns, actions };
	size_t first_action = actions->count;
	if (c->state != COORDINATOR_DEPOSED) {
		keep_fence(&step);
		part_silent(&step);
	}
	if (is_too_late(&step, first_action))
		return;
	if (contradicts_member(&step)) {
		part_from_sender(&step);
		return;
	}
	static const enum input inputs[] = {
		[COORDINATOR_LINK_DOWN] = IN_LINK_DOWN,	  [COORDINATOR_TIMER] = IN_TIMER,
		[COORDINATOR_SUPERSEDED] = IN_SUPERSEDED, [COORDINATOR_LEASE] = IN_LEASE,
		[COORDINATOR_RECORDED] = IN_RECORDED,
	};
	enum input input;
	if (event->type == COORDINATOR_MSG) {
		if (!msg_from_agent(event->msg->type))
			return;
		input = msg_input(event->msg->type);
	} else {
		input = inputs[event->type];
	}
	handler *handle = table[c->state][input];
	if (handle)
		handle(&step);
}

static uint64_t lease_deadline_ns(const struct coordinator *c)
{
	return formation_by_lease(c) ? c->until_ns - MIN(c->fence_ns, c->until_ns) : NS_NEVER;
}

uint64_t coordinator_deadline_ns(const struct coordinator *c)
{
	if (c->state == COORDINATOR_DEPOSED)
		return NS_NEVER;
	uint64_t deadline_ns = roster_deadline_ns(&c->roster);
	const uint64_t clocks_ns[] = {
		c->last_call_ns, c->regather_ns,       c->not_before_ns,
		c->scale_up_ns,	 c->close_ns,	       c->tie_ns,
		c->moved_ns,	 lease_deadline_ns(c), accord_deadline_ns(&c->accord)
	};
	for (size_t i = 0; i < ARRAY_LEN(clocks_ns); i++)
		if (clocks_ns[i] > c->timer_ns)
			deadline_ns = MIN(deadline_ns, clocks_ns[i]);
	return deadline_ns;
}

bool coordinator_settled(const struct coordinator *c)
{
	return c->state == COORDINATOR_RUNNING || c->state == COORDINATOR_STOPPING ||
	       c->state == COORDINATOR_CLOSED ||
	       (c->state == COORDINATOR_CLOSING && formation_can_have_quorum(c));
}

struct ballot coordinator_ballot(const struct coordinator *c)
{
	return c->own ? c->roster.heard.ballot : BALLOT_NONE;
}

const char *coordinator_state_name(enum coordinator_state state)
{
	static const char *const names[] = {
		[COORDINATOR_GATHERING] = "gathering", [COORDINATOR_RUNNING] = "running",
		[COORDINATOR_STOPPING] = "stopping",   [COORDINATOR_CLOSING] = "closing",
		[COORDINATOR_CLOSED] = "closed",       [COORDINATOR_DEPOSED] = "deposed",
	};
	static_assert(ARRAY_LEN(names) == COORDINATOR_STATE_COUNT, "every state needs a name");
	return names[state];
}

void coordinator_actions_done(struct coordinator_actions *actions)
{
	free(actions->items);
	*actions = COORDINATOR_ACTIONS_INIT;
}
