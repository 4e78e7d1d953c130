#include "core/node/node_step.h"

static void step_finder(struct step *s, struct finder_event event)
{
	struct node *node = s->node;
	struct finder_actions actions;
	actions.count = 0;
	event.settled = node->coordinator && coordinator_settled(node->coordinator);
	event.own_ballot = node_ballot(node);
	finder_step(&node->finder, &event, s->now_ns, &actions);
	for (size_t i = 0; i < actions.count; i++) {
		const struct finder_action *action = &actions.items[i];
		struct node_action *out;
		switch (action->type) {
		case FINDER_PROBE:
			out = node_act(s, NODE_DO_PROBE);
			out->index = (int32_t)action->index;
			out->probe = action->probe;
			break;
		case FINDER_CONNECT:
			node->dead_indexes = action->dead_indexes;
			node_link_to(s, (int32_t)action->index);
			break;
		case FINDER_COORDINATE:
			node->dead_indexes = action->dead_indexes;
			node_begin_coordinator(s, 0, node->finder.config.own);
			break;
		case FINDER_STEP_DOWN:
			node_tell_coordinator(
				s, &(struct coordinator_event){ .type = COORDINATOR_SUPERSEDED });
			break;
		}
	}
}

static void seek_alone(struct step *s)
{
	node_begin_coordinator(s, 0, -1);
}

static void seek_endpoints(struct step *s)
{
	struct node *node = s->node;
	bool linked = node->was_linked;
	node->was_linked = false;
	node->since_ns = s->now_ns;
	step_finder(s, (struct finder_event){ .type = FINDER_LOST, .linked = linked });
}

/* The last term stays valid until there is a newer one. A coordinator that began here with this
 * term and stepped down has learned of a newer one, which will be announced. */
static void seek_leader(struct step *s)
{
	struct node *node = s->node;
	if (!node->term.epoch)
		return;
	if (!node->term.here) {
		node_link_to(s, -1);
	} else if (!node->term.used) {
		node->term.used = true;
		node_begin_coordinator(s, node->term.epoch, -1);
	}
}

void node_seek(struct step *s)
{
	static node_handler *const by_kind[] = {
		[NODE_ALONE] = seek_alone,
		[NODE_ENDPOINTS] = seek_endpoints,
		[NODE_ARBITER] = seek_leader,
		[NODE_APART] = seek_alone,
	};
	static_assert(ARRAY_LEN(by_kind) == NODE_KIND_COUNT, "every kind needs an entry");
	struct node *node = s->node;
	node->seek_ns = NS_NEVER;
	if (node->link_state != NODE_UNLINKED || node_agent_ended(node))
		return;
	if (node->coordinator)
		node_attach(s);
	else
		by_kind[node->config.kind](s);
}

/* ---- events ---- */

void node_on_listening(struct step *s)
{
	struct node *node = s->node;
	if (node->finder.state == FINDER_NEW) {
		node->finder.config.own = s->event->index;
		node->since_ns = s->now_ns;
		step_finder(s, (struct finder_event){ .type = FINDER_START });
	} else if (s->event->index >= 0) {
		step_finder(s, (struct finder_event){ .type = FINDER_OWN,
						      .index = (uint32_t)s->event->index });
	}
}

/* The arbiter renews its lease. rule: fence */
static void renew(struct step *s)
{
	struct node *node = s->node;
	uint64_t until_ns = s->event->until_ns;
	if (until_ns <= node->term.until_ns)
		return;
	node->term.until_ns = until_ns;
	if (node->term.used)
		node_tell_coordinator(s, &(struct coordinator_event){ .type = COORDINATOR_LEASE,
								      .until_ns = until_ns });
}

/* A coordinator here gives way first, even to a new one in this process. */
void node_on_term(struct step *s)
{
	struct node *node = s->node;
	if (s->event->epoch < node->term.epoch)
		return;
	if (s->event->epoch == node->term.epoch) {
		renew(s);
		return;
	}
	node->term.epoch = s->event->epoch;
	node->term.here = s->event->here;
	node->term.used = false;
	node->term.until_ns = s->event->until_ns;
	node->term.past = s->event->past;
	node_tell_coordinator(s, &(struct coordinator_event){ .type = COORDINATOR_SUPERSEDED });
	node_exchange(s);
	node_tell_agent(s, &(struct agent_event){ .type = AGENT_SUPERSEDED,
						  .epoch = node->term.epoch });
	node_exchange(s);
	if (node->link_state == NODE_LINKING) {
		node_act(s, NODE_DO_HANG_UP);
		node->link_state = NODE_UNLINKED;
	}
	if (node->term.here && !node_agent_ended(node))
		seek_leader(s);
	if (node->link_state == NODE_UNLINKED)
		node_seek_at(node, s->now_ns);
}

void node_on_recorded(struct step *s)
{
	if (s->node->term.used && s->event->epoch == s->node->term.epoch)
		node_tell_coordinator(s,
				      &(struct coordinator_event){ .type = COORDINATOR_RECORDED });
}

void node_on_answer(struct step *s)
{
	if (node_agent_ended(s->node))
		return;
	step_finder(s, (struct finder_event){ .type = FINDER_ANSWER,
					      .index = (uint32_t)s->event->index,
					      .probe = s->event->probe,
					      .answer = s->event->answer,
					      .ballot = s->event->ballot });
}

/* The process that held our endpoint may have exited, or our host name may now resolve. Owners of
 * other endpoints would have taken over by then. */
static bool may_listen(const struct step *s)
{
	const struct node *node = s->node;
	return node->finder.state == FINDER_LOOKING && node->finder.config.own < 0 &&
	       s->now_ns >= ns_add(node->since_ns, NODE_LISTEN_AFTER_NS);
}

void node_search_timer(struct step *s)
{
	const struct node *node = s->node;
	if (node_agent_ended(node) || s->now_ns < finder_deadline_ns(&node->finder))
		return;
	if (may_listen(s))
		node_act(s, NODE_DO_LISTEN);
	step_finder(s, (struct finder_event){ .type = FINDER_TIMER });
}
