#include "core/dispatch/party.h"

struct step {
	struct party *party;
	const struct party_event *event;
	uint64_t now_ns;
	struct party_actions *actions;
};

typedef void handler(struct step *s);

static struct party_action *act(struct step *s, enum party_action_type type)
{
	struct party_action *action = &s->actions->items[s->actions->count++];
	*action = (struct party_action){ .type = type, .index = -1 };
	return action;
}

static void hang_up(struct step *s)
{
	if (s->party->link != PARTY_UNLINKED)
		act(s, PARTY_DO_HANG_UP);
	s->party->link = PARTY_UNLINKED;
}

/* ---- what the search wants ---- */

static void probe(struct step *s, const struct search_action *from)
{
	struct party_action *action = act(s, PARTY_DO_PROBE);
	action->index = from->index;
	action->probe = from->probe;
}

static void connect_to(struct step *s, int32_t index)
{
	struct party *party = s->party;
	if (party->link != PARTY_UNLINKED || party->coordinates)
		return;
	party->link = PARTY_LINKING;
	act(s, PARTY_DO_CONNECT)->index = index;
}

static void coordinate(struct step *s)
{
	if (s->party->coordinates)
		return;
	hang_up(s);
	s->party->coordinates = true;
	act(s, PARTY_DO_COORDINATE);
}

/* A newer term that names this host again changes nothing. */
static void give_way(struct step *s, const struct search_action *from)
{
	if (s->party->coordinates && !from->here)
		act(s, PARTY_DO_SUPERSEDED);
}

static void carry_out(struct step *s, const struct search_action *action)
{
	switch (action->type) {
	case SEARCH_LISTEN:
		act(s, PARTY_DO_LISTEN);
		break;
	case SEARCH_PROBE:
		probe(s, action);
		break;
	case SEARCH_CONNECT:
		connect_to(s, action->index);
		break;
	case SEARCH_COORDINATE:
		coordinate(s);
		break;
	case SEARCH_SUPERSEDED:
		give_way(s, action);
		break;
	case SEARCH_RENEWED: /* who has the result file coordinates, not who has a lease */
		break;
	}
}

/* Two that coordinate never meet: only one has the result file. */
static void search(struct step *s, struct search_event event)
{
	struct search_actions actions = { .count = 0 };
	event.settled = true;
	search_step(&s->party->search, &event, s->now_ns, &actions);
	for (size_t i = 0; i < actions.count; i++)
		carry_out(s, &actions.items[i]);
}

/* ---- events ---- */

static void on_start(struct step *s)
{
	act(s, PARTY_DO_LISTEN);
}

static void on_listening(struct step *s)
{
	search(s, (struct search_event){ .type = SEARCH_EV_LISTENING, .index = s->event->index });
}

static void on_answer(struct step *s)
{
	search(s, (struct search_event){ .type = SEARCH_EV_ANSWER,
					 .index = s->event->index,
					 .probe = s->event->probe,
					 .answer = s->event->answer,
					 .ballot = s->event->ballot });
}

static void on_term(struct step *s)
{
	struct search *known = &s->party->search;
	uint64_t last = known->term.epoch;
	search(s, (struct search_event){ .type = SEARCH_EV_TERM, .term = s->event->term });
	if (known->term.epoch > last && !known->term.here)
		connect_to(s, -1);
}

static void on_link_up(struct step *s)
{
	s->party->link = PARTY_LINKED;
	search_linked(&s->party->search);
}

static void seek_later(struct step *s)
{
	search_seek_at(&s->party->search, ns_add(s->now_ns, SEARCH_RETRY_NS));
}

static void on_link_down(struct step *s)
{
	s->party->link = PARTY_UNLINKED;
	seek_later(s);
}

static void on_barred(struct step *s)
{
	if (!s->event->by_peer || search_barred(&s->party->search))
		act(s, PARTY_DO_END)->why = s->event->why;
}

/* Its coordinator lives, though out of our reach: it may come back, or end. */
static void on_withdraw(struct step *s)
{
	s->party->coordinates = false;
	search_again(&s->party->search);
	seek_later(s);
}

static void on_timer(struct step *s)
{
	struct party *party = s->party;
	if (party->search.seek_ns <= s->now_ns) {
		search_seek_at(&party->search, NS_NEVER);
		if (party->link == PARTY_UNLINKED && !party->coordinates)
			search(s, (struct search_event){ .type = SEARCH_EV_SEEK });
	}
	search(s, (struct search_event){ .type = SEARCH_EV_TIMER });
}

void party_init(struct party *party, enum search_by by, const struct finder_config *finder)
{
	*party = (struct party){ .coordinates = false };
	search_init(&party->search, by, finder);
}

void party_step(struct party *party, const struct party_event *event, uint64_t now_ns,
		struct party_actions *actions)
{
	static handler *const handlers[] = {
		[PARTY_EV_START] = on_start,	   [PARTY_EV_LISTENING] = on_listening,
		[PARTY_EV_ANSWER] = on_answer,	   [PARTY_EV_TERM] = on_term,
		[PARTY_EV_LINK_UP] = on_link_up,   [PARTY_EV_LINK_DOWN] = on_link_down,
		[PARTY_EV_WITHDRAW] = on_withdraw, [PARTY_EV_TIMER] = on_timer,
		[PARTY_EV_BARRED] = on_barred,
	};
	static_assert(ARRAY_LEN(handlers) == PARTY_EVENT_COUNT, "every event needs a handler");
	struct step step = { party, event, now_ns, actions };
	handlers[event->type](&step);
}

uint64_t party_deadline_ns(const struct party *party)
{
	return MIN(search_deadline_ns(&party->search), party->search.seek_ns);
}
