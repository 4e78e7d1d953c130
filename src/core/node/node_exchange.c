#include "core/node/node_step.h"

static void pass_agents(struct step *s, const struct agent_action *action)
{
	switch (action->type) {
	case AGENT_SEND:
		node_send_up(s, &action->msg);
		break;
	case AGENT_HANG_UP:
		node_hang_up(s);
		break;
	case AGENT_EXIT:
		node_leave(s, action);
		break;
	case AGENT_PEERS:
	case AGENT_GROUP_START:
	case AGENT_GROUP_STOP:
	case AGENT_GROUP_KILL:
	case AGENT_CHECK:
	case AGENT_MEASURE:
	case AGENT_PLAN:
	case AGENT_LATE:
	case AGENT_LOOK:
	case AGENT_EXCHANGED:
	case AGENT_NO_EXCHANGE:
		node_act(s, NODE_DO_HOST)->agent = *action;
		break;
	}
}

static void pass_message(struct step *s, const struct coordinator_action *action)
{
	if (action->link < NODE_LOCAL_LINK)
		node_act_msg(s, NODE_DO_SEND, action->link, &action->msg);
	else if (action->link == s->node->link)
		node_tell_agent(s, &(struct agent_event){ .type = AGENT_MSG, .msg = &action->msg });
}

static void pass_hang_up(struct step *s, uint64_t link)
{
	if (link < NODE_LOCAL_LINK) {
		node_end_asking(s, link);
		node_act(s, NODE_DO_HANG_UP)->link = link;
	} else if (link == s->node->link) {
		node_lose_link(s, true);
	}
}

static void pass_coordinators(struct step *s, const struct coordinator_action *action)
{
	switch (action->type) {
	case COORDINATOR_SEND:
		pass_message(s, action);
		break;
	case COORDINATOR_HANG_UP:
		pass_hang_up(s, action->link);
		break;
	case COORDINATOR_STEP_DOWN:
		node_give_up(s, &action->down);
		break;
	case COORDINATOR_RECORD:
		node_act(s, NODE_DO_RECORD)->end = action->end;
		break;
	case COORDINATOR_FINISHED:
		node_finish(s);
		break;
	case COORDINATOR_NOTE:
		node_act(s, NODE_DO_NOTE)->note = action->note;
		break;
	}
}

/* Handles both queues in order until they are empty. Each machine's actions go only to the other,
 * so neither queue grows while we look at its entries. */
void node_exchange(struct step *s)
{
	struct agent_actions *agents = &s->actions->from_agent;
	struct coordinator_actions *coordinators = &s->actions->from_coordinator;
	size_t a = 0, c = 0;
	while (a < agents->count || c < coordinators->count) {
		if (a < agents->count)
			pass_agents(s, &agents->items[a++]);
		else
			pass_coordinators(s, &coordinators->items[c++]);
	}
	agents->count = coordinators->count = 0;
}
