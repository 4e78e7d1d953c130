#include "core/node/node_step.h"

static void go_unlinked(struct node *node, uint64_t seek_ns)
{
	node->link_state = NODE_UNLINKED;
	node->link = 0;
	node_seek_at(node, seek_ns);
}

static void go_up(struct step *s)
{
	s->node->link_state = NODE_LINKED;
	node_tell_agent(s, &(struct agent_event){ .type = AGENT_LINK_UP,
						  .dead_indexes = s->node->dead_indexes,
						  .can = s->node->link_can });
}

/* The agent's JOIN names its store, so the store needs an address first. */
static void take_link(struct step *s, uint64_t link, uint32_t can)
{
	struct node *node = s->node;
	node->link = link;
	node->link_can = can;
	search_linked(&node->search);
	if (node->config.kind == NODE_ALONE) {
		go_up(s);
		return;
	}
	node->link_state = NODE_PLACING;
	node_act(s, NODE_DO_PLACE_STORE)->link = node_is_local(node) ? 0 : link;
}

void node_attach(struct step *s)
{
	take_link(s, s->node->next_local++, CAN_ALL);
}

void node_link_to(struct step *s, int32_t index)
{
	if (s->node->link_state != NODE_UNLINKED || node_agent_ended(s->node))
		return;
	s->node->link_state = NODE_LINKING;
	node_act(s, NODE_DO_CONNECT)->index = index;
}

void node_send_up(struct step *s, const struct msg *msg)
{
	struct node *node = s->node;
	if (node->link_state != NODE_LINKED)
		return;
	if (node_is_local(node)) {
		node_tell_coordinator(s, &(struct coordinator_event){ .type = COORDINATOR_MSG,
								      .link = node->link,
								      .msg = msg,
								      .greeted_ns = s->now_ns });
		return;
	}
	node_act_msg(s, NODE_DO_SEND, node->link, msg);
}

void node_hang_up(struct step *s)
{
	struct node *node = s->node;
	uint64_t link = node->link;
	bool local = node_is_local(node);
	node_end_asking(s, link);
	go_unlinked(node, s->now_ns);
	if (local)
		node_tell_coordinator(s, &(struct coordinator_event){ .type = COORDINATOR_LINK_DOWN,
								      .link = link,
								      .dead = true });
	else
		node_act(s, NODE_DO_HANG_UP)->link = link;
}

void node_lose_link(struct step *s, bool dead)
{
	struct node *node = s->node;
	bool was_up = node->link_state == NODE_LINKED;
	if (node->link)
		node_end_asking(s, node->link);
	go_unlinked(node, was_up ? s->now_ns : ns_add(s->now_ns, SEARCH_RETRY_NS));
	if (was_up)
		node_tell_agent(s, &(struct agent_event){ .type = AGENT_LINK_DOWN, .dead = dead });
}

void node_on_link_up(struct step *s)
{
	if (s->node->link_state == NODE_LINKING && !node_agent_ended(s->node))
		take_link(s, s->event->link, s->event->can);
	else
		node_act(s, NODE_DO_HANG_UP)->link = s->event->link;
}

void node_on_not_linked(struct step *s)
{
	if (s->node->link_state == NODE_LINKING)
		node_lose_link(s, false);
}

void node_on_link_down(struct step *s)
{
	if (s->event->link == s->node->link) {
		node_lose_link(s, s->event->dead);
		return;
	}
	node_tell_coordinator(s, &(struct coordinator_event){ .type = COORDINATOR_LINK_DOWN,
							      .link = s->event->link,
							      .dead = s->event->dead,
							      .why = s->event->why });
	node_end_asking(s, s->event->link);
}

void node_on_store(struct step *s)
{
	agent_set_store(&s->node->agent, s->event->host, s->event->port);
	if (s->node->link_state == NODE_PLACING)
		go_up(s);
}
