#include "core/rounds/losses.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "core/rounds/advance.h"
#include "core/rounds/formation.h"

/* ---- who was lost ---- */

static void remember(struct step *s, struct member *member, unsigned loss, uint8_t signal)
{
	if (member->loss != LOSS_NONE)
		return; /* it has left, and now its connection ends */
	member->loss = (uint8_t)loss;
	member->signal = signal;
	member->lost_ns = loss == LOSS_SILENT ? member->heard_ns : s->now_ns;
}

static void describe(const struct member *member, char words[MSG_WORDS_MAX])
{
	const char *signal = str_signal_name(member->signal);
	static const char *const texts[] = {
		[LOSS_CLOSED] = "its connection was closed",
		[LOSS_UNREACHABLE] = "it cannot be reached any more",
		[LOSS_SILENT] = "it has been silent for too long",
		[LOSS_LEFT + LEAVE_SIGNAL] = "its muster was stopped by its user",
		[LOSS_LEFT + LEAVE_TIMEOUT] = "its muster has waited long enough",
		[LOSS_LEFT + LEAVE_CLOSED] = "it was refused",
		[LOSS_LEFT + LEAVE_STUCK] = "it has a worker that cannot be killed",
		[LOSS_LEFT + LEAVE_LEASE] = "its muster got no answers",
		[LOSS_LEFT + LEAVE_SUPERSEDED] = "its muster looks for another coordinator",
	};
	static_assert(ARRAY_LEN(texts) == LOSS_LEFT + LEAVE_WHY_COUNT, "every loss needs a text");
	if (signal)
		snprintf(words, MSG_WORDS_MAX, "its muster was stopped by %s", signal);
	else
		snprintf(words, MSG_WORDS_MAX, "%s", texts[member->loss]);
}

#define REPLACED_MAX 8 /* so many are looked at: each costs a walk over all */

/* A process on the same host has come in its place. */
static bool is_replaced(const struct roster *roster, const struct member *lost)
{
	for (size_t i = 0; i < roster->count; i++)
		if (roster->members[i]->status == MEMBER_READY &&
		    strcmp(roster->members[i]->name, lost->name) == 0)
			return true;
	return false;
}

/* Not one that was lost after there were too few: it was not waited for as long. */
static struct member *first_lost(const struct coordinator *c)
{
	const struct roster *roster = &c->roster;
	uint64_t until_ns = c->lost_ns == NS_NEVER ? NS_NEVER : c->lost_since_ns;
	struct member *first = NULL;
	for (size_t i = 0; i < roster->count; i++) {
		struct member *member = roster->members[i];
		if (member->loss != LOSS_NONE && member->lost_ns <= until_ns &&
		    roster_in_heard(roster, member) && (!first || member->lost_ns < first->lost_ns))
			first = member;
	}
	return first;
}

static const struct member *first_missing(const struct coordinator *c)
{
	struct member *first = first_lost(c);
	for (int i = 0; i < REPLACED_MAX && first && is_replaced(&c->roster, first); i++) {
		first->loss = LOSS_NONE;
		first = first_lost(c);
	}
	return first;
}

bool losses_cause(struct step *s, struct cause *ret_cause)
{
	const struct coordinator *c = s->c;
	const struct member *lost = first_missing(c);
	if (!lost)
		return false;
	bool left = lost->loss >= LOSS_LEFT;
	*ret_cause = (struct cause){
		.reason = left ? FAILURE_LEFT : FAILURE_LOST,
		.rank = lost->in_round ? (int32_t)lost->rank_base : -1,
		.group_rank = lost->memory.group_rank,
		.local_rank = -1,
		.no_restart = true,
		.world_size = c->world_size,
		.age_ns = s->now_ns - MIN(s->now_ns, lost->lost_ns),
	};
	if (left && lost->signal)
		ret_cause->status = (struct exit_status){ EXIT_SIGNAL, lost->signal, false };
	if (c->wall_shift_ns && !left) /* who leaves tells the same, but no time */
		ret_cause->wall_ns = lost->lost_ns + (uint64_t)c->wall_shift_ns;
	snprintf(ret_cause->name, sizeof(ret_cause->name), "%s", lost->name);
	describe(lost, ret_cause->words);
	return true;
}

/* The longest that any of those present waits. */
uint64_t losses_patience_ns(const struct coordinator *c)
{
	uint64_t longest = 0;
	for (size_t i = 0; i < c->roster.count; i++)
		if (c->roster.members[i]->status == MEMBER_READY)
			longest = MAX(longest, c->roster.members[i]->lost_timeout_ns);
	return longest;
}

/* ---- what follows ---- */

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
	remember(s, member, LOSS_LEFT + leave->why, leave->signal);
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
	remember(s, member, s->event->dead ? LOSS_CLOSED : LOSS_UNREACHABLE, 0);
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
		remember(s, member, LOSS_SILENT, 0);
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
