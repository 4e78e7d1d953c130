#include "core/rounds/closing.h"

#include "base/clock.h"
#include "core/rounds/formation.h"

void closing_linger(struct step *s)
{
	struct coordinator *c = s->c;
	/* rule: linger: members lost a moment ago do not know the ruling yet, and may come back and
	 * ask. */
	bool all_told = c->roster.tally.left_heard >= c->roster.heard.nodes;
	bool all_gone = roster_linked(&c->roster) == 0 && (all_told || s->now_ns >= c->tie_ns);
	if (c->close_ns == NS_NEVER || (!all_gone && s->now_ns < c->close_ns))
		return;
	c->close_ns = NS_NEVER;
	step_act(s, COORDINATOR_FINISHED, 0);
}

void closing_send(struct step *s, const struct member *member)
{
	struct coordinator *c = s->c;
	struct msg *msg = step_send(s, member->link, MSG_CLOSED);
	struct msg_closed *closed = &msg->closed;
	step_raise(msg, member->memory.heard.ballot);
	*closed = (struct msg_closed){ .ruling = c->ruling,
				       .restarts = c->restarts,
				       .stalled = c->stalled,
				       .left = c->left && c->ruling == RULING_DONE,
				       .cause = c->cause };
	closed->cause.age_ns = c->has_cause ? s->now_ns - c->died_ns : 0;
}

void closing_send_past(struct step *s)
{
	const struct recorded_end *past = &s->c->config.past;
	const struct msg_join *join = &s->event->msg->join;
	const struct memory *memory = &join->memory;
	struct msg *msg = step_send(s, s->event->link, MSG_CLOSED);
	step_raise(msg, memory->heard.ballot);
	msg->closed = (struct msg_closed){ .ruling = past->ruling,
					   .restarts = memory->restarts,
					   .left = memory->left && past->ruling == RULING_DONE,
					   .cause = join->cause };
	if (past->ruling == RULING_FAILED && memory->work != WORK_FAILED)
		msg->closed.cause = (struct cause){ .status = { .kind = EXIT_UNKNOWN } };
}

void closing_rule(struct step *s, enum ruling ruling)
{
	struct roster *roster = &s->c->roster;
	s->c->ruling = ruling;
	step_stop_round(s, STOP_RULING);
	step_set_state(s, COORDINATOR_CLOSING);
	for (size_t i = 0; i < roster->count; i++)
		closing_tell(s, roster->members[i]);
}

void closing_tell(struct step *s, const struct member *member)
{
	const struct roster *roster = &s->c->roster;
	if (member->status == MEMBER_READY && member->memory.ruling != s->c->ruling &&
	    ballot_eq(member->memory.heard.ballot, roster->heard.ballot))
		step_send_stop(s, member, STOP_RULING, &s->c->cause);
}

enum ruling closing_inherited(const struct coordinator *c)
{
	const struct tally *tally = &c->roster.tally;
	if (tally->ready_ruled[RULING_FAILED].all)
		return RULING_FAILED;
	if (tally->ready_ruled[RULING_DONE].all || tally->ready_done == c->roster.heard.nodes)
		return RULING_DONE;
	return RULING_NONE;
}

static void note_closed(struct step *s)
{
	struct note *note = step_note(s, NOTE_CLOSED, NULL);
	note->ruling = s->c->ruling;
	note->has_cause = s->c->ruling != RULING_DONE && s->c->has_cause;
	note->cause = s->c->cause;
}

/* All agents here that have heard of the round know the ruling on it. */
static bool all_know(const struct coordinator *c)
{
	for (size_t i = 0; i < RULING_COUNT; i++)
		if (i != c->ruling && c->roster.tally.ready_ruled[i].all > 0)
			return false;
	return true;
}

/* Where a lease decides, the agents of the next coordinator need not know our ruling. So it must
 * find the ruling with the arbiter. rule: record */
static void record(struct step *s)
{
	struct coordinator *c = s->c;
	if (c->recording)
		return;
	c->recording = true;
	step_act(s, COORDINATOR_RECORD, 0)->end = (struct recorded_end){ c->epoch, c->ruling };
}

void closing_advance(struct step *s)
{
	struct coordinator *c = s->c;
	if (roster_busy(&c->roster) > 0 || !all_know(c) || !formation_may_close(c, true))
		return;
	/* rule: half-close: the other half may have lost its link and be on its way back. If we
	 * were gone by then, it would count us as dead and continue without us. */
	if (!formation_may_close(c, false) && s->now_ns < c->tie_ns)
		return;
	if (formation_by_lease(c) && !c->recorded) {
		record(s);
		return;
	}
	c->close_ns = ns_add(s->now_ns, c->config.close_timeout_ns);
	step_set_state(s, COORDINATOR_CLOSED);
	note_closed(s);
	for (size_t i = 0; i < c->roster.count; i++)
		if (c->roster.members[i]->status == MEMBER_READY)
			closing_send(s, c->roster.members[i]);
	closing_linger(s);
}
