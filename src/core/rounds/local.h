/* One agent and its coordinator in one process, without a link between them that could fail: a job
 * on a single host. The same two machines as over a network, their messages handed over directly.
 */
#ifndef CORE_ROUNDS_LOCAL_H
#define CORE_ROUNDS_LOCAL_H

#include "core/rounds/agent.h"
#include "core/rounds/coordinator.h"

struct local {
	struct agent agent;
	struct coordinator coordinator;
	struct agent_actions from_agent;
	struct coordinator_actions from_coordinator;
};

/* The link comes up with AGENT_START. Pings and the join time-out are off whatever
 * `config` says: there is nobody to wait for. */
void local_init(struct local *local, const struct agent_config *config);
void local_done(struct local *local);

/* Steps the agent and carries messages to and fro until none is left. What is for the caller is
 * appended to `actions`: GROUP_START, GROUP_STOP, GROUP_KILL and EXIT only. AGENT_TIMER is for
 * both. */
void local_step(struct local *local, const struct agent_event *event, uint64_t now_ns,
		struct agent_actions *actions);

uint64_t local_deadline_ns(const struct local *local);

#endif
