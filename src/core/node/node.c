#include "core/node/node_step.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define ACTIONS_KEPT 64 /* a longer list is freed after the step that needed it */

struct node_action *node_act(struct step *s, enum node_action_type type)
{
	struct node_actions *actions = s->actions;
	ARRAY_RESERVE(actions->items, actions->count, actions->cap);
	struct node_action *action = &actions->items[actions->count++];
	action->type = type;
	action->link = 0;
	action->linked = false;
	return action;
}

void node_act_msg(struct step *s, enum node_action_type type, uint64_t link, const struct msg *msg)
{
	struct node_action *action = node_act(s, type);
	action->link = link;
	memcpy(&action->msg, msg, msg_size(msg->type));
}

void node_tell_agent(struct step *s, const struct agent_event *event)
{
	agent_step(&s->node->agent, event, s->now_ns, &s->actions->from_agent);
}

void node_tell_coordinator(struct step *s, const struct coordinator_event *event)
{
	if (s->node->coordinator)
		coordinator_step(s->node->coordinator, event, s->now_ns,
				 &s->actions->from_coordinator);
}

/* ---- events ---- */

static void on_start(struct step *s)
{
	struct node *node = s->node;
	if (node_has_agent(node))
		node_tell_agent(s, &(struct agent_event){ .type = AGENT_START });
	if (node_agent_ended(node))
		return;
	if (node->search.by == SEARCH_HERE)
		search_seek_at(&node->search, s->now_ns);
	else
		node_act(s, NODE_DO_LISTEN);
}

static void on_msg(struct step *s)
{
	const struct node_event *event = s->event;
	if (msg_is_asking(event->msg->type))
		node_take_asking(s, event->link, event->msg);
	else if (event->link != s->node->link)
		node_tell_coordinator(s, &(struct coordinator_event){ .type = COORDINATOR_MSG,
								      .link = event->link,
								      .msg = event->msg,
								      .greeted_ns =
									      event->greeted_ns });
	else if (s->node->link_state == NODE_LINKED)
		node_tell_agent(s, &(struct agent_event){ .type = AGENT_MSG, .msg = event->msg });
}

static void on_host(struct step *s)
{
	struct node *node = s->node;
	const struct agent_event *event = &s->event->agent;
	if (event->type == AGENT_BARRED && event->by_peer && !search_barred(&node->search))
		return;
	if (node->ending && event->type == AGENT_STOP_REQUESTED)
		node_release(s);
	if (node->link_state == NODE_PLACING && event->type == AGENT_BARRED)
		node_hang_up(s);
	node_tell_agent(s, event);
}

static void on_timer(struct step *s)
{
	struct node *node = s->node;
	if (s->now_ns >= agent_deadline_ns(&node->agent))
		node_tell_agent(s, &(struct agent_event){ .type = AGENT_TIMER });
	if (node->coordinator && s->now_ns >= coordinator_deadline_ns(node->coordinator))
		node_tell_coordinator(s, &(struct coordinator_event){ .type = COORDINATOR_TIMER });
	node_exchange(s);
	node_asks_timer(s);
	node_search_timer(s);
}

static node_handler *const table[] = {
	[NODE_EV_START] = on_start,
	[NODE_EV_LISTENING] = node_on_listening,
	[NODE_EV_TERM] = node_on_term,
	[NODE_EV_ANSWER] = node_on_answer,
	[NODE_EV_LINK_UP] = node_on_link_up,
	[NODE_EV_NOT_LINKED] = node_on_not_linked,
	[NODE_EV_LINK_DOWN] = node_on_link_down,
	[NODE_EV_MSG] = on_msg,
	[NODE_EV_STORE] = node_on_store,
	[NODE_EV_HOST] = on_host,
	[NODE_EV_PIECE] = node_on_piece,
	[NODE_EV_RECORDED] = node_on_recorded,
	[NODE_EV_TIMER] = on_timer,
};
static_assert(ARRAY_LEN(table) == NODE_EVENT_COUNT, "every event needs a handler");

void node_step(struct node *node, const struct node_event *event, uint64_t now_ns,
	       struct node_actions *actions)
{
	struct step step = { node, event, now_ns, actions, node->link_state == NODE_LINKED };
	table[event->type](&step);
	node_exchange(&step);
	if (now_ns >= node->search.seek_ns) {
		node_seek(&step);
		node_exchange(&step);
	}
	if (node->ending && !node_stays(node))
		node_release(&step);
	if (now_ns >= node->tell_stay_ns)
		node_tell_stay(&step);
	node_pass_asks(&step);
}

void node_set_wall(struct node *node, int64_t wall_shift_ns)
{
	node->agent.wall_shift_ns = wall_shift_ns;
	if (node->coordinator)
		node->coordinator->wall_shift_ns = wall_shift_ns;
}

uint64_t node_deadline_ns(const struct node *node)
{
	uint64_t deadline_ns = MIN(agent_deadline_ns(&node->agent), node->search.seek_ns);
	deadline_ns = MIN(deadline_ns, node->tell_stay_ns);
	if (!node_agent_ended(node))
		deadline_ns = MIN(deadline_ns, search_deadline_ns(&node->search));
	if (node->coordinator)
		deadline_ns = MIN(deadline_ns, coordinator_deadline_ns(node->coordinator));
	if (node->questions)
		deadline_ns = MIN(deadline_ns, questions_deadline_ns(node->questions));
	if (node->asking)
		deadline_ns = MIN(deadline_ns, asking_deadline_ns(node->asking));
	return deadline_ns;
}

/* ---- life ---- */

void node_init(struct node *node, const struct node_config *config)
{
	static const enum search_by ways[] = {
		[NODE_ALONE] = SEARCH_HERE,
		[NODE_ENDPOINTS] = SEARCH_ENDPOINTS,
		[NODE_ARBITER] = SEARCH_ARBITER,
		[NODE_APART] = SEARCH_HERE,
	};
	static_assert(ARRAY_LEN(ways) == NODE_KIND_COUNT, "every kind needs an entry");
	*node = (struct node){ .config = *config,
			       .next_local = NODE_LOCAL_LINK,
			       .tell_stay_ns = NS_NEVER };
	if (config->kind == NODE_ALONE) {
		/* Its link cannot fall silent, and there is no other host to wait for. */
		node->config.agent.node.period_ns = 0;
		node->config.agent.join_timeout_ns = NS_NEVER;
	}
	node->config.agent.node.can = CAN_ALL;
	agent_init(&node->agent, &node->config.agent);
	search_init(&node->search, ways[config->kind], &config->finder);
}

void node_done(struct node *node)
{
	questions_free(node->questions);
	node->questions = NULL;
	node_free_coordinator(node);
	free(node->asking);
	node->asking = NULL;
}

void node_actions_clear(struct node_actions *actions)
{
	if (actions->cap > ACTIONS_KEPT)
		node_actions_done(actions);
	questions_free(actions->left);
	actions->left = NULL;
	actions->count = 0;
}

void node_actions_done(struct node_actions *actions)
{
	free(actions->items);
	agent_actions_done(&actions->from_agent);
	coordinator_actions_done(&actions->from_coordinator);
	ask_actions_done(&actions->asks);
	questions_free(actions->left);
	*actions = NODE_ACTIONS_INIT;
}
