#include "core/node/search.h"

#include "base/util.h"

struct step {
	struct search *search;
	const struct search_event *event;
	uint64_t now_ns;
	struct search_actions *actions;
};

typedef void handler(struct step *s);

static struct search_action *act(struct step *s, enum search_action_type type)
{
	struct search_action *action = &s->actions->items[s->actions->count++];
	*action = (struct search_action){ .type = type, .index = -1 };
	return action;
}

/* ---- endpoints ---- */

static void pass(struct step *s, const struct finder_action *from)
{
	static const enum search_action_type types[] = {
		[FINDER_PROBE] = SEARCH_PROBE,
		[FINDER_CONNECT] = SEARCH_CONNECT,
		[FINDER_COORDINATE] = SEARCH_COORDINATE,
		[FINDER_STEP_DOWN] = SEARCH_SUPERSEDED,
	};
	struct search_action *action = act(s, types[from->type]);
	action->index = from->type == FINDER_COORDINATE ? s->search->finder.config.own
							: (int32_t)from->index;
	action->probe = from->probe;
	action->dead_indexes = from->dead_indexes;
}

static void find(struct step *s, struct finder_event event)
{
	struct finder_actions actions = { .count = 0 };
	event.settled = s->event->settled;
	event.own_ballot = s->event->own_ballot;
	finder_step(&s->search->finder, &event, s->now_ns, &actions);
	for (size_t i = 0; i < actions.count; i++)
		pass(s, &actions.items[i]);
}

static void on_listening(struct step *s)
{
	struct search *search = s->search;
	int32_t index = s->event->index;
	if (search->finder.state == FINDER_NEW) {
		search->finder.config.own = index;
		search->since_ns = s->now_ns;
		find(s, (struct finder_event){ .type = FINDER_START });
	} else if (index >= 0) {
		find(s, (struct finder_event){ .type = FINDER_OWN, .index = (uint32_t)index });
	}
}

static void on_answer(struct step *s)
{
	find(s, (struct finder_event){ .type = FINDER_ANSWER,
				       .index = (uint32_t)s->event->index,
				       .probe = s->event->probe,
				       .answer = s->event->answer,
				       .ballot = s->event->ballot });
}

/* The process that held our endpoint may have exited, or our host name may now resolve. Owners of
 * other endpoints would have taken over by then. */
static bool may_listen(const struct step *s)
{
	const struct search *search = s->search;
	return search->finder.state == FINDER_LOOKING && search->finder.config.own < 0 &&
	       s->now_ns >= ns_add(search->since_ns, SEARCH_LISTEN_AFTER_NS);
}

static void on_timer(struct step *s)
{
	if (s->now_ns < search_deadline_ns(s->search))
		return;
	if (may_listen(s))
		act(s, SEARCH_LISTEN);
	find(s, (struct finder_event){ .type = FINDER_TIMER });
}

/* ---- an arbiter ---- */

static void coordinate_by_term(struct step *s)
{
	s->search->term_used = true;
	act(s, SEARCH_COORDINATE)->epoch = s->search->term.epoch;
}

/* rule: fence */
static void renew(struct step *s)
{
	struct search_term *term = &s->search->term;
	if (s->event->term->until_ns <= term->until_ns)
		return;
	term->until_ns = s->event->term->until_ns;
	if (s->search->term_used)
		act(s, SEARCH_RENEWED);
}

/* A coordinator here gives way first, even to a new one in this process. */
static void on_term(struct step *s)
{
	struct search *search = s->search;
	const struct search_term *term = s->event->term;
	if (term->epoch < search->term.epoch)
		return;
	if (term->epoch == search->term.epoch) {
		renew(s);
		return;
	}
	search->term = *term;
	search->term_used = false;
	struct search_action *action = act(s, SEARCH_SUPERSEDED);
	action->epoch = term->epoch;
	action->here = term->here;
	if (term->here)
		coordinate_by_term(s);
}

/* ---- seeking ---- */

static void seek_here(struct step *s)
{
	act(s, SEARCH_COORDINATE);
}

static void seek_endpoints(struct step *s)
{
	struct search *search = s->search;
	bool linked = search->was_linked;
	search->was_linked = false;
	search->since_ns = s->now_ns;
	find(s, (struct finder_event){ .type = FINDER_LOST, .linked = linked });
}

/* The last term stays valid until there is a newer one. A coordinator that began here with this
 * term and stepped down has learned of a newer one, which will be announced. */
static void seek_leader(struct step *s)
{
	struct search *search = s->search;
	if (!search->term.epoch)
		return;
	if (!search->term.here)
		act(s, SEARCH_CONNECT);
	else if (!search->term_used)
		coordinate_by_term(s);
}

static void on_seek(struct step *s)
{
	static handler *const seeks[] = {
		[SEARCH_HERE] = seek_here,
		[SEARCH_ENDPOINTS] = seek_endpoints,
		[SEARCH_ARBITER] = seek_leader,
	};
	static_assert(ARRAY_LEN(seeks) == SEARCH_BY_COUNT, "every way needs an entry");
	seeks[s->search->by](s);
}

/* ---- all ---- */

void search_init(struct search *search, enum search_by by, const struct finder_config *finder)
{
	*search = (struct search){ .by = by, .seek_ns = NS_NEVER };
	finder_init(&search->finder, finder);
}

void search_step(struct search *search, const struct search_event *event, uint64_t now_ns,
		 struct search_actions *actions)
{
	static handler *const handlers[] = {
		[SEARCH_EV_LISTENING] = on_listening, [SEARCH_EV_ANSWER] = on_answer,
		[SEARCH_EV_TERM] = on_term,	      [SEARCH_EV_SEEK] = on_seek,
		[SEARCH_EV_TIMER] = on_timer,
	};
	struct step step = { search, event, now_ns, actions };
	handlers[event->type](&step);
}

uint64_t search_deadline_ns(const struct search *search)
{
	return finder_deadline_ns(&search->finder);
}
