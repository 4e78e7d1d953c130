#include "core/rounds/coordinator.h"

#include <stdlib.h>

#include "base/clock.h"
#include "core/rounds/accord.h"
#include "core/rounds/pacing.h"
#include "core/rounds/admission.h"
#include "core/rounds/advance.h"
#include "core/rounds/closing.h"
#include "core/rounds/exchange.h"
#include "core/rounds/formation.h"
#include "core/rounds/inspection.h"
#include "core/rounds/losses.h"
#include "core/rounds/pairing.h"
#include "core/rounds/silence.h"

/* The columns of the table: events, and each type of message. */
enum input {
	IN_NONE, /* what is in no table of inputs: nothing is to be done */
	IN_JOIN,
	IN_FAILED,
	IN_DONE,
	IN_LEAVE,
	IN_PING,
	IN_NOTICE,
	IN_VOTE,
	IN_PAIRED,
	IN_PACE,
	IN_SIGNS,
	IN_FOUND,
	IN_PUT,
	IN_WANT,
	IN_LINK_DOWN,
	IN_TIMER,
	IN_SUPERSEDED,
	IN_LEASE,
	IN_RECORDED,
	INPUT_COUNT,
};

typedef void handler(struct step *s);

static void on_join(struct step *s)
{
	if (admission_join(s))
		advance_job(s);
}

/* A member of the running round that joins again has lost its workers. */
static void running_join(struct step *s)
{
	struct coordinator *c = s->c;
	struct member *known = roster_by_id(&c->roster, s->event->msg->join.node->id);
	bool was_active = known && step_is_active(known);
	struct member *member = admission_join(s);
	if (!member)
		return;
	if (was_active && member->status == MEMBER_READY) {
		c->failed =
			member->memory.work == WORK_FAILED && roster_in_heard(&c->roster, member);
		step_stop_round(s, c->failed ? STOP_FAILURE : STOP_MEMBERS);
	}
	advance_job(s);
}

static void closing_join(struct step *s)
{
	struct member *member = admission_join(s);
	if (!member)
		return;
	closing_tell(s, member);
	advance_job(s);
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

static bool note_failure(struct step *s)
{
	const struct cause *cause = &s->event->msg->failed.cause;
	struct member *member = sender_in_round(s);
	if (!member || !(step_stoppable(member) || member->status == MEMBER_STOPPING))
		return false;
	bool known = step_is_blamed(s->c);
	step_note_cause(s, cause, s->now_ns - MIN(s->now_ns, cause->age_ns));
	if (!known && cause->blame.named && cause->blame.exclude)
		exclude_culprit(s, cause->blame.rank);
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
	advance_job(s);
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
	accord_end(c, member);
	silence_done(s, member);
	roster_set_status(&c->roster, member, MEMBER_DONE);
	c->left |= s->event->msg->done.left;
	if (++c->done_count == c->roster.heard.nodes)
		closing_rule(s, RULING_DONE);
	else
		accord_review(s);
	if (c->state == COORDINATOR_RUNNING)
		silence_review(s);
	advance_job(s);
}

static void gathering_paired(struct step *s)
{
	pairing_take(s);
	advance_job(s);
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

/* Agents outside the round need not count the time: what is waited for comes to an end without
 * them. */
static bool waits(const struct coordinator *c, uint64_t now_ns)
{
	bool for_lost = c->lost_ns != NS_NEVER && now_ns < c->lost_ns;
	return c->state == COORDINATOR_RUNNING || c->state == COORDINATOR_STOPPING ||
	       now_ns < c->not_before_ns || for_lost || pairing_is_under_way(c, now_ns);
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
	member->wall = ping->ping.wall;
	inspection_clock(s, member);
	if (ballot_eq(ping->ballot, c->roster.heard.ballot))
		formation_ack(c, member);
	struct msg *msg = step_send(s, s->event->link, MSG_PONG);
	step_raise(msg, member->memory.heard.ballot);
	msg->pong = (struct msg_pong){
		.coordinator_id = c->config.id,
		.cookie = ping->ping.cookie,
		.stamp = s->now_ns,
		.heard = missed_formed(c, member) ? member->memory.heard : c->roster.heard,
		.base = c->roster.base,
		.wait = waits(c, s->now_ns),
		.present = roster_linked(&c->roster),
		.missing = c->state == COORDINATOR_GATHERING ? formation_missing(c) : 0,
		.wall_shift_ns = c->wall_shift_ns,
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
	losses_link_down(s);
	step_act(s, COORDINATOR_HANG_UP, link);
}

static void on_recorded(struct step *s)
{
	s->c->recorded = true;
	advance_job(s);
}

static void on_timer(struct step *s)
{
	s->c->timer_ns = s->now_ns;
	accord_timer(s);
	advance_job(s);
}

static void on_superseded(struct step *s)
{
	step_down(s, false);
}

/* An empty cell: the event changes nothing in that state. */
static handler *const table[][INPUT_COUNT] = {
	[COORDINATOR_GATHERING] = {
		[IN_JOIN] = on_join,
		[IN_PAIRED] = gathering_paired,
		[IN_LEAVE] = losses_leave,
		[IN_PING] = on_ping,
		[IN_LINK_DOWN] = losses_link_down,
		[IN_TIMER] = on_timer,
		[IN_SUPERSEDED] = on_superseded,
		[IN_LEASE] = losses_renew,
		[IN_RECORDED] = on_recorded,
	},
	[COORDINATOR_RUNNING] = {
		[IN_JOIN] = running_join,
		[IN_FAILED] = running_failed,
		[IN_DONE] = running_done,
		[IN_NOTICE] = accord_notice,
		[IN_VOTE] = accord_vote,
		[IN_PACE] = pacing_take,
		[IN_SIGNS] = silence_take,
		[IN_FOUND] = silence_found,
		[IN_PUT] = exchange_put,
		[IN_WANT] = exchange_want,
		[IN_LEAVE] = losses_leave,
		[IN_PING] = on_ping,
		[IN_LINK_DOWN] = losses_link_down,
		[IN_TIMER] = on_timer,
		[IN_SUPERSEDED] = on_superseded,
		[IN_LEASE] = losses_renew,
		[IN_RECORDED] = on_recorded,
	},
	[COORDINATOR_STOPPING] = {
		[IN_JOIN] = on_join,
		[IN_FAILED] = stopping_failed,
		[IN_LEAVE] = losses_leave,
		[IN_PING] = on_ping,
		[IN_LINK_DOWN] = losses_link_down,
		[IN_TIMER] = on_timer,
		[IN_SUPERSEDED] = on_superseded,
		[IN_LEASE] = losses_renew,
		[IN_RECORDED] = on_recorded,
	},
	[COORDINATOR_CLOSING] = {
		[IN_JOIN] = closing_join,
		[IN_LEAVE] = losses_leave,
		[IN_PING] = closing_ping,
		[IN_LINK_DOWN] = losses_link_down,
		[IN_TIMER] = on_timer,
		[IN_SUPERSEDED] = on_superseded,
		[IN_LEASE] = losses_renew,
		[IN_RECORDED] = on_recorded,
	},
	[COORDINATOR_CLOSED] = {
		[IN_JOIN] = closed_join,
		[IN_LEAVE] = losses_leave,
		[IN_PING] = on_ping,
		[IN_LINK_DOWN] = losses_link_down,
		[IN_TIMER] = on_timer,
	},
	[COORDINATOR_DEPOSED] = { NULL },
};
static_assert(ARRAY_LEN(table) == COORDINATOR_STATE_COUNT, "every state needs a row");

static enum input msg_input(enum msg_type type)
{
	static const enum input inputs[MSG_TYPE_COUNT] = {
		[MSG_JOIN] = IN_JOIN,	[MSG_FAILED] = IN_FAILED, [MSG_DONE] = IN_DONE,
		[MSG_LEAVE] = IN_LEAVE, [MSG_PING] = IN_PING,	  [MSG_NOTICE] = IN_NOTICE,
		[MSG_VOTE] = IN_VOTE,	[MSG_PAIRED] = IN_PAIRED, [MSG_PACE] = IN_PACE,
		[MSG_SIGNS] = IN_SIGNS, [MSG_FOUND] = IN_FOUND,	  [MSG_PUT] = IN_PUT,
		[MSG_WANT] = IN_WANT,
	};
	return msg_from_agent(type) ? inputs[type] : IN_NONE;
}

void coordinator_init(struct coordinator *c, const struct coordinator_config *config)
{
	*c = (struct coordinator){
		.config = *config,
		.epoch = config->epoch,
		.until_ns = config->until_ns,
		.fence_ns = config->fence_ns,
		.moved_ns = config->after_ns,
		.coordinator_index = -1,
		.last_call_ns = NS_NEVER,
		.scale_up_ns = NS_NEVER,
		.close_ns = NS_NEVER,
		.lost_ns = NS_NEVER,
	};
	roster_init(&c->roster);
}

void coordinator_done(struct coordinator *c)
{
	roster_done(&c->roster);
	pairing_done(&c->pairing);
	wait_groups_done(&c->pacing.groups);
	exchange_done(&c->exchange);
}

/* The event tells that another coordinator leads. What else is due at this moment must not form a
 * round before we hear that. rule: hears-first */
static bool is_outranked(const struct step *s)
{
	if (s->event->type != COORDINATOR_MSG)
		return s->event->type == COORDINATOR_SUPERSEDED;
	const struct msg *msg = s->event->msg;
	return (msg->type == MSG_JOIN || msg->type == MSG_LEAVE) && step_outranked(s, msg->ballot);
}

void coordinator_step(struct coordinator *c, const struct coordinator_event *event, uint64_t now_ns,
		      struct coordinator_actions *actions)
{
	struct step step = { c, event, now_ns, actions };
	size_t first_action = actions->count;
	if (c->state != COORDINATOR_DEPOSED && !is_outranked(&step)) {
		losses_keep_fence(&step);
		losses_part_silent(&step);
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
	enum input input =
		event->type == COORDINATOR_MSG ? msg_input(event->msg->type) : inputs[event->type];
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
	const uint64_t clocks_ns[] = { c->last_call_ns,
				       c->regather_ns,
				       c->not_before_ns,
				       c->lost_ns,
				       c->scale_up_ns,
				       c->close_ns,
				       c->tie_ns,
				       c->moved_ns,
				       lease_deadline_ns(c),
				       accord_deadline_ns(&c->accord),
				       c->pairing.active ? c->pairing.deadline_ns : NS_NEVER };
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
