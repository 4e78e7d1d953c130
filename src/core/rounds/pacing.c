#include "core/rounds/pacing.h"

#include <stdio.h>

#include "base/clock.h"

/* The host of a rank. */
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

static void tell(struct step *s, const struct straggler_news *news)
{
	const struct member *member = holder(s->c, news->rank);
	if (!member || !(member->can & CAN_PACE))
		return;
	struct note *note = step_note(s, news->begins ? NOTE_LATE : NOTE_IN_STEP, member->name);
	note->late = *news;
	step_send(s, member->link, MSG_LATE)->late.news = *news;
}

static bool add_step(struct coordinator *c, const struct step_mark *mark,
		     struct straggler_news *ret_news)
{
	struct pacing *pacing = &c->pacing;
	if (pacing->stragglers.world_size != c->world_size)
		stragglers_begin(&pacing->stragglers, c->world_size);
	const struct step_mark *all = step_marks_add(&pacing->marks, mark, c->world_size);
	/* Of two hosts, either may be off by as much. */
	return all && stragglers_add(&pacing->stragglers, all, ns_add(all->error_ns, all->error_ns),
				     ret_news);
}

void pacing_take(struct step *s)
{
	struct coordinator *c = s->c;
	const struct msg_pace *pace = &s->event->msg->pace;
	struct member *member = roster_by_link(&c->roster, s->event->link);
	if (!member || !step_is_active(member) ||
	    !ballot_eq(s->event->msg->ballot, c->roster.heard.ballot))
		return;
	member->heard_ns = s->now_ns;
	for (size_t i = 0; i < pace->count; i++) {
		struct step_mark mark = pace->marks[i];
		struct straggler_news news;
		mark.error_ns = pace->error_ns;
		if (pace->group ? wait_groups_add(&c->pacing.groups, pace->group, pace->size, &mark,
						  &news)
				: add_step(c, &mark, &news))
			tell(s, &news);
	}
}
