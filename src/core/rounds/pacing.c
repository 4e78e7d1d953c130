#include "core/rounds/pacing.h"

#include <stdio.h>

#include "base/clock.h"
#include "core/pace/looks.h"

#define IN_STEP_NS (20 * NS_PER_S) /* after this long without a step nothing is known of that */

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

/* Ranks that wait for each other are never more than a step apart. */
static void add_step(struct step *s, const struct step_mark *mark)
{
	struct pacing *pacing = &s->c->pacing;
	const struct step_mark *all = step_marks_add(&pacing->marks, mark, s->c->world_size);
	if (!all)
		return;
	stragglers_measure(&pacing->steps, all);
	if (straggler_lag_ns(all) <= pacing->steps.step_ns)
		pacing->in_step_ns = s->now_ns;
}

/* A look at all ranks. Where they are not in step nobody waits for anybody. */
static bool add_look(struct step *s, struct step_mark *mark, struct straggler_news *ret_news)
{
	struct pacing *pacing = &s->c->pacing;
	look_mark_complete(mark, s->c->world_size);
	if (!pacing->in_step_ns || s->now_ns - pacing->in_step_ns > IN_STEP_NS ||
	    !wait_groups_add(&pacing->groups, LOOKS_GROUP, s->c->world_size, mark, ret_news))
		return false;
	ret_news->group = 0; /* it is about steps, for whoever hears of it */
	ret_news->lag_ns =
		(uint64_t)(wait_groups_part(&pacing->groups, LOOKS_GROUP, ret_news->rank) *
			   (double)pacing->steps.step_ns);
	return true;
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
		if (!pace->group)
			add_step(s, &mark);
		else if (pace->group == LOOKS_GROUP
				 ? add_look(s, &mark, &news)
				 : wait_groups_add(&c->pacing.groups, pace->group, pace->size,
						   &mark, &news))
			tell(s, &news);
	}
}
