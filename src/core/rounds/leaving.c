#include "core/rounds/leaving.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"

/* As the coordinator tells it to the others. rule: lost-host */
static void tell_own_leave(const struct agent *agent, struct outcome *outcome)
{
	const char *signal = str_signal_name(agent->signal);
	outcome->has_cause = true;
	outcome->cause = (struct cause){
		.reason = FAILURE_LEFT,
		.status = { EXIT_SIGNAL, agent->signal, false },
		.rank = (int32_t)agent->formed.rank_base,
		.local_rank = -1,
		.group_rank = (int32_t)agent->formed.group_rank,
		.world_size = agent->formed.world_size,
		.no_restart = true,
	};
	memcpy(outcome->cause.name, agent->config.node.name, sizeof(outcome->cause.name));
	snprintf(outcome->cause.words, sizeof(outcome->cause.words), "its muster was stopped by %s",
		 signal ? signal : "its user");
}

static void leave_by_signal(struct step *s)
{
	struct outcome outcome = agent_outcome(s->agent, OUTCOME_SIGNAL);
	outcome.signal = s->agent->signal;
	if (!outcome.has_cause && s->agent->formed.nodes > 1)
		tell_own_leave(s->agent, &outcome);
	/* Whatever ended the round: what the workers saved before is good. */
	outcome.left = s->agent->memory.left || s->agent->workers_left;
	agent_send_leave(s, LEAVE_SIGNAL);
	agent_exit(s, &outcome);
}

void leaving_stop_idle(struct step *s)
{
	s->agent->signal = s->event->signal;
	leave_by_signal(s);
}

void leaving_stop_busy(struct step *s)
{
	s->agent->signal = s->event->signal;
	agent_send_leave(s, LEAVE_SIGNAL);
	agent_group_stop(s, GROUP_STOP_SIGNAL, s->event->signal);
	agent_set_state(s->agent, AGENT_LEAVING);
}

void leaving_stop_waiting(struct step *s)
{
	if (s->agent->alive)
		leaving_stop_busy(s);
	else
		leaving_stop_idle(s);
}

void leaving_stop_again(struct step *s)
{
	/* The group decides when to kill. */
	agent_group_stop(s, GROUP_STOP_SIGNAL, s->event->signal);
}

void leaving_notice(struct step *s)
{
	struct agent *agent = s->agent;
	const struct agent_event *event = s->event;
	if (event->kind == PLAN_LEAVE && (agent->noticed || !(agent->can & CAN_PLAN))) {
		leaving_stop_busy(s);
		return;
	}
	if (!(agent->can & CAN_PLAN))
		return;
	if (event->kind == PLAN_LEAVE) {
		agent->noticed = true;
		agent->signal = event->signal;
		agent->notice_ns = ns_add(s->now_ns, event->left_ns);
	}
	agent_send(s, MSG_NOTICE)->notice = (struct msg_notice){ event->kind, event->left_ns };
}

static void stop_as_usual(struct step *s)
{
	struct agent_event stop = { .type = AGENT_STOP_REQUESTED, .signal = s->agent->signal };
	leaving_stop_busy(&(struct step){ s->agent, &stop, s->now_ns, s->actions });
}

void leaving_plan(struct step *s)
{
	struct agent *agent = s->agent;
	const struct msg_plan *told = &s->event->msg->plan;
	if (!ballot_eq(s->event->msg->ballot, agent->memory.heard.ballot))
		return;
	if (told->plan.serial == 0) {
		/* Some host does not know how to leave together. */
		if (agent->noticed)
			stop_as_usual(s);
		return;
	}
	agent->plan = told->plan;
	agent->voted = false;
	if (told->plan.kind == PLAN_LEAVE && !agent->noticed) {
		agent->noticed = true;
		agent->signal = SIGTERM;
		agent->notice_ns = ns_add(s->now_ns, told->left_ns);
	}
	agent_act(s, AGENT_PLAN)->plan = agent->plan;
}

void leaving_keep_deadline(struct step *s)
{
	const struct agent *agent = s->agent;
	if (agent->state == AGENT_RUNNING && agent->noticed && s->now_ns >= agent->notice_ns)
		stop_as_usual(s);
}

/* Whether the positions allow a vote. On a proposal they do as soon as all who ask are known: who
 * is past it, is so for good. */
static bool may_vote(const struct stop_plan *plan, const struct plan_positions *positions)
{
	if (plan->phase == PLAN_ASKED || plan->phase == PLAN_PROPOSED)
		return positions->unknown == 0;
	return plan->phase == PLAN_COMMITTED && plan->kind == PLAN_SAVE && positions->pending == 0;
}

void leaving_positions(struct step *s)
{
	struct agent *agent = s->agent;
	const struct stop_plan *plan = &agent->plan;
	const struct plan_positions *positions = &s->event->positions;
	if (agent->voted || !plan_eq(&s->event->of, plan) || !may_vote(plan, positions))
		return;
	agent->voted = true;
	agent_send(s, MSG_VOTE)->vote =
		(struct msg_vote){ plan->serial, plan->phase, plan->step, positions->at };
}

bool leaving_is_overtaken(const struct agent *agent)
{
	return agent->noticed && agent->memory.ruling == RULING_NONE &&
	       (agent->state == AGENT_SEEKING || agent->state == AGENT_DROPPING ||
		agent->state == AGENT_JOINED || agent->state == AGENT_STOPPING ||
		agent->state == AGENT_CHECKING);
}

/* The workers of an agent that leaves depend on the lease like all others. */
void leaving_link_down(struct step *s)
{
	s->agent->linked = false;
	agent_act(s, AGENT_GROUP_KILL);
}

void leaving_timer(struct step *s)
{
	if (s->agent->linked && !agent_keep_link(s))
		leaving_link_down(s);
}

void leaving_gone(struct step *s)
{
	s->agent->alive = false;
	leave_by_signal(s);
}

void leaving_stuck(struct step *s)
{
	leave_by_signal(s);
}
