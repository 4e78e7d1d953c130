#include "run/membership.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"

static void add_addrs(struct node_info *node)
{
	struct addr addrs[MSG_ADDRS_MAX];
	struct err err = ERR_INIT;
	int count = addr_of_interfaces(addrs, ARRAY_LEN(addrs), &err);
	if (count < 0)
		log_warn("%s", err.msg);
	for (int i = 0; i < count; i++)
		addr_to_msg(&addrs[i], &node->addrs[node->addr_count++]);
}

static struct agent_config make_agent_config(const struct run_config *config)
{
	struct agent_config agent = {
		.node = {
			.min_nodes = config->min_nodes,
			.max_nodes = config->max_nodes,
			.nproc = config->nproc,
			.node_rank = config->rdzv.node_rank,
			.max_restarts = config->max_restarts,
			.backoff_ns = config->restart_backoff.initial_ns,
			.backoff_max_ns = config->restart_backoff.max_ns,
			.period_ns = rendezvous_period_ns(&config->rdzv, config->max_nodes),
			.lease_periods = config->rdzv.lease_periods,
		},
		.no_restart_on = config->no_restart_on,
		.join_timeout_ns = config->rdzv.join_timeout_ns,
	};
	random_bytes(&agent.node.id, sizeof(agent.node.id));
	snprintf(agent.node.role, sizeof(agent.node.role), "%s", config->role);
	gethostname(agent.node.name, sizeof(agent.node.name) - 1);
	return agent;
}

int membership_init(struct membership *membership, struct event_base *base,
		    const struct run_config *config, const struct wiring_handler *handler,
		    void *arg, struct err *err)
{
	struct agent_config agent = make_agent_config(config);
	membership->node = NULL;
	if (config->rdzv.kind == RENDEZVOUS_LOCAL) {
		local_init(&membership->local, &agent);
		return 0;
	}
	add_addrs(&agent.node);
	return wiring_new(base, &config->rdzv, &agent, handler, arg, &membership->node, err);
}

void membership_done(struct membership *membership)
{
	wiring_free(membership->node);
	local_done(&membership->local);
}

void membership_set_store(struct membership *membership, const char *host, uint16_t port)
{
	if (membership->node)
		wiring_set_store(membership->node, host, port);
	else
		agent_set_store(&membership->local.agent, host, port);
}

void membership_step(struct membership *membership, const struct agent_event *event,
		     uint64_t now_ns, struct agent_actions *actions)
{
	if (membership->node)
		wiring_step(membership->node, event, now_ns, actions);
	else
		local_step(&membership->local, event, now_ns, actions);
}

uint64_t membership_deadline_ns(const struct membership *membership)
{
	return membership->node ? wiring_deadline_ns(membership->node)
				: local_deadline_ns(&membership->local);
}

const struct agent *membership_agent(const struct membership *membership)
{
	return membership->node ? wiring_agent(membership->node) : &membership->local.agent;
}
