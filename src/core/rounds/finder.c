#include "core/rounds/finder.h"

struct step {
	struct finder *finder;
	const struct finder_event *event;
	uint64_t now_ns;
	struct finder_actions *actions;
};

typedef void handler(struct step *s);

static struct finder_action *act(struct step *s, enum finder_action_type type, uint32_t index)
{
	assert(s->actions->count < ARRAY_LEN(s->actions->items));
	struct finder_action *action = &s->actions->items[s->actions->count++];
	*action = (struct finder_action){ .type = type, .index = index };
	return action;
}

static void set_state(struct finder *finder, enum finder_state state)
{
	finder->state = state;
}

static void probe_all(struct step *s)
{
	struct finder *finder = s->finder;
	finder->next_probe_ns = ns_add(s->now_ns, FINDER_INTERVAL_NS);
	finder->probe++;
	for (uint32_t i = 0; i < finder->config.count; i++) {
		if ((int32_t)i == finder->config.own)
			continue;
		finder->endpoints[i].was_there |= finder->endpoints[i].asked;
		finder->endpoints[i].asked = true;
		act(s, FINDER_PROBE, i)->probe = finder->probe;
	}
}

static bool out_of_the_way(const struct finder *finder, uint32_t index, uint64_t now_ns)
{
	if (finder->endpoints[index].answer == FINDER_REFUSED)
		return true;
	return finder->endpoints[index].answer == FINDER_SILENT &&
	       now_ns >=
		       ns_add(finder->endpoints[index].silent_ns, finder->config.failover_after_ns);
}

/* We may coordinate if all were probed, none coordinates, and no earlier endpoint may still want
 * to. rule: seek */
static bool may_take_over(const struct finder *finder, uint64_t now_ns)
{
	if (finder->config.own < 0)
		return false;
	for (uint32_t i = 0; i < finder->config.count; i++) {
		if ((int32_t)i == finder->config.own)
			continue;
		if (finder->endpoints[i].answer == FINDER_UNASKED ||
		    finder->endpoints[i].answer == FINDER_COORDINATES)
			return false;
		if ((int32_t)i < finder->config.own && !out_of_the_way(finder, i, now_ns))
			return false;
	}
	return true;
}

/* An endpoint that has refused from the first probe on died when we lost it. One that was silent
 * first may have ended later, after more rounds without us. rule: reset */
static uint64_t dead_indexes(const struct finder *finder)
{
	uint64_t dead = 0;
	for (uint32_t i = 0; i < finder->config.count; i++)
		if (finder->endpoints[i].answer == FINDER_REFUSED &&
		    !finder->endpoints[i].was_there)
			dead |= (uint64_t)1 << i;
	return dead;
}

static void take_over(struct step *s)
{
	struct finder *finder = s->finder;
	if (!may_take_over(finder, s->now_ns))
		return;
	set_state(finder, FINDER_COORDINATING);
	act(s, FINDER_COORDINATE, 0)->dead_indexes = dead_indexes(finder);
}

/* Two that misread each other would make links as fast as they can. Probes go on: they witness.
 * rule: brief-links */
static void count_brief(struct step *s)
{
	struct finder *finder = s->finder;
	bool brief = finder->state == FINDER_LINKED &&
		     s->now_ns < ns_add(finder->linked_ns, FINDER_BRIEF_NS);
	finder->briefs = brief ? finder->briefs + 1 : 0;
	if (finder->briefs >= FINDER_BRIEFS_MAX)
		finder->link_after_ns = ns_add(s->now_ns, FINDER_BRIEF_NS);
}

/* Silence before now belongs to an earlier search. */
static void look(struct step *s)
{
	struct finder *finder = s->finder;
	for (uint32_t i = 0; i < finder->config.count; i++) {
		finder->endpoints[i].answer = FINDER_UNASKED;
		finder->endpoints[i].was_there &= !s->event->linked;
		finder->endpoints[i].asked = false;
		finder->endpoints[i].rival_ns = 0;
	}
	finder->bereft |= s->event->linked;
	count_brief(s);
	finder->pace_ns = FINDER_PACE_FIRST_NS;
	set_state(finder, FINDER_LOOKING);
	probe_all(s);
	take_over(s);
}

static bool asking(const struct finder *finder)
{
	for (uint32_t i = 0; i < finder->config.count; i++)
		if (finder->endpoints[i].asked)
			return true;
	return false;
}

/* All probes are answered: probe again soon. Nodes that start together find their coordinator
 * within the first probes, so these come quickly. */
static void hurry(struct step *s)
{
	struct finder *finder = s->finder;
	if (asking(finder))
		return;
	uint64_t pace_ns = MAX(finder->config.pace_ns, finder->pace_ns);
	finder->next_probe_ns = MIN(finder->next_probe_ns, ns_add(s->now_ns, pace_ns));
	finder->pace_ns = MIN(2 * finder->pace_ns, FINDER_PACE_NS);
}

static void note_answer(struct step *s)
{
	uint32_t i = s->event->index;
	if (s->event->answer == FINDER_SILENT && s->finder->endpoints[i].answer != FINDER_SILENT)
		s->finder->endpoints[i].silent_ns = s->now_ns;
	s->finder->endpoints[i].answer = s->event->answer;
	s->finder->endpoints[i].asked = false;
	s->finder->endpoints[i].was_there |= s->event->answer != FINDER_REFUSED;
	hurry(s);
}

/* Answers that a host finds after it stood still are old. rule: late-answers */
static bool late(const struct step *s)
{
	return s->event->probe != s->finder->probe || s->now_ns > s->finder->next_probe_ns;
}

static bool link_to_coordinator(struct step *s)
{
	struct finder *finder = s->finder;
	if (s->now_ns < finder->link_after_ns)
		return false;
	for (uint32_t i = 0; i < finder->config.count; i++)
		if (finder->endpoints[i].answer == FINDER_COORDINATES) {
			set_state(finder, FINDER_LINKED);
			finder->linked_ns = s->now_ns;
			act(s, FINDER_CONNECT, i)->dead_indexes = dead_indexes(finder);
			return true;
		}
	return false;
}

/* An agent that has lost its coordinator is a witness: whether that one is dead may decide the next
 * one's quorum. So it looks at all endpoints before it links to one. rule: witness */
static void looking_answer(struct step *s)
{
	if (late(s))
		return;
	note_answer(s);
	if (s->finder->bereft && asking(s->finder))
		return;
	if (!link_to_coordinator(s))
		take_over(s);
}

/* Earlier answers may be out of date now that we may take over: probe again. */
static void looking_own(struct step *s)
{
	struct finder *finder = s->finder;
	finder->config.own = (int32_t)s->event->index;
	for (uint32_t i = 0; i < finder->config.count; i++)
		finder->endpoints[i].answer = FINDER_UNASKED;
	probe_all(s);
	take_over(s);
}

static void looking_timer(struct step *s)
{
	if (s->now_ns >= s->finder->next_probe_ns) {
		if (link_to_coordinator(s))
			return;
		probe_all(s);
	}
	take_over(s);
}

/* The other one, whose claim is worse, has not given way: its round runs, so it does not look. Once
 * our agent joins it, it learns of our ballot. */
static bool rival_stays(struct step *s)
{
	uint64_t *rival_ns = &s->finder->endpoints[s->event->index].rival_ns;
	if (!*rival_ns)
		*rival_ns = s->now_ns;
	return s->now_ns >= ns_add(*rival_ns, s->finder->config.failover_after_ns);
}

/* Without a running round we may be one of two; the higher ballot wins, then the earlier endpoint.
 * rule: two-meet */
static void coordinating_answer(struct step *s)
{
	if (late(s))
		return;
	if (s->event->answer != FINDER_COORDINATES || s->event->settled) {
		s->finder->endpoints[s->event->index].rival_ns = 0;
		return;
	}
	int order = ballot_compare(s->event->ballot, s->event->own_ballot);
	if (order < 0 || (order == 0 && (int32_t)s->event->index > s->finder->config.own)) {
		if (!rival_stays(s))
			return;
	}
	act(s, FINDER_STEP_DOWN, 0);
}

static void coordinating_timer(struct step *s)
{
	if (s->now_ns < s->finder->next_probe_ns)
		return;
	if (s->event->settled)
		s->finder->next_probe_ns = ns_add(s->now_ns, FINDER_INTERVAL_NS);
	else
		probe_all(s);
}

static handler *const table[][FINDER_TIMER + 1] = {
	[FINDER_NEW] = { [FINDER_START] = look },
	[FINDER_LOOKING] = { [FINDER_ANSWER] = looking_answer,
			     [FINDER_OWN] = looking_own,
			     [FINDER_TIMER] = looking_timer },
	[FINDER_LINKED] = { [FINDER_LOST] = look },
	[FINDER_COORDINATING] = { [FINDER_ANSWER] = coordinating_answer,
				  [FINDER_LOST] = look,
				  [FINDER_TIMER] = coordinating_timer },
};
static_assert(ARRAY_LEN(table) == FINDER_STATE_COUNT, "every state needs a row");

void finder_init(struct finder *finder, const struct finder_config *config)
{
	*finder = (struct finder){ .config = *config };
}

void finder_step(struct finder *finder, const struct finder_event *event, uint64_t now_ns,
		 struct finder_actions *actions)
{
	struct step step = { finder, event, now_ns, actions };
	handler *handle = table[finder->state][event->type];
	if (handle)
		handle(&step);
}

uint64_t finder_deadline_ns(const struct finder *finder)
{
	if (finder->config.count <= 1 && finder->state == FINDER_COORDINATING)
		return NS_NEVER;
	if (finder->state == FINDER_NEW || finder->state == FINDER_LINKED)
		return NS_NEVER;
	return finder->next_probe_ns;
}
