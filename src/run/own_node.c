#include "run/own_node.h"

#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/random.h"
#include "nodes/wiring.h"

#define CHECK_TIMEOUT_NS (30 * NS_PER_S) /* the checks have shorter ones of their own */
#define STRIKES_DEFAULT 3

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

/* A node alone has nobody to be compared with, and nobody to take its place. */
static bool checks_again(const struct run_config *config)
{
	return config->max_nodes > 1 && config->preflight.checks;
}

static uint32_t strikes(const struct run_config *config)
{
	int64_t given = config->preflight.strikes;
	return given >= 0 ? (uint32_t)given : config->preflight.checks ? STRIKES_DEFAULT : 0;
}

#define LOST_HOST_NS (60 * NS_PER_S) /* where nobody starts a host again */
#define SEEK_NS (30 * NS_PER_S)	     /* time for another host to take the coordinator's place */

static uint64_t lost_timeout(const struct run_config *config)
{
	uint64_t join_ns = config->rdzv.join_timeout_ns;
	if (config->lost_host_ns != RUN_LOST_HOST_UNSET)
		return config->lost_host_ns;
	return config->fleet_host || config->engine.hosts_are_final ? MIN(join_ns, LOST_HOST_NS)
								    : join_ns;
}

/* Without a coordinator, after a round. */
static uint64_t seek_timeout(const struct run_config *config)
{
	const struct rendezvous *rdzv = &config->rdzv;
	bool one_place = rdzv->kind == RENDEZVOUS_ENDPOINTS && rdzv->endpoint_count == 1;
	uint64_t least_ns = one_place ? 1 : MIN(SEEK_NS, rdzv->join_timeout_ns);
	return MAX(lost_timeout(config), least_ns);
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
			.by_progress = config->restarts_by_progress,
			.backoff_ns = config->restart_backoff.initial_ns,
			.backoff_max_ns = config->restart_backoff.max_ns,
			.period_ns = rendezvous_period_ns(&config->rdzv, config->max_nodes),
			.lease_periods = config->rdzv.lease_periods,
			.checks = config->checks,
			.strikes = strikes(config),
			.cool_down_ns = config->preflight.cool_down_ns,
			.excluded = config->excluded,
			.lost_timeout_ns = MAX(lost_timeout(config), 1),
		},
		.no_restart_on = config->no_restart_on,
		.check_timeout_ns = checks_again(config) ? CHECK_TIMEOUT_NS : 0,
		.join_timeout_ns = config->rdzv.join_timeout_ns,
		.seek_timeout_ns = seek_timeout(config),
	};
	random_bytes(&agent.node.id, sizeof(agent.node.id));
	snprintf(agent.node.role, sizeof(agent.node.role), "%s", config->role);
	gethostname(agent.node.name, sizeof(agent.node.name) - 1);
	return agent;
}

void own_node_configure(const struct run_config *config, struct node_config *ret_config)
{
	wiring_configure(&config->rdzv, ret_config);
	ret_config->agent = make_agent_config(config);
	if (config->rdzv.kind != RENDEZVOUS_LOCAL)
		add_addrs(&ret_config->agent.node);
}
