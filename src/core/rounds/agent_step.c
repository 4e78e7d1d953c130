#include "core/rounds/agent_step.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

uint64_t agent_lease_end_ns(const struct agent *agent)
{
	const struct node_info *node = &agent->config.node;
	return ns_add(agent->answered_ns, node->period_ns * node->lease_periods);
}

bool agent_pinging(const struct agent *agent)
{
	return agent->linked && agent->joined && agent->config.node.period_ns > 0;
}

struct agent_action *agent_act(struct step *s, enum agent_action_type type)
{
	struct agent_action *action = agent_actions_add(s->actions);
	memset(action, 0, sizeof(*action));
	action->type = type;
	return action;
}

struct msg *agent_send(struct step *s, enum msg_type type)
{
	struct msg *msg = &agent_act(s, AGENT_SEND)->msg;
	msg->type = type;
	msg->ballot = s->agent->memory.heard.ballot;
	return msg;
}

void agent_send_leave(struct step *s, enum leave_why why)
{
	if (!s->agent->linked)
		return;
	uint8_t signal = why == LEAVE_SIGNAL ? (uint8_t)s->agent->signal : 0;
	agent_send(s, MSG_LEAVE)->leave = (struct msg_leave){ why, !s->agent->alive, signal };
}

struct agent_action *agent_group_stop(struct step *s, enum group_stop_why why, int signal)
{
	struct agent_action *action = agent_act(s, AGENT_GROUP_STOP);
	action->why = why;
	action->signal = signal;
	return action;
}

void agent_exit(struct step *s, const struct outcome *outcome)
{
	if (s->agent->linked) {
		s->agent->linked = false;
		agent_act(s, AGENT_HANG_UP);
	}
	agent_act(s, AGENT_EXIT)->outcome = *outcome;
	agent_set_state(s->agent, AGENT_ENDED);
}

struct outcome agent_outcome(const struct agent *agent, enum outcome_kind kind)
{
	struct outcome outcome = { .kind = kind, .restarts = agent->memory.restarts };
	if (agent->memory.work == WORK_FAILED || agent->memory.ruling == RULING_FAILED) {
		outcome.has_cause = true;
		outcome.cause = agent->cause;
	}
	return outcome;
}

void agent_start_join_clock(struct step *s)
{
	const struct agent_config *config = &s->agent->config;
	bool was_in = !ballot_is_none(s->agent->memory.member_of[0]);
	uint64_t timeout_ns = was_in && config->seek_timeout_ns ? config->seek_timeout_ns
								: config->join_timeout_ns;
	s->agent->join_deadline_ns = ns_add(s->now_ns, timeout_ns);
}

void agent_drop(struct step *s)
{
	struct agent *agent = s->agent;
	agent->linked = false;
	agent->joined = false;
	agent->superseded = false;
	agent->formed_here = false;
	agent->held = false;
	if (agent->join_deadline_ns == NS_NEVER)
		agent_start_join_clock(s);
	if (agent->alive)
		agent_act(s, AGENT_GROUP_KILL);
	agent_set_state(agent, agent->alive ? AGENT_DROPPING : AGENT_SEEKING);
}

void agent_hang_up(struct step *s, enum leave_why why)
{
	agent_send_leave(s, why);
	agent_act(s, AGENT_HANG_UP);
	agent_drop(s);
}

bool agent_keep_link(struct step *s)
{
	struct agent *agent = s->agent;
	if (!agent_pinging(agent))
		return agent->linked;
	if (s->now_ns >= agent_lease_end_ns(agent)) {
		/* An agent that was cut off cannot know whether the coordinator died. */
		agent->memory.coordinator_died = false;
		agent_send_leave(s, LEAVE_LEASE);
		agent_act(s, AGENT_HANG_UP);
		return false;
	}
	if (s->now_ns >= agent->next_ping_ns) {
		agent->next_ping_ns = ns_add(s->now_ns, agent->config.node.period_ns);
		agent_send(s, MSG_PING)->ping =
			(struct msg_ping){ s->now_ns, agent->stamp,
					   agent_wall_offset(agent, s->now_ns) };
	}
	return true;
}
