#include "core/rounds/inspection.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/checks/clocks.h"
#include "core/checks/fitness.h"

static void note_text(struct step *s, enum note_kind kind, const char *name, const char *text)
{
	struct note *note = step_note(s, kind, name);
	snprintf(note->refused, sizeof(note->refused), "%s", text);
}

static void judge_strikes(struct step *s, const struct member *member, struct fitness *fitness)
{
	uint64_t until_ns;
	struct strikes_rule rule = { .limit = member->strikes,
				     .cool_down_ns = member->cool_down_ns,
				     .one_rank = member->nproc == 1 };
	uint32_t count = fitness->bad ? 0
				      : strikes_against(&s->c->strikes, member->name, &rule,
							s->now_ns, &until_ns);
	if (!count)
		return;
	fitness->bad = true;
	snprintf(fitness->why, sizeof(fitness->why),
		 "its workers ended %u rounds, and not by a rank that fails elsewhere, too", count);
}

/* The reason is told when it is a new one; figures that only wobble are the same reason. */
static void set_fitness(struct step *s, struct member *member, const struct fitness *fitness)
{
	if (!fitness->bad && !member->bad)
		return;
	bool told = fitness->bad == member->bad;
	roster_set_bad(&s->c->roster, member, fitness->bad ? fitness->why : NULL);
	if (!told)
		note_text(s, fitness->bad ? NOTE_UNFIT : NOTE_FIT, member->name, fitness->why);
}

static void note_difference(struct step *s, const char *difference)
{
	struct coordinator *c = s->c;
	if (!*difference || str_eq(difference, c->difference))
		return;
	snprintf(c->difference, sizeof(c->difference), "%s", difference);
	note_text(s, NOTE_DIFFERENT, NULL, difference);
}

void inspection_judge(struct step *s)
{
	struct coordinator *c = s->c;
	struct roster *roster = &c->roster;
	if (!roster->unjudged && c->strikes.count == 0)
		return;
	roster->unjudged = false;
	AUTO_FREE struct member **here = NEW_ARRAY(struct member *, roster->count + 1);
	AUTO_FREE const struct check_digest **digests =
		NEW_ARRAY(const struct check_digest *, roster->count + 1);
	AUTO_FREE struct fitness *all = NEW_ARRAY(struct fitness, roster->count + 1);
	char difference[FITNESS_TEXT_MAX];
	size_t count = 0;
	for (size_t i = 0; i < roster->count; i++) {
		if (!roster->members[i]->link)
			continue;
		here[count] = roster->members[i];
		digests[count++] = roster->members[i]->checks;
	}
	fitness_judge(digests, count, all, difference);
	for (size_t i = 0; i < count; i++) {
		judge_strikes(s, here[i], &all[i]);
		set_fitness(s, here[i], &all[i]);
	}
	note_difference(s, difference);
}

/* ---- clocks ---- */

/* The coordinator's own node compares, so its clock is right by its own lights. */
static bool clock_of(const struct coordinator *c, const struct member *member,
		     struct host_clock *ret_clock)
{
	bool local = agent_id_eq(member->id, c->config.local);
	*ret_clock = (struct host_clock){
		.offset_ns = local ? 0 : (int64_t) - (uint64_t)member->wall.offset_ns,
		.error_ns = local ? 0 : member->wall.error_ns
	};
	return member->link && (local || member->wall.error_ns);
}

static bool is_far(int64_t offset_ns)
{
	return offset_ns > (int64_t)CLOCKS_FAR_NS || offset_ns < -(int64_t)CLOCKS_FAR_NS;
}

static void judge_clock(struct step *s, struct member *member)
{
	struct host_clock clock;
	char text[MSG_TEXT_MAX];
	int64_t offset_ns;
	if (member->clock_told || !clock_of(s->c, member, &clock) ||
	    !clocks_is_wrong(clock, s->c->clocks.clock, &offset_ns))
		return;
	member->clock_told = true;
	snprintf(text, sizeof(text), "%.3f s %s the middle of %zu nodes",
		 (double)(offset_ns < 0 ? -offset_ns : offset_ns) / (double)NS_PER_S,
		 offset_ns < 0 ? "behind" : "ahead of", s->c->clocks.count);
	note_text(s, NOTE_CLOCK, member->name, text);
}

/* Where a host compares all the clocks of a large job with its own, wrong one, each of them is far:
 * the middle is looked for again only when a good part may have changed. */
static bool find_middle(struct coordinator *c)
{
	const struct roster *roster = &c->roster;
	if (c->clocks.due)
		return c->clocks.count;
	AUTO_FREE struct host_clock *all = NEW_ARRAY(struct host_clock, roster->count + 1);
	size_t count = 0;
	for (size_t i = 0; i < roster->count; i++)
		count += clock_of(c, roster->members[i], &all[count]);
	bool enough = count >= CLOCKS_LEAST;
	c->clocks = (struct clock_middle){ .due = (enough ? count : roster->count) / 4 };
	if (enough)
		c->clocks.clock = clocks_middle(all, count), c->clocks.count = count;
	return enough;
}

void inspection_clock(struct step *s, struct member *member)
{
	struct coordinator *c = s->c;
	if (!member->wall.error_ns)
		return;
	c->clocks.due -= c->clocks.due > 0;
	/* All others are as they were, or told of themselves. */
	if (!member->checks || member->clock_seen || !is_far(member->wall.offset_ns) ||
	    !find_middle(c))
		return;
	member->clock_seen = true;
	judge_clock(s, member);
	struct member *own = roster_by_id(&c->roster, c->config.local);
	if (own)
		judge_clock(s, own);
}

void inspection_note_needed(struct step *s)
{
	const struct roster *roster = &s->c->roster;
	for (size_t i = 0; i < roster->count; i++)
		if (roster->members[i]->in_round && roster->members[i]->bad)
			step_note(s, NOTE_NEEDED, roster->members[i]->name);
}

void inspection_strike(struct step *s, const struct cause *cause)
{
	if (*cause->name && cause->rank >= 0)
		strikes_add(&s->c->strikes, cause->name, cause->rank, s->now_ns);
}
