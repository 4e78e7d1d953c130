/* Shared by the parts of the agent only: agent.c (links, rounds and
 * workers), leaving.c and agent_pass.c. */
#ifndef CORE_ROUNDS_AGENT_STEP_H
#define CORE_ROUNDS_AGENT_STEP_H

#include "core/rounds/agent.h"

/* One event, and the actions that follow from it. */
struct step {
	struct agent *agent;
	const struct agent_event *event;
	uint64_t now_ns;
	struct agent_actions *actions;
};

static inline void agent_set_state(struct agent *agent, enum agent_state state)
{
	agent->state = state;
}

/* Borrowed until the next action. */
struct agent_action *agent_act(struct step *s, enum agent_action_type type);
struct msg *agent_send(struct step *s, enum msg_type type);
struct agent_action *agent_group_stop(struct step *s, enum group_stop_why why, int signal);

/* Nothing where there is no link. */
void agent_send_leave(struct step *s, enum leave_why why);

/* Closes the link and ends the agent. */
void agent_exit(struct step *s, const struct outcome *outcome);

/* With what this agent knows of a failure. */
struct outcome agent_outcome(const struct agent *agent, enum outcome_kind kind);

void agent_start_join_clock(struct step *s);

/* Whether the agent pings: a link within the process needs no PINGs. */
bool agent_pinging(const struct agent *agent);
uint64_t agent_lease_end_ns(const struct agent *agent);

/* PINGs when it is time. Returns false when the link is gone. */
bool agent_keep_link(struct step *s);

/* The link is gone: without it there is no lease, and without a lease no workers. rule: lease */
void agent_drop(struct step *s);

/* Gives the link up. */
void agent_hang_up(struct step *s, enum leave_why why);

#endif
