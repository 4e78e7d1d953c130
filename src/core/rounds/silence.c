#include "core/rounds/silence.h"

#include <string.h>

static const struct hang_signs fine = { .silence = HANG_FINE };

static void set_signs(struct coordinator *c, struct member *member, const struct hang_signs *signs)
{
	hang_tally_remove(&c->silence.tally, &member->signs);
	member->signs = *signs;
	hang_tally_add(&c->silence.tally, &member->signs);
}

/* One whose worker has broken its promise, or else any whose workers are silent. */
static const struct member *find_member(const struct coordinator *c, enum hang_kind kind)
{
	for (size_t i = 0; i < c->roster.count; i++) {
		const struct member *member = c->roster.members[i];
		const struct hang_signs *signs = &member->signs;
		if (step_is_active(member) && member->can & CAN_SIGNS &&
		    (kind == HANG_PROMISE ? signs->broken : signs->silence || signs->stalled))
			return member;
	}
	return NULL;
}

static const struct member *find_looker(const struct step *s, enum hang_kind kind)
{
	const struct member *sender = roster_by_link(&s->c->roster, s->event->link);
	bool fits = sender && step_is_active(sender) && sender->can & CAN_SIGNS &&
		    (kind != HANG_PROMISE || sender->signs.broken);
	return fits ? sender : find_member(s->c, kind);
}

void silence_review(struct step *s)
{
	struct coordinator *c = s->c;
	bool long_since;
	enum hang_kind kind =
		hang_judge(&c->silence.tally, c->roster.tally.count[MEMBER_ACTIVE], &long_since);
	if (kind <= c->silence.looked) {
		c->silence.looked = kind ? c->silence.looked : HANG_NONE;
		return;
	}
	const struct member *looker = find_looker(s, kind);
	if (!looker)
		return;
	c->silence.looked = kind;
	step_send(s, looker->link, MSG_LOOK)->look =
		(struct msg_look){ .kind = kind, .long_since = long_since };
}

static struct member *sender_of(const struct step *s)
{
	struct member *member = roster_by_link(&s->c->roster, s->event->link);
	bool counts = member && step_is_active(member) &&
		      ballot_eq(s->event->msg->ballot, s->c->roster.heard.ballot);
	return counts ? member : NULL;
}

void silence_take(struct step *s)
{
	struct member *member = sender_of(s);
	if (!member)
		return;
	member->heard_ns = s->now_ns;
	set_signs(s->c, member, &s->event->msg->signs.signs);
	if (s->event->msg->signs.looked)
		s->c->silence.looked = HANG_NONE;
	silence_review(s);
}

static const struct member *holder(const struct coordinator *c, uint32_t rank)
{
	for (size_t i = 0; i < c->roster.count; i++) {
		const struct member *member = c->roster.members[i];
		if (step_is_active(member) && rank >= member->rank_base &&
		    rank - member->rank_base < member->nproc)
			return member;
	}
	return NULL;
}

/* To the host of the culprit; if its workers are done by now, or it knows no LOOK, the one that
 * found it has to end a worker of its own. */
void silence_found(struct step *s)
{
	const struct member *sender = sender_of(s);
	if (!sender)
		return;
	const struct msg_found *found = &s->event->msg->found;
	const struct member *member = holder(s->c, found->blame.rank);
	if (!member || !(member->can & CAN_SIGNS))
		member = sender;
	struct msg_look *look = &step_send(s, member->link, MSG_LOOK)->look;
	*look = (struct msg_look){ .kind = found->kind, .blame = found->blame };
	look->blame.named = true;
}

void silence_done(struct step *s, struct member *member)
{
	set_signs(s->c, member, &fine);
}

void silence_forget(struct coordinator *c)
{
	/* The signs of its members go when they enter another. */
	c->silence = (struct silence){ .looked = HANG_NONE };
}
