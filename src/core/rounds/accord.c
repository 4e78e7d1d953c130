#include "core/rounds/accord.h"

#include "base/clock.h"

#define MARGIN_MAX ((uint64_t)1 << 32)

static void send_plan(struct step *s, const struct member *member, const struct stop_plan *plan)
{
	const struct accord *accord = &s->c->accord;
	step_send(s, member->link, MSG_PLAN)->plan = (struct msg_plan){
		.plan = *plan,
		.left_ns = accord->deadline_ns - MIN(s->now_ns, accord->deadline_ns),
	};
}

static void announce(struct step *s, enum plan_phase phase)
{
	struct coordinator *c = s->c;
	c->accord.plan.phase = phase;
	c->accord.voted = 0;
	for (size_t i = 0; i < c->roster.count; i++) {
		struct member *member = c->roster.members[i];
		member->vote = (struct msg_vote){ .serial = 0 };
		if (step_is_active(member))
			send_plan(s, member, &c->accord.plan);
	}
}

static void begin(struct step *s, enum plan_kind kind, uint64_t deadline_ns)
{
	struct accord *accord = &s->c->accord;
	accord->plan = (struct stop_plan){ .serial = accord->plan.serial + 1, .kind = kind };
	accord->deadline_ns = deadline_ns;
	accord->margin = 1;
	accord->leave_wanted = false;
	announce(s, PLAN_ASKED);
}

/* Whether it has voted on the plan as it is now. */
static bool has_voted(const struct coordinator *c, const struct member *member)
{
	const struct stop_plan *plan = &c->accord.plan;
	const struct msg_vote *vote = &member->vote;
	return vote->serial == plan->serial && vote->phase == plan->phase &&
	       vote->step == plan->step;
}

void accord_begin(struct coordinator *c, const struct member *member)
{
	c->accord.cannot += !(member->can & CAN_PLAN);
}

void accord_end(struct coordinator *c, const struct member *member)
{
	c->accord.cannot -= !(member->can & CAN_PLAN);
	c->accord.voted -= has_voted(c, member);
}

/* 1 + the highest step that a worker is known to have gone on after. */
static uint64_t furthest(const struct coordinator *c)
{
	uint64_t at = 0;
	for (size_t i = 0; i < c->roster.count; i++) {
		const struct member *member = c->roster.members[i];
		if (step_is_active(member) && member->vote.serial == c->accord.plan.serial)
			at = MAX(at, member->vote.at);
	}
	return at;
}

static void propose(struct step *s)
{
	struct accord *accord = &s->c->accord;
	accord->plan.step = MIN(furthest(s->c) + accord->margin - 1, PLAN_STEP_MAX);
	accord->margin = MIN(accord->margin * 2, MARGIN_MAX);
	announce(s, PLAN_PROPOSED);
}

/* All have saved: a notice to leave that came meanwhile is next. */
static void finish(struct step *s)
{
	struct accord *accord = &s->c->accord;
	if (accord->leave_wanted)
		begin(s, PLAN_LEAVE, accord->leave_deadline_ns);
	else
		announce(s, PLAN_NONE);
}

/* rule: together */
void accord_review(struct step *s)
{
	struct coordinator *c = s->c;
	const struct stop_plan *plan = &c->accord.plan;
	bool leaving = plan->phase == PLAN_COMMITTED && plan->kind == PLAN_LEAVE;
	if (plan->phase == PLAN_NONE || leaving ||
	    c->accord.voted < c->roster.tally.count[MEMBER_ACTIVE])
		return;
	if (plan->phase == PLAN_ASKED)
		propose(s);
	else if (plan->phase == PLAN_COMMITTED)
		finish(s);
	else if (furthest(c) > plan->step)
		propose(s);
	else
		announce(s, PLAN_COMMITTED);
}

/* The sender, if it takes part in the round that its message names. */
static struct member *sender(const struct step *s)
{
	struct member *member = roster_by_link(&s->c->roster, s->event->link);
	if (!member || !step_is_active(member) ||
	    !ballot_eq(s->event->msg->ballot, s->c->roster.heard.ballot))
		return NULL;
	member->heard_ns = s->now_ns;
	return member;
}

void accord_notice(struct step *s)
{
	struct accord *accord = &s->c->accord;
	const struct msg_notice *notice = &s->event->msg->notice;
	const struct member *member = sender(s);
	if (!member)
		return;
	if (accord->cannot) {
		send_plan(s, member, &(struct stop_plan){ .phase = PLAN_NONE });
		return;
	}
	uint64_t deadline_ns = ns_add(s->now_ns, notice->left_ns);
	bool idle = accord->plan.phase == PLAN_NONE;
	bool saving = !idle && accord->plan.kind == PLAN_SAVE;
	if (saving && notice->kind == PLAN_LEAVE && accord->plan.phase == PLAN_COMMITTED) {
		accord->leave_wanted = true;
		accord->leave_deadline_ns = deadline_ns;
	} else if (idle || (saving && notice->kind == PLAN_LEAVE)) {
		begin(s, notice->kind, deadline_ns);
		accord_review(s);
	}
}

void accord_vote(struct step *s)
{
	struct member *member = sender(s);
	if (!member)
		return;
	s->c->accord.voted -= has_voted(s->c, member);
	member->vote = s->event->msg->vote;
	s->c->accord.voted += has_voted(s->c, member);
	accord_review(s);
}

void accord_timer(struct step *s)
{
	if (s->now_ns >= accord_deadline_ns(&s->c->accord))
		announce(s, PLAN_NONE);
}

/* Who leaves is stopped by its agent; who has begun to save goes on saving. */
uint64_t accord_deadline_ns(const struct accord *accord)
{
	bool pending = accord->plan.phase == PLAN_ASKED || accord->plan.phase == PLAN_PROPOSED;
	return pending && accord->plan.kind == PLAN_SAVE ? accord->deadline_ns : NS_NEVER;
}
