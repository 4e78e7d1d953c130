#include "core/rounds/coordinator_step.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/rounds/losses.h"
#include "core/rounds/pairing.h"
#include "core/rounds/silence.h"

struct coordinator_action *step_act(struct step *s, enum coordinator_action_type type,
				    uint64_t link)
{
	struct coordinator_action *action = coordinator_actions_add(s->actions);
	memset(action, 0, sizeof(*action));
	action->type = type;
	action->link = link;
	return action;
}

struct msg *step_send(struct step *s, uint64_t link, enum msg_type type)
{
	struct msg *msg = &step_act(s, COORDINATOR_SEND, link)->msg;
	msg->type = type;
	msg->ballot = s->c->roster.heard.ballot;
	return msg;
}

void step_raise(struct msg *msg, struct ballot heard)
{
	if (ballot_compare(heard, msg->ballot) > 0)
		msg->ballot = heard;
}

struct note *step_note(struct step *s, enum note_kind kind, const char *name)
{
	const struct coordinator *c = s->c;
	struct note *note = &step_act(s, COORDINATOR_NOTE, 0)->note;
	note->kind = kind;
	note->round = c->roster.heard.ballot.round;
	snprintf(note->name, sizeof(note->name), "%s", name ? name : "");
	return note;
}

static void note_stopped(struct step *s)
{
	struct note *note = step_note(s, NOTE_STOPPED, NULL);
	note->has_cause = s->c->has_cause;
	note->cause = s->c->cause;
}

void step_set_state(struct step *s, enum coordinator_state state)
{
	s->c->state = state;
	if (state != COORDINATOR_RUNNING)
		s->c->accord.plan.phase = PLAN_NONE; /* it ends with the round */
	if (state != COORDINATOR_GATHERING)
		pairing_done(&s->c->pairing);
}

void step_send_stop(struct step *s, const struct member *member, enum stop_why why,
		    const struct cause *cause)
{
	struct msg_stop *stop = &step_send(s, member->link, MSG_STOP)->stop;
	*stop = (struct msg_stop){
		.why = why,
		.ruling = s->c->ruling,
		.cause = *cause,
		.left = s->c->left,
	};
	if (s->c->has_cause && why != STOP_MEMBERS)
		stop->cause.age_ns = s->now_ns - MIN(s->now_ns, s->c->died_ns);
}

void step_note_cause(struct step *s, const struct cause *cause, uint64_t died_ns)
{
	struct coordinator *c = s->c;
	if (c->state >= COORDINATOR_CLOSING)
		return; /* agents may have heard it already */
	struct blame blame = step_is_blamed(c) ? c->cause.blame : cause->blame;
	bool same = c->has_cause && cause_is_same(cause, &c->cause);
	bool better = same ? *cause->words || !*c->cause.words : died_ns < c->died_ns;
	if (!c->has_cause || better) {
		c->died_ns = same ? MIN(died_ns, c->died_ns) : died_ns;
		c->has_cause = true;
		c->cause = *cause;
	}
	c->cause.blame = blame;
}

void step_forget_round(struct step *s)
{
	struct coordinator *c = s->c;
	c->failed = false;
	c->has_cause = false;
	c->cause_is_ruled = false;
	memset(&c->cause, 0, sizeof(c->cause));
	c->ruling = RULING_NONE;
	c->settled = false;
	c->stalled = false;
	c->left = false;
	c->accord = (struct accord){ .plan = { .phase = PLAN_NONE } };
	wait_groups_done(&c->pacing.groups);
	c->pacing = (struct pacing){ .steps.world_size = 0 };
	silence_forget(c);
	c->not_before_ns = 0;
	c->lost_ns = NS_NEVER;
}

void step_stop_round(struct step *s, enum stop_why why)
{
	struct coordinator *c = s->c;
	c->scale_up_ns = NS_NEVER;
	struct cause cause = c->cause;
	if (why != STOP_RULING)
		note_stopped(s);
	if (why == STOP_MEMBERS)
		losses_cause(s, &cause);
	for (size_t i = 0; i < c->roster.count; i++) {
		struct member *member = c->roster.members[i];
		if (!step_stoppable(member))
			continue;
		step_send_stop(s, member, why, &cause);
		roster_set_status(&c->roster, member, MEMBER_STOPPING);
	}
	step_set_state(s, COORDINATOR_STOPPING);
}

bool step_outranked(const struct step *s, struct ballot ballot)
{
	const struct coordinator *c = s->c;
	return ballot_compare(ballot, c->roster.heard.ballot) > 0 &&
	       (c->own || (c->config.epoch && ballot.epoch >= c->config.epoch));
}

/* Members learn from the closed link, or from their lease, that they must kill their workers. The
 * next coordinator of this process knows nothing of our round. rule: next-term */
static uint64_t workers_until_ns(const struct step *s)
{
	return roster_busy(&s->c->roster) > 0 ? ns_add(s->now_ns, s->c->fence_ns) : 0;
}

void step_down(struct step *s, bool again)
{
	struct roster *roster = &s->c->roster;
	for (size_t i = 0; i < roster->count; i++)
		if (roster->members[i]->link)
			step_act(s, COORDINATOR_HANG_UP, roster->members[i]->link);
	step_note(s, NOTE_SUPERSEDED, NULL);
	step_act(s, COORDINATOR_STEP_DOWN, 0)->down =
		(struct stepped_down){ workers_until_ns(s), again };
	step_set_state(s, COORDINATOR_DEPOSED);
}
