#include "core/rounds/agent.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/rounds/agent_pass.h"
#include "core/rounds/agent_step.h"
#include "core/rounds/leaving.h"
#include "core/rounds/policy.h"

/* The columns of the table: events, and each type of message. */
enum input {
	IN_NONE, /* what is in no table of inputs: nothing is to be done */
	IN_START,
	IN_LINK_UP,
	IN_LINK_DOWN,
	IN_FORMED,
	IN_STOP,
	IN_CLOSED,
	IN_REFUSED,
	IN_PONG,
	IN_PEERS,
	IN_TIMER,
	IN_GROUP_FAILED,
	IN_GROUP_DONE,
	IN_GROUP_GONE,
	IN_GROUP_STUCK,
	IN_CHECKED,
	IN_MEASURED,
	IN_PAIR,
	IN_STOP_REQUESTED,
	IN_RESTART_REQUESTED,
	IN_NOTICE,
	IN_POSITIONS,
	IN_PLAN,
	IN_PACE,
	IN_LATE,
	IN_SIGNS,
	IN_LOOK,
	IN_FOUND,
	IN_PUT,
	IN_WANT,
	IN_EXCHANGED,
	IN_BARRED,
	IN_SUPERSEDED,
	INPUT_COUNT,
};

typedef void handler(struct step *s);

static void send_join(struct step *s)
{
	struct agent *agent = s->agent;
	if (agent->died_ns)
		agent->cause.age_ns = s->now_ns - agent->died_ns;
	agent->attempt += !agent->joined;
	struct msg *msg = agent_send(s, MSG_JOIN);
	msg->join = (struct msg_join){ .node = &agent->config.node,
				       .attempt = agent->attempt,
				       .memory = agent->memory,
				       .cause = agent->cause };
	if (!agent->joined) {
		/* The lease begins with this JOIN, which the coordinator must answer. */
		agent->joined = true;
		agent->pair_serial = 0;
		agent->memory.joined_id = JOINED_UNKNOWN;
		agent->answered_ns = s->now_ns;
		agent->next_ping_ns = s->now_ns;
		agent->stamp = 0;
		agent->clock = (struct clock_offset){ .known = false };
	}
	agent_set_state(agent, AGENT_JOINED);
}

/* Memory. */

static void hear(struct agent *agent, const struct round_ref *heard, const struct round_ref *base)
{
	struct memory *memory = &agent->memory;
	if (ballot_compare(heard->ballot, memory->heard.ballot) > 0)
		memory_hear(memory, heard);
	if (ballot_compare(base->ballot, memory->base.ballot) > 0)
		memory->base = *base;
}

static void remember_failure(struct step *s)
{
	struct agent *agent = s->agent;
	struct cause cause = s->event->cause;
	cause.group_rank = (int32_t)agent->formed.group_rank;
	cause.rank = (int32_t)agent->formed.rank_base + cause.local_rank;
	cause.world_size = agent->formed.world_size;
	cause.no_restart |= policy_is_final(&agent->config.no_restart_on, &cause);
	if (s->event->type == AGENT_GROUP_FAILED && s->event->leaves)
		agent->leaves = agent->config.node.min_nodes < agent->config.node.max_nodes;
	/* Where the others cannot go on without this host, the job ends. */
	cause.no_restart |= s->event->leaves && !agent->leaves;
	cause.age_ns = s->now_ns - MIN(s->event->died_ns, s->now_ns);
	memcpy(cause.name, agent->config.node.name, sizeof(cause.name));
	agent->died_ns = s->event->died_ns;
	agent->failed = true;
	agent->memory.work = WORK_FAILED;
	agent->cause = cause;
}

static void report_failure(struct step *s)
{
	remember_failure(s);
	if (s->agent->linked)
		agent_send(s, MSG_FAILED)->failed.cause = s->agent->cause;
}

/* What was known of the failed worker when it failed is all that others need to stop. Now that it
 * is gone, there is more to tell. */
static void complete_cause(struct agent *agent, const struct cause *ended)
{
	struct cause *cause = &agent->cause;
	if (!ended || agent->memory.work != WORK_FAILED || agent->memory.ruling != RULING_NONE)
		return;
	if (ended->status.kind != EXIT_UNKNOWN && !agent->leaves)
		cause->status = ended->status;
	memcpy(cause->words, ended->words, sizeof(cause->words));
	memcpy(cause->report, ended->report, sizeof(cause->report));
}

static bool note_stop(struct step *s)
{
	const struct msg_stop *stop = &s->event->msg->stop;
	struct memory *memory = &s->agent->memory;
	if (!ballot_eq(s->event->msg->ballot, memory->heard.ballot))
		return false;
	s->agent->failed |= stop->why == STOP_FAILURE;
	if (stop->ruling != RULING_NONE) {
		memory->ruling = stop->ruling;
		memory->left |= stop->left && stop->ruling == RULING_DONE;
		/* Also in place of our own: later coordinators are to hear the same cause. */
		if (stop->ruling == RULING_FAILED) {
			s->agent->cause = stop->cause;
			s->agent->died_ns = s->now_ns - MIN(s->now_ns, stop->cause.age_ns);
		}
	}
	return true;
}

/* Handlers. */

static void on_start(struct step *s)
{
	agent_start_join_clock(s);
	agent_set_state(s->agent, AGENT_SEEKING);
}

/* A closed link alone does not prove that the coordinator died: it may have disconnected us. */
static void link_up(struct step *s)
{
	struct memory *memory = &s->agent->memory;
	int32_t index = memory->coordinator_index;
	s->agent->linked = true;
	s->agent->can = s->event->can;
	memory->coordinator_died = memory->coordinator_died && index >= 0 && index < 64 &&
				   (s->event->dead_indexes >> index & 1);
}

static void seeking_link_up(struct step *s)
{
	link_up(s);
	send_join(s);
}

static void dropping_link_up(struct step *s)
{
	link_up(s);
	agent_set_state(s->agent, AGENT_STOPPING);
}

static void on_link_down(struct step *s)
{
	/* If our lease expired, it may have closed the link because of that, and be alive. */
	bool absent = agent_pinging(s->agent) && s->now_ns >= agent_lease_end_ns(s->agent);
	if (s->agent->formed_here)
		s->agent->memory.coordinator_died = s->event->dead && !absent;
	/* The coordinator knows that we left, but since our JOIN it may have formed a round: with
	 * us, and we never received its FORMED, or without us. Workers of its other members take a
	 * moment to die. rule: takeover */
	bool unheard = !ballot_is_none(s->agent->memory.heard.ballot) &&
		       (s->agent->state == AGENT_JOINED || !s->agent->formed_here);
	if (s->event->dead && !unheard)
		s->agent->memory.joined_id = JOINED_NOBODY;
	agent_drop(s);
}

static void ending_link_down(struct step *s)
{
	s->agent->linked = false;
}

static void joined_formed(struct step *s)
{
	struct agent *agent = s->agent;
	const struct msg_formed *formed = &s->event->msg->formed;
	struct memory *memory = &agent->memory;
	if (ballot_compare(s->event->msg->ballot, memory->heard.ballot) <= 0)
		return;
	agent->formed = *formed;
	memory_enter(memory, &(struct round_ref){ s->event->msg->ballot, formed->nodes },
		     &formed->base);
	memory->coordinator_in_heard = formed->coordinator_in_round;
	memory->coordinator_index = formed->coordinator_index;
	memory->group_rank = (int32_t)formed->group_rank;
	memory->restarts = formed->restarts;
	memory->stall = formed->stall;
	memory_keep(memory, formed);
	memset(&agent->cause, 0, sizeof(agent->cause));
	agent->died_ns = 0;
	agent->failed = false;
	agent->alive = true;
	agent->formed_here = true;
	agent->plan = (struct stop_plan){ .phase = PLAN_NONE };
	agent->join_deadline_ns = NS_NEVER;
	agent->next_ping_ns =
		/* rule: base: until enough members have pinged, the previous round counts too */
		s->now_ns;
	agent_set_state(agent, AGENT_RUNNING);
	struct agent_action *action = agent_act(s, AGENT_GROUP_START);
	action->formed = *formed;
	action->ballot = memory->heard.ballot;
}

/* Our own FORMED again is harmless. A newer one while we have workers means that the coordinator
 * has lost track of us: start over. */
static void busy_formed(struct step *s)
{
	if (!ballot_eq(s->event->msg->ballot, s->agent->memory.heard.ballot))
		agent_hang_up(s, LEAVE_SUPERSEDED);
}

/* Our last JOIN already said that we stopped, but a ruling must still be acknowledged. */
static void joined_stop(struct step *s)
{
	if (note_stop(s) && s->event->msg->stop.ruling != RULING_NONE)
		send_join(s);
}

static void running_stop(struct step *s)
{
	if (!note_stop(s))
		return;
	const struct msg_stop *stop = &s->event->msg->stop;
	struct agent_action *action = agent_group_stop(s, GROUP_STOP_ROUND, 0);
	action->has_cause = stop->why == STOP_FAILURE || stop->ruling == RULING_FAILED ||
			    failure_reason_is_host(stop->cause.reason);
	action->cause = stop->cause;
	agent_set_state(s->agent, AGENT_STOPPING);
}

static void stopping_stop(struct step *s)
{
	note_stop(s);
}

static void rejoin_now(struct step *s)
{
	if (s->agent->join_deadline_ns == NS_NEVER)
		agent_start_join_clock(s);
	if (s->agent->superseded)
		agent_hang_up(s, LEAVE_SUPERSEDED);
	else
		send_join(s);
}

/* Another attempt may follow: the job has restarts left, as far as this agent knows. */
static bool may_go_on(const struct agent *agent)
{
	return agent->memory.ruling == RULING_NONE && !agent->cause.no_restart &&
	       (agent->config.node.by_progress ||
		agent->formed.restarts < agent->formed.max_restarts);
}

/* rule: checking */
static void rejoin(struct step *s)
{
	struct agent *agent = s->agent;
	bool checks = agent->failed && agent->config.check_timeout_ns && !agent->superseded &&
		      may_go_on(agent);
	agent->failed = false;
	if (!checks) {
		rejoin_now(s);
		return;
	}
	agent->check_deadline_ns = ns_add(s->now_ns, agent->config.check_timeout_ns);
	agent_act(s, AGENT_CHECK);
	agent_set_state(agent, AGENT_CHECKING);
}

static void waiting_stop(struct step *s)
{
	if (!note_stop(s))
		return;
	if (s->agent->alive)
		agent_set_state(s->agent, AGENT_STOPPING);
	else
		rejoin(s);
}

static void close_now(struct step *s)
{
	agent_send_leave(s, LEAVE_CLOSED);
	agent_exit(s, &s->agent->outcome);
}

static void on_closed(struct step *s)
{
	struct agent *agent = s->agent;
	const struct msg_closed *closed = &s->event->msg->closed;
	bool failed = closed->ruling == RULING_FAILED;
	agent->outcome = (struct outcome){
		.kind = failed ? OUTCOME_FAILED : OUTCOME_DONE,
		.has_cause = failed,
		.cause = closed->cause,
		.restarts = closed->restarts,
		.stalled = closed->stalled,
		.left = closed->left,
	};
	if (!agent->alive) {
		close_now(s);
		return;
	}
	if (agent->state == AGENT_RUNNING)
		agent_group_stop(s, GROUP_STOP_CLOSED, 0);
	agent_set_state(agent, AGENT_ENDING);
}

static void joined_refused(struct step *s)
{
	struct outcome outcome = agent_outcome(s->agent, OUTCOME_REFUSED);
	memcpy(outcome.text, s->event->msg->refused.text, MSG_TEXT_MAX - 1);
	agent_send_leave(s, LEAVE_CLOSED);
	agent_exit(s, &outcome);
}

/* There never was a link, so there is no LEAVE to send. */
static void seeking_barred(struct step *s)
{
	struct outcome outcome = agent_outcome(s->agent, OUTCOME_REFUSED);
	strncpy(outcome.text, s->event->text, sizeof(outcome.text) - 1);
	agent_exit(s, &outcome);
}

static void on_pong(struct step *s)
{
	struct agent *agent = s->agent;
	const struct msg_pong *pong = &s->event->msg->pong;
	if (pong->cookie > agent->answered_ns && pong->cookie <= s->now_ns)
		agent->answered_ns = pong->cookie;
	clock_offset_add(&agent->clock,
			 &(struct clock_sample){ .sent_ns = pong->cookie,
						 .received_ns = s->now_ns,
						 .peer_ns = pong->stamp,
						 .peer_wall_shift_ns = pong->wall_shift_ns });
	agent->stamp = pong->stamp;
	agent->memory.joined_id = pong->coordinator_id;
	agent->present = pong->present;
	agent->missing = pong->missing;
	agent->held = pong->wait;
	hear(agent, &pong->heard, &pong->base);
	if (pong->wait && agent->state == AGENT_JOINED)
		agent_start_join_clock(s);
}

/* rule: outcome */
static void time_out(struct step *s)
{
	const struct memory *memory = &s->agent->memory;
	bool unheard = memory->work == WORK_DONE;
	struct outcome outcome =
		agent_outcome(s->agent, unheard ? OUTCOME_UNKNOWN : OUTCOME_TIMED_OUT);
	outcome.left = unheard && memory->left;
	agent_send_leave(s, LEAVE_TIMEOUT);
	agent_exit(s, &outcome);
}

static void idle_timer(struct step *s)
{
	if (s->agent->linked && !agent_keep_link(s))
		agent_drop(s);
	if (s->now_ns >= s->agent->join_deadline_ns)
		time_out(s);
}

static void busy_timer(struct step *s)
{
	if (!agent_keep_link(s))
		agent_drop(s);
}

/* A checker that hangs keeps no node from the next attempt. */
static void checking_timer(struct step *s)
{
	if (!agent_keep_link(s))
		agent_drop(s);
	else if (s->now_ns >= s->agent->check_deadline_ns)
		rejoin_now(s);
}

static void running_timer(struct step *s)
{
	busy_timer(s);
	leaving_keep_deadline(s);
}

static void ending_timer(struct step *s)
{
	if (s->agent->linked && !agent_keep_link(s))
		ending_link_down(s);
}

static void running_failed(struct step *s)
{
	report_failure(s);
	agent_set_state(s->agent, AGENT_STOPPING);
}

/* The worker died before our stop could reach it: perhaps it is the first cause. */
static void stopping_failed(struct step *s)
{
	if (s->agent->memory.work == WORK_IDLE && s->agent->formed_here)
		report_failure(s);
}

static void running_done(struct step *s)
{
	s->agent->memory.work = WORK_DONE;
	s->agent->memory.left = s->event->left;
	agent_send(s, MSG_DONE)->done.left = s->event->left;
	agent_set_state(s->agent, AGENT_WAITING);
}

/* A group that ends without FAILED or DONE has lost its warden. */
static void running_gone(struct step *s)
{
	struct agent_event lost = {
		.type = AGENT_GROUP_FAILED,
		.cause = { .reason = FAILURE_WARDEN, .local_rank = 0 },
		.died_ns = s->now_ns,
	};
	s->agent->alive = false;
	report_failure(&(struct step){ s->agent, &lost, s->now_ns, s->actions });
	rejoin(s);
}

/* This host joins no further round. For the others that is the loss of a member, or no loss if our
 * workers were done. rule: stuck */
static void leave_stuck(struct step *s)
{
	struct outcome outcome = agent_outcome(s->agent, OUTCOME_FAILED);
	outcome.stuck = true;
	agent_send_leave(s, LEAVE_STUCK);
	agent_exit(s, &outcome);
}

static void stopping_gone(struct step *s)
{
	s->agent->alive = false;
	if (s->agent->leaves)
		leave_stuck(s);
	else
		rejoin(s);
}

static void dropping_gone(struct step *s)
{
	s->agent->alive = false;
	if (s->agent->leaves)
		leave_stuck(s);
	else
		agent_set_state(s->agent, AGENT_SEEKING);
}

static void waiting_gone(struct step *s)
{
	s->agent->alive = false;
}

static void ending_gone(struct step *s)
{
	s->agent->alive = false;
	close_now(s);
}

/* It has a process that cannot be killed. */
static void busy_stuck(struct step *s)
{
	if (s->agent->memory.work != WORK_FAILED)
		remember_failure(s);
	leave_stuck(s);
}

static void ending_stuck(struct step *s)
{
	close_now(s);
}

/* Joining again ends the round of the others too, like a change of members. */
static void running_restart_requested(struct step *s)
{
	agent_group_stop(s, GROUP_STOP_ROUND, 0);
	agent_set_state(s->agent, AGENT_STOPPING);
}

/* We may have learned of this term from the coordinator before discovery did. */
static bool is_linked_to_newest(const struct step *s)
{
	return s->agent->formed_here && s->agent->memory.heard.ballot.epoch >= s->event->epoch;
}

static void joined_superseded(struct step *s)
{
	if (!is_linked_to_newest(s))
		agent_hang_up(s, LEAVE_SUPERSEDED);
}

static void busy_superseded(struct step *s)
{
	if (!is_linked_to_newest(s))
		s->agent->superseded = true;
}

/* An empty cell: the event changes nothing in that state. */
static handler *const table[][INPUT_COUNT] = {
	[AGENT_NEW] = {
		[IN_START] = on_start,
		[IN_STOP_REQUESTED] = leaving_stop_idle,
	},
	[AGENT_SEEKING] = {
		[IN_LINK_UP] = seeking_link_up,
		[IN_TIMER] = idle_timer,
		[IN_STOP_REQUESTED] = leaving_stop_idle,
		[IN_BARRED] = seeking_barred,
	},
	[AGENT_DROPPING] = {
		[IN_LINK_UP] = dropping_link_up,
		[IN_GROUP_GONE] = dropping_gone,
		[IN_GROUP_STUCK] = busy_stuck,
		[IN_STOP_REQUESTED] = leaving_stop_busy,
	},
	[AGENT_JOINED] = {
		[IN_LINK_DOWN] = on_link_down,
		[IN_FORMED] = joined_formed,
		[IN_STOP] = joined_stop,
		[IN_CLOSED] = on_closed,
		[IN_REFUSED] = joined_refused,
		[IN_PONG] = on_pong,
		[IN_PEERS] = agent_pass_peers,
		[IN_PAIR] = agent_pass_pair,
		[IN_MEASURED] = agent_pass_measured,
		[IN_TIMER] = idle_timer,
		[IN_STOP_REQUESTED] = leaving_stop_idle,
		[IN_SUPERSEDED] = joined_superseded,
	},
	[AGENT_RUNNING] = {
		[IN_LINK_DOWN] = on_link_down,
		[IN_FORMED] = busy_formed,
		[IN_STOP] = running_stop,
		[IN_CLOSED] = on_closed,
		[IN_PONG] = on_pong,
		[IN_PLAN] = leaving_plan,
		[IN_PACE] = agent_pass_pace,
		[IN_LATE] = agent_pass_late,
		[IN_SIGNS] = agent_pass_signs,
		[IN_LOOK] = agent_pass_look,
		[IN_FOUND] = agent_pass_found,
		[IN_PUT] = agent_pass_put,
		[IN_WANT] = agent_pass_want,
		[IN_EXCHANGED] = agent_pass_exchanged,
		[IN_TIMER] = running_timer,
		[IN_GROUP_FAILED] = running_failed,
		[IN_GROUP_DONE] = running_done,
		[IN_GROUP_GONE] = running_gone,
		[IN_GROUP_STUCK] = busy_stuck,
		[IN_STOP_REQUESTED] = leaving_stop_busy,
		[IN_RESTART_REQUESTED] = running_restart_requested,
		[IN_NOTICE] = leaving_notice,
		[IN_POSITIONS] = leaving_positions,
		[IN_SUPERSEDED] = busy_superseded,
	},
	[AGENT_STOPPING] = {
		[IN_LINK_DOWN] = on_link_down,
		[IN_FORMED] = busy_formed,
		[IN_STOP] = stopping_stop,
		[IN_CLOSED] = on_closed,
		[IN_PONG] = on_pong,
		[IN_TIMER] = busy_timer,
		[IN_GROUP_FAILED] = stopping_failed,
		[IN_GROUP_GONE] = stopping_gone,
		[IN_GROUP_STUCK] = busy_stuck,
		[IN_STOP_REQUESTED] = leaving_stop_busy,
		[IN_SUPERSEDED] = busy_superseded,
	},
	[AGENT_CHECKING] = {
		[IN_LINK_DOWN] = on_link_down,
		[IN_FORMED] = busy_formed,
		[IN_STOP] = stopping_stop,
		[IN_CLOSED] = on_closed,
		[IN_PONG] = on_pong,
		[IN_TIMER] = checking_timer,
		[IN_CHECKED] = rejoin_now,
		[IN_STOP_REQUESTED] = leaving_stop_idle,
		[IN_SUPERSEDED] = busy_superseded,
	},
	[AGENT_WAITING] = {
		[IN_LINK_DOWN] = on_link_down,
		[IN_FORMED] = busy_formed,
		[IN_STOP] = waiting_stop,
		[IN_CLOSED] = on_closed,
		[IN_PONG] = on_pong,
		[IN_TIMER] = busy_timer,
		[IN_GROUP_GONE] = waiting_gone,
		[IN_GROUP_STUCK] = busy_stuck,
		[IN_STOP_REQUESTED] = leaving_stop_waiting,
		[IN_SUPERSEDED] = busy_superseded,
	},
	[AGENT_LEAVING] = {
		[IN_LINK_DOWN] = leaving_link_down,
		[IN_PONG] = on_pong,
		[IN_TIMER] = leaving_timer,
		[IN_GROUP_GONE] = leaving_gone,
		[IN_GROUP_STUCK] = leaving_stuck,
		[IN_STOP_REQUESTED] = leaving_stop_again,
	},
	[AGENT_ENDING] = {
		[IN_LINK_DOWN] = ending_link_down,
		[IN_PONG] = on_pong,
		[IN_TIMER] = ending_timer,
		[IN_GROUP_GONE] = ending_gone,
		[IN_GROUP_STUCK] = ending_stuck,
		[IN_STOP_REQUESTED] = leaving_stop_again,
	},
	[AGENT_ENDED] = { NULL },
};
static_assert(ARRAY_LEN(table) == AGENT_STATE_COUNT, "every state needs a row");

static const enum input inputs[] = {
	[AGENT_START] = IN_START,
	[AGENT_LINK_UP] = IN_LINK_UP,
	[AGENT_LINK_DOWN] = IN_LINK_DOWN,
	[AGENT_TIMER] = IN_TIMER,
	[AGENT_GROUP_FAILED] = IN_GROUP_FAILED,
	[AGENT_GROUP_DONE] = IN_GROUP_DONE,
	[AGENT_GROUP_GONE] = IN_GROUP_GONE,
	[AGENT_GROUP_STUCK] = IN_GROUP_STUCK,
	[AGENT_CHECKED] = IN_CHECKED,
	[AGENT_MEASURED] = IN_MEASURED,
	[AGENT_STOP_REQUESTED] = IN_STOP_REQUESTED,
	[AGENT_RESTART_REQUESTED] = IN_RESTART_REQUESTED,
	[AGENT_NOTICE] = IN_NOTICE,
	[AGENT_POSITIONS] = IN_POSITIONS,
	[AGENT_PACE] = IN_PACE,
	[AGENT_SIGNS] = IN_SIGNS,
	[AGENT_FOUND] = IN_FOUND,
	[AGENT_PUT] = IN_PUT,
	[AGENT_WANT] = IN_WANT,
	[AGENT_BARRED] = IN_BARRED,
	[AGENT_SUPERSEDED] = IN_SUPERSEDED,
};

static const enum input msg_inputs[MSG_TYPE_COUNT] = {
	[MSG_FORMED] = IN_FORMED,   [MSG_STOP] = IN_STOP,	[MSG_CLOSED] = IN_CLOSED,
	[MSG_REFUSED] = IN_REFUSED, [MSG_PONG] = IN_PONG,	[MSG_PEERS] = IN_PEERS,
	[MSG_PLAN] = IN_PLAN,	    [MSG_PAIR] = IN_PAIR,	[MSG_LATE] = IN_LATE,
	[MSG_LOOK] = IN_LOOK,	    [MSG_UNION] = IN_EXCHANGED, [MSG_VALUE] = IN_EXCHANGED,
};

/* Takes messages only on a link on which we have joined, and none from an old coordinator.
 * rule: ballots */
static bool accept(struct step *s)
{
	struct agent *agent = s->agent;
	const struct msg *msg = s->event->msg;
	if (msg_from_agent(msg->type) || !agent->linked || !agent->joined)
		return false;
	if (ballot_compare(msg->ballot, agent->memory.heard.ballot) >= 0)
		return true;
	if (agent->state != AGENT_LEAVING && agent->state != AGENT_ENDING)
		agent_hang_up(s, LEAVE_SUPERSEDED);
	return false;
}

void agent_init(struct agent *agent, const struct agent_config *config)
{
	*agent = (struct agent){ .config = *config, .join_deadline_ns = NS_NEVER };
	agent->memory.group_rank = -1;
	agent->memory.coordinator_index = -1;
}

void agent_set_store(struct agent *agent, const char *host, uint16_t port)
{
	struct node_info *node = &agent->config.node;
	strncpy(node->store_host, host, sizeof(node->store_host) - 1);
	node->store_port = port;
}

static void take_checks(struct agent *agent, const struct check_digest *digest)
{
	struct check_digest *checks = &agent->config.node.checks;
	if (digest)
		*checks = *digest;
	else
		memset(checks, 0, sizeof(*checks));
}

/* The column of the event. */
static enum input input_of(struct step *s)
{
	struct agent *agent = s->agent;
	const struct agent_event *event = s->event;
	if (event->type == AGENT_NOTICE && event->kind == PLAN_LEAVE &&
	    agent->state != AGENT_RUNNING)
		return IN_STOP_REQUESTED;
	if (event->type != AGENT_MSG)
		return inputs[event->type];
	/* rule: lease-first: after a standstill there may be an old FORMED among the messages.
	 * Every state that pings has a cell for the timer. */
	if (agent_pinging(agent) && s->now_ns >= agent_lease_end_ns(agent))
		table[agent->state][IN_TIMER](s);
	return accept(s) ? msg_inputs[event->msg->type] : IN_NONE;
}

void agent_step(struct agent *agent, const struct agent_event *event, uint64_t now_ns,
		struct agent_actions *actions)
{
	struct step step = { agent, event, now_ns, actions };
	if (event->type == AGENT_GROUP_GONE) {
		agent->memory.reached = event->reached;
		agent->memory.left |= event->left;
		agent->workers_left = event->left;
		memcpy(agent->memory.kept.states, event->kept, sizeof(event->kept));
		complete_cause(agent, event->ended);
	}
	if (event->type == AGENT_CHECKED)
		take_checks(agent, event->digest);
	handler *handle = table[agent->state][input_of(&step)];
	if (handle)
		handle(&step);
	if (leaving_is_overtaken(agent)) {
		step.event = &(struct agent_event){ .type = AGENT_STOP_REQUESTED,
						    .signal = agent->signal };
		table[agent->state][IN_STOP_REQUESTED](&step);
	}
}

uint64_t agent_deadline_ns(const struct agent *agent)
{
	uint64_t deadline_ns = NS_NEVER;
	if (agent->state == AGENT_ENDED || agent->state == AGENT_NEW)
		return NS_NEVER;
	if (agent_pinging(agent))
		deadline_ns = MIN(agent->next_ping_ns, agent_lease_end_ns(agent));
	if (agent->state == AGENT_SEEKING || agent->state == AGENT_JOINED)
		deadline_ns = MIN(deadline_ns, agent->join_deadline_ns);
	if (agent->state == AGENT_CHECKING)
		deadline_ns = MIN(deadline_ns, agent->check_deadline_ns);
	if (agent->state == AGENT_RUNNING && agent->noticed)
		deadline_ns = MIN(deadline_ns, agent->notice_ns);
	return deadline_ns;
}

const char *agent_state_name(enum agent_state state)
{
	static const char *const names[] = {
		[AGENT_NEW] = "new",	       [AGENT_SEEKING] = "seeking",
		[AGENT_DROPPING] = "dropping", [AGENT_JOINED] = "joined",
		[AGENT_RUNNING] = "running",   [AGENT_STOPPING] = "stopping",
		[AGENT_CHECKING] = "checking", [AGENT_WAITING] = "waiting",
		[AGENT_LEAVING] = "leaving",   [AGENT_ENDING] = "ending",
		[AGENT_ENDED] = "ended",
	};
	static_assert(ARRAY_LEN(names) == AGENT_STATE_COUNT, "every state needs a name");
	return names[state];
}
