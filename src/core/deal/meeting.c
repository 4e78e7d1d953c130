#include "core/deal/meeting.h"

struct step {
	struct meeting *meeting;
	const struct meeting_event *event;
	uint64_t now_ns;
	struct meeting_actions *actions;
};

static struct meeting_action *act(struct step *s, enum meeting_action_type type)
{
	struct meeting_action *action = &s->actions->items[s->actions->count++];
	*action = (struct meeting_action){ .type = type, .index = -1 };
	return action;
}

static void connect_to(struct step *s, int32_t index)
{
	const struct meeting *meeting = s->meeting;
	if (!meeting->up && !meeting->coordinates)
		act(s, MEETING_DO_CONNECT)->index = index;
}

static void coordinate(struct step *s)
{
	if (s->meeting->coordinates)
		return;
	s->meeting->coordinates = true;
	act(s, MEETING_DO_COORDINATE);
}

/* ---- endpoints ---- */

static void pass(struct step *s, const struct finder_action *from)
{
	struct meeting_action *action;
	switch (from->type) {
	case FINDER_PROBE:
		action = act(s, MEETING_DO_PROBE);
		action->index = (int32_t)from->index;
		action->probe = from->probe;
		break;
	case FINDER_CONNECT:
		connect_to(s, (int32_t)from->index);
		break;
	case FINDER_COORDINATE:
		coordinate(s);
		break;
	case FINDER_STEP_DOWN:
		act(s, MEETING_DO_SUPERSEDED);
		break;
	}
}

static void find(struct step *s, struct finder_event event)
{
	struct finder_actions actions = { .count = 0 };
	if (!s->meeting->begun)
		return;
	/* Who has the result file coordinates: two never do. */
	event.settled = true;
	finder_step(&s->meeting->finder, &event, s->now_ns, &actions);
	for (size_t i = 0; i < actions.count; i++)
		pass(s, &actions.items[i]);
}

static void on_listening(struct step *s)
{
	struct meeting *meeting = s->meeting;
	int32_t index = s->event->index;
	if (meeting->begun) {
		if (index >= 0)
			find(s,
			     (struct finder_event){ .type = FINDER_OWN, .index = (uint32_t)index });
		return;
	}
	meeting->begun = true;
	meeting->config.finder.own = index;
	finder_init(&meeting->finder, &meeting->config.finder);
	find(s, (struct finder_event){ .type = FINDER_START });
}

/* ---- an arbiter ---- */

static void on_term(struct step *s)
{
	s->meeting->named = s->event->here;
	if (s->event->here)
		coordinate(s);
	else if (s->meeting->coordinates)
		act(s, MEETING_DO_SUPERSEDED);
	else
		connect_to(s, -1);
}

/* ---- links and time ---- */

static void on_link_down(struct step *s)
{
	s->meeting->up = false;
	s->meeting->retry_ns = ns_add(s->now_ns, MEETING_RETRY_NS);
}

/* Its coordinator lives, though out of our reach: it may come back, or end. */
static void on_withdraw(struct step *s)
{
	s->meeting->coordinates = false;
	s->meeting->retry_ns = ns_add(s->now_ns, MEETING_RETRY_NS);
}

static void on_timer(struct step *s)
{
	struct meeting *meeting = s->meeting;
	if (meeting->retry_ns <= s->now_ns) {
		meeting->retry_ns = NS_NEVER;
		if (meeting->config.arbiter && meeting->named)
			coordinate(s);
		else if (meeting->config.arbiter)
			connect_to(s, -1);
		else
			find(s, (struct finder_event){ .type = FINDER_LOST, .linked = true });
	}
	if (meeting->begun && finder_deadline_ns(&meeting->finder) <= s->now_ns)
		find(s, (struct finder_event){ .type = FINDER_TIMER });
}

void meeting_init(struct meeting *meeting, const struct meeting_config *config)
{
	*meeting = (struct meeting){ .config = *config, .retry_ns = NS_NEVER };
}

void meeting_step(struct meeting *meeting, const struct meeting_event *event, uint64_t now_ns,
		  struct meeting_actions *actions)
{
	struct step s = { meeting, event, now_ns, actions };
	switch (event->type) {
	case MEETING_EV_LISTENING:
		on_listening(&s);
		break;
	case MEETING_EV_ANSWER:
		find(&s, (struct finder_event){ .type = FINDER_ANSWER,
						.index = (uint32_t)event->index,
						.probe = event->probe,
						.answer = event->answer,
						.ballot = event->ballot });
		break;
	case MEETING_EV_TERM:
		on_term(&s);
		break;
	case MEETING_EV_LINK_UP:
		meeting->up = true;
		break;
	case MEETING_EV_LINK_DOWN:
		on_link_down(&s);
		break;
	case MEETING_EV_WITHDRAW:
		on_withdraw(&s);
		break;
	case MEETING_EV_TIMER:
		on_timer(&s);
		break;
	}
}

uint64_t meeting_deadline_ns(const struct meeting *meeting)
{
	uint64_t next = meeting->begun ? finder_deadline_ns(&meeting->finder) : NS_NEVER;
	return MIN(next, meeting->retry_ns);
}
