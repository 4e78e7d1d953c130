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
	if (ballot_compare(member->memory.heard.ballot, msg->ballot) > 0)
		msg->ballot = member->memory.heard.ballot;
	*closed = (struct msg_closed){ .ruling = c->ruling,
				       .restarts = c->restarts,
				       .cause = c->cause };
	closed->cause.age_ns = c->has_cause ? s->now_ns - c->died_ns : 0;
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
	if (member->status == MEMBER_READY && roster_in_heard(&s->c->roster, member) &&
	    member->memory.ruling != s->c->ruling)
		step_send_stop(s, member, STOP_RULING);
}

enum ruling closing_inherited(const struct coordinator *c)
{
	const struct tally *tally = &c->roster.tally;
	if (tally->ready_ruled[RULING_FAILED])
		return RULING_FAILED;
	if (tally->ready_ruled[RULING_DONE] || tally->ready_done == c->roster.heard.nodes)
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

void closing_advance(struct step *s)
{
	struct coordinator *c = s->c;
	const struct tally *tally = &c->roster.tally;
	if (roster_busy(&c->roster) > 0 || tally->ready_ruled[c->ruling] < tally->ready_heard ||
	    !formation_has_quorum(c))
		return;
	/* rule: half-close: the other half may have lost its link and be on its way back. If we
	 * were gone by then, it would count us as dead and continue without us. */
	if (!formation_has_majority(c) && s->now_ns < c->tie_ns)
		return;
	c->close_ns = ns_add(s->now_ns, c->config.close_timeout_ns);
	step_set_state(s, COORDINATOR_CLOSED);
	note_closed(s);
	for (size_t i = 0; i < c->roster.count; i++)
		if (c->roster.members[i]->status == MEMBER_READY)
			closing_send(s, c->roster.members[i]);
	closing_linger(s);
}
