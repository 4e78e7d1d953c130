#include "core/rounds/losses.h"

#include "base/clock.h"
#include "core/rounds/advance.h"
#include "core/rounds/formation.h"

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
	bool active = step_is_active(member);
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
	bool active = step_is_active(member);
	if (active)
		roster_count_loss(&s->c->roster, member);
	note_loss(s, member);
	roster_doubt(&s->c->roster, member);
	after_loss(s, active);
}

void losses_leave(struct step *s)
{
	struct coordinator *c = s->c;
	const struct msg_leave *leave = &s->event->msg->leave;
	struct member *member = roster_by_link(&c->roster, s->event->link);
	if (step_outranked(s, s->event->msg->ballot)) {
		step_down(s, false);
		return;
	}
	if (!member)
		return;
	if (leave->why != LEAVE_CLOSED)
		step_note(s, NOTE_LEFT, member->name)->leave = leave->why;
	bool active = step_is_active(member), elsewhere = leave_is_elsewhere(leave->why);
	note_loss(s, member);
	if (leave->empty) {
		roster_part(&c->roster, member, !elsewhere);
	} else {
		roster_set_status(&c->roster, member, MEMBER_LEAVING);
		member->elsewhere = elsewhere;
	}
	after_loss(s, active);
	advance_job(s);
}

void losses_link_down(struct step *s)
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
	advance_job(s);
}

void losses_part_silent(struct step *s)
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
		advance_job(s);
}

/* Workers live on our answers for as long as our lease must still last. rule: fence */
static bool lasts(const struct coordinator *c, uint64_t now_ns)
{
	return ns_add(now_ns, c->fence_ns) < c->until_ns;
}

static void look_at_lease(struct coordinator *c, uint64_t now_ns)
{
	c->lease_ns = MAX(c->lease_ns, c->until_ns - MIN(now_ns, c->until_ns));
	c->holds_lease = lasts(c, now_ns);
}

void losses_keep_fence(struct step *s)
{
	struct coordinator *c = s->c;
	look_at_lease(c, s->now_ns);
	bool has_workers = c->state == COORDINATOR_RUNNING || c->state == COORDINATOR_STOPPING ||
			   (c->state == COORDINATOR_CLOSING && roster_busy(&c->roster) > 0);
	if (formation_by_lease(c) && !c->holds_lease && has_workers)
		abandon_round(s);
}

void losses_renew(struct step *s)
{
	struct coordinator *c = s->c;
	c->until_ns = MAX(c->until_ns, s->event->until_ns);
	look_at_lease(c, s->now_ns);
	c->recording = false; /* the last RECORD may be lost */
	advance_job(s);
}
