#include "core/node/node_step.h"

/* A coordinator here gives way first, even to a new one in this process. */
static void give_way(struct step *s, uint64_t epoch)
{
	struct node *node = s->node;
	node_tell_coordinator(s, &(struct coordinator_event){ .type = COORDINATOR_SUPERSEDED });
	if (!epoch)
		return;
	node_exchange(s);
	node_tell_agent(s, &(struct agent_event){ .type = AGENT_SUPERSEDED, .epoch = epoch });
	node_exchange(s);
	if (node->link_state == NODE_LINKING) {
		node_act(s, NODE_DO_HANG_UP);
		node->link_state = NODE_UNLINKED;
	}
}

static void probe(struct step *s, const struct search_action *action)
{
	struct node_action *out = node_act(s, NODE_DO_PROBE);
	out->index = action->index;
	out->probe = action->probe;
}

static void act(struct step *s, const struct search_action *action)
{
	struct node *node = s->node;
	switch (action->type) {
	case SEARCH_LISTEN:
		node_act(s, NODE_DO_LISTEN);
		break;
	case SEARCH_PROBE:
		probe(s, action);
		break;
	case SEARCH_CONNECT:
		node->dead_indexes = action->dead_indexes;
		node_link_to(s, action->index);
		break;
	case SEARCH_COORDINATE:
		node->dead_indexes = action->dead_indexes;
		if (!node_agent_ended(node))
			node_begin_coordinator(s, action->epoch, action->index);
		break;
	case SEARCH_SUPERSEDED:
		give_way(s, action->epoch);
		break;
	case SEARCH_RENEWED:
		node_tell_coordinator(
			s, &(struct coordinator_event){ .type = COORDINATOR_LEASE,
							.until_ns = node->search.term.until_ns });
		break;
	}
}

static void step_search(struct step *s, struct search_event event)
{
	struct node *node = s->node;
	struct search_actions actions = { .count = 0 };
	event.settled = node->coordinator && coordinator_settled(node->coordinator);
	event.own_ballot = node_ballot(node);
	search_step(&node->search, &event, s->now_ns, &actions);
	for (size_t i = 0; i < actions.count; i++)
		act(s, &actions.items[i]);
}

void node_seek(struct step *s)
{
	struct node *node = s->node;
	node->search.seek_ns = NS_NEVER;
	if (node->link_state != NODE_UNLINKED || node_agent_ended(node))
		return;
	if (node->coordinator)
		node_attach(s);
	else
		step_search(s, (struct search_event){ .type = SEARCH_EV_SEEK });
}

/* ---- events ---- */

void node_on_listening(struct step *s)
{
	step_search(s,
		    (struct search_event){ .type = SEARCH_EV_LISTENING, .index = s->event->index });
}

void node_on_term(struct step *s)
{
	struct node *node = s->node;
	uint64_t last = node->search.term.epoch;
	step_search(s, (struct search_event){ .type = SEARCH_EV_TERM, .term = &s->event->term });
	if (node->search.term.epoch > last && node->link_state == NODE_UNLINKED)
		node_seek_at(node, s->now_ns);
}

void node_on_recorded(struct step *s)
{
	const struct search *search = &s->node->search;
	if (search->term_used && s->event->term.epoch == search->term.epoch)
		node_tell_coordinator(s,
				      &(struct coordinator_event){ .type = COORDINATOR_RECORDED });
}

void node_on_answer(struct step *s)
{
	if (!node_agent_ended(s->node))
		step_search(s, (struct search_event){ .type = SEARCH_EV_ANSWER,
						      .index = s->event->index,
						      .probe = s->event->probe,
						      .answer = s->event->answer,
						      .ballot = s->event->ballot });
}

void node_search_timer(struct step *s)
{
	if (!node_agent_ended(s->node))
		step_search(s, (struct search_event){ .type = SEARCH_EV_TIMER });
}
