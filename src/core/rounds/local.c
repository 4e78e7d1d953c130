#include "core/rounds/local.h"

#include "base/clock.h"
#include "base/mem.h"

#define LINK 1

void local_init(struct local *local, const struct agent_config *config)
{
	struct coordinator_config coordinator = COORDINATOR_CONFIG_INIT;
	coordinator.local = config->node.id;
	coordinator.id = LINK;
	*local = (struct local){ .from_agent = AGENT_ACTIONS_INIT,
				 .from_coordinator = COORDINATOR_ACTIONS_INIT };
	agent_init(&local->agent, config);
	local->agent.config.node.period_ns = 0;
	local->agent.config.join_timeout_ns = NS_NEVER;
	coordinator_init(&local->coordinator, &coordinator);
}

void local_done(struct local *local)
{
	agent_actions_done(&local->from_agent);
	coordinator_actions_done(&local->from_coordinator);
	coordinator_done(&local->coordinator);
}

static void tell_coordinator(struct local *local, const struct coordinator_event *event,
			     uint64_t now_ns)
{
	coordinator_step(&local->coordinator, event, now_ns, &local->from_coordinator);
}

/* Hands one action of the agent on: to the coordinator or to the caller. */
static void pass_on(struct local *local, const struct agent_action *action, uint64_t now_ns,
		    struct agent_actions *actions)
{
	if (action->type == AGENT_SEND) {
		tell_coordinator(local,
				 &(struct coordinator_event){ .type = COORDINATOR_MSG,
							      .link = LINK,
							      .msg = &action->msg,
							      .greeted_ns = now_ns },
				 now_ns);
	} else if (action->type != AGENT_HANG_UP) {
		ARRAY_RESERVE(actions->items, actions->count, actions->cap);
		actions->items[actions->count++] = *action;
	}
}

/* Both queues in order until they are empty; each step may add to the other's. */
static void exchange(struct local *local, uint64_t now_ns, struct agent_actions *actions)
{
	size_t a = 0, c = 0;
	while (a < local->from_agent.count || c < local->from_coordinator.count) {
		if (a < local->from_agent.count) {
			struct agent_action action = local->from_agent.items[a++];
			pass_on(local, &action, now_ns, actions);
			continue;
		}
		struct coordinator_action action = local->from_coordinator.items[c++];
		if (action.type == COORDINATOR_SEND)
			agent_step(&local->agent,
				   &(struct agent_event){ .type = AGENT_MSG, .msg = &action.msg },
				   now_ns, &local->from_agent);
	}
	local->from_agent.count = 0;
	local->from_coordinator.count = 0;
}

void local_step(struct local *local, const struct agent_event *event, uint64_t now_ns,
		struct agent_actions *actions)
{
	agent_step(&local->agent, event, now_ns, &local->from_agent);
	if (event->type == AGENT_TIMER)
		tell_coordinator(local, &(struct coordinator_event){ .type = COORDINATOR_TIMER },
				 now_ns);
	exchange(local, now_ns, actions);
	if (event->type == AGENT_START) {
		agent_step(&local->agent, &(struct agent_event){ .type = AGENT_LINK_UP }, now_ns,
			   &local->from_agent);
		exchange(local, now_ns, actions);
	}
}

uint64_t local_deadline_ns(const struct local *local)
{
	return MIN(agent_deadline_ns(&local->agent), coordinator_deadline_ns(&local->coordinator));
}
