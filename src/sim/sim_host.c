/* A simulated host: the node that runs on it, and what follows from its steps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/rounds/fence.h"
#include "sim/world.h"

#define SIM_GRACE_NS (5 * NS_PER_S) /* between the stop signal and the kill */
#define SIM_TERMS_MAX 256	    /* of one process as coordinator: room for its ids */

static void rearm(struct world *world, struct host *host)
{
	uint64_t deadline_ns = host->process ? node_deadline_ns(&host->node) : NS_NEVER;
	world_arm(world, &host->node_timer, world_ns(world, host, deadline_ns));
}

/* ---- what a step did to the coordinator here ---- */

/* The coordinator before a step, and changes in the step that are not its own. */
struct before {
	bool there;
	uint64_t coordinators;
	enum coordinator_state state;
	struct round_ref heard;
	uint32_t restarts;
	struct stop_plan plan;
	bool failed; /* the step is about a worker's failure */
};

static void learn(struct before *before, const struct memory *memory)
{
	if (ballot_compare(memory->heard.ballot, before->heard.ballot) > 0)
		before->heard = memory->heard;
	before->restarts = MAX(before->restarts, memory->restarts);
}

static bool is_failure(const struct host *host, const struct node_event *event)
{
	if (event->type == NODE_EV_HOST)
		return event->agent.type == AGENT_GROUP_FAILED ||
		       host->node.agent.memory.work == WORK_FAILED;
	if (event->type != NODE_EV_MSG)
		return false;
	const struct msg *msg = event->msg;
	return msg->type == MSG_FAILED ||
	       (msg->type == MSG_JOIN && msg->join.memory.work == WORK_FAILED);
}

static struct before look(const struct host *host, const struct node_event *event)
{
	const struct node *node = &host->node;
	const struct coordinator *c = node->coordinator;
	struct before before = { .coordinators = node->coordinators,
				 .failed = is_failure(host, event) };
	if (c) {
		before.there = true;
		before.state = c->state;
		before.heard = c->roster.heard;
		before.restarts = c->restarts;
		before.plan = c->accord.plan;
	}
	if (event->type == NODE_EV_MSG && event->msg->type == MSG_JOIN)
		learn(&before, &event->msg->join.memory);
	if (!node->agent.joined) /* its JOIN may be part of the step */
		learn(&before, &node->agent.memory);
	return before;
}

static void begin_term(struct world *world, struct host *host)
{
	host->term = ++world->next_term;
	host->term_rounds = 0;
	host->term_heard = host->term_charged = false;
	host->term_ballot = BALLOT_NONE;
	host->term_ns = world->now_ns;
	world->result->takeovers += world->next_term > 1;
	world_trace(world, "c%u begins", host->index);
	scripts_decided(world, host);
}

static void compare(struct world *world, struct host *host, struct before before)
{
	const struct coordinator *c = host->node.coordinator;
	bool begun = host->node.coordinators != before.coordinators;
	if (begun)
		begin_term(world, host);
	if (before.there && (!c || begun)) {
		world_trace(world, "c%u steps down", host->index);
		scripts_decided(world, host);
	}
	if (!c)
		return;
	host->term_heard |= !ballot_is_none(before.heard.ballot);
	if (begun)
		before.state = COORDINATOR_GATHERING;
	if (before.state != c->state) {
		world_trace(world, "c%u %s -> %s, round %lu.%lu", host->index,
			    coordinator_state_name(before.state), coordinator_state_name(c->state),
			    c->roster.heard.ballot.epoch, c->roster.heard.ballot.round);
		scripts_decided(world, host);
	}
	if (world->notices && !begun && !plan_eq(&before.plan, &c->accord.plan))
		scripts_decided(world, host);
	struct ballot formed = coordinator_ballot(c);
	bool new_round = !ballot_eq(formed, host->term_ballot);
	if (before.state == COORDINATOR_RUNNING && (c->state != COORDINATOR_RUNNING || new_round))
		check_round_ended(world, host, before.failed);
	if (before.state < COORDINATOR_CLOSING && c->ruling != RULING_NONE &&
	    c->state >= COORDINATOR_CLOSING)
		check_ruling(world, host);
	if (before.state != COORDINATOR_CLOSED && c->state == COORDINATOR_CLOSED)
		check_closes(world, host);
	if (c->restarts > before.restarts)
		check_charge(world, host, before.heard.ballot, c->restarts - before.restarts);
	if (new_round) {
		host->term_ballot = formed;
		check_formed(world, host);
	}
}

/* ---- what the node wants ---- */

static void node_exits(struct world *world, struct host *host)
{
	check_exit(world, host);
	/* Starts a refused agent once more, as a hopeful user would. */
	if (host->node.exit.agent.outcome.kind == OUTCOME_REFUSED &&
	    world->now_ns < world->faults_end_ns)
		world_at(world, world->now_ns + rng_range(&world->rng, 1, 20) * NS_PER_S,
			 HAPPEN_BOOT, host->index);
	host_end_process(world, host, false);
}

static void act_host(struct world *world, struct host *host, const struct agent_action *action)
{
	switch (action->type) {
	case AGENT_GROUP_START:
		world_trace(world, "h%u starts %lu.%lu rank %u of %u", host->index,
			    action->ballot.epoch, action->ballot.round, action->formed.group_rank,
			    action->formed.nodes);
		workers_start(world, host, action);
		break;
	case AGENT_GROUP_STOP:
		workers_stop(world, host, action->signal);
		break;
	case AGENT_GROUP_KILL:
		workers_kill(world, host);
		break;
	case AGENT_EXIT:
		node_exits(world, host);
		break;
	case AGENT_CHECK:
		checks_begin(world, host);
		break;
	case AGENT_MEASURE:
		checks_measure(world, host, &action->msg.pair);
		break;
	case AGENT_PLAN:
		world_trace(world, "h%u plan %u phase %u step %lu", host->index,
			    action->plan.serial, action->plan.phase, action->plan.step);
		notices_show(world, host, &action->plan);
		break;
	case AGENT_LATE:
		gaits_late(world, host, &action->late);
		break;
	case AGENT_LOOK:
		hushes_look(world, host);
		break;
	case AGENT_PEERS:
	case AGENT_EXCHANGED:
	case AGENT_NO_EXCHANGE:
	case AGENT_SEND:
	case AGENT_HANG_UP:
		break;
	}
}

/* A store on a new port of this host. */
static void offer_store(struct world *world, struct host *host)
{
	host->store_port = (uint16_t)rng_range(&world->rng, 1024, 65535);
	host_step(world, host,
		  &(struct node_event){ .type = NODE_EV_STORE,
					.host = host->node.agent.config.node.name,
					.port = host->store_port });
}

static void send_msg(struct world *world, const struct host *host, const struct node_action *action)
{
	gaits_sent(world, host, &action->msg);
	if (msg_is_asking(action->msg.type))
		check_asks_sent(world, host, &action->msg);
	if (action->link >= ASKER_LINK) {
		asks_hear(world, action->link, &action->msg);
		return;
	}
	if (action->link == host->node.link && action->msg.type != MSG_PING &&
	    action->msg.type != MSG_PACE && !msg_is_asking(action->msg.type))
		world_trace(world, "h%u -> %s %lu.%lu", host->index,
			    msg_type_name(action->msg.type), action->msg.ballot.epoch,
			    action->msg.ballot.round);
	if (action->msg.type == MSG_JOIN) {
		stash_joins(world, host, &action->msg.join.memory.kept);
		scripts_joins(world, net_link(world, action->link));
	}
	net_send(world, host, action->link, &action->msg);
}

static void act(struct world *world, struct host *host, const struct node_action *action)
{
	switch (action->type) {
	case NODE_DO_LISTEN:
		if (world->mode != SIM_MODE_ARBITER)
			host_step(world, host,
				  &(struct node_event){ .type = NODE_EV_LISTENING,
							.index = host->index < world->endpoints
									 ? (int32_t)host->index
									 : -1 });
		break;
	case NODE_DO_PROBE:
		net_probe(world, host, (uint32_t)action->index, action->probe);
		break;
	case NODE_DO_CONNECT:
		host->connection++;
		net_connect(world, host,
			    action->index >= 0 ? (uint32_t)action->index : host->leader);
		break;
	case NODE_DO_SEND:
		send_msg(world, host, action);
		break;
	case NODE_DO_HANG_UP:
		if (action->link)
			net_close(world, host, action->link, false);
		else
			host->connection++;
		break;
	case NODE_DO_HANG_UP_ALL:
		net_close_all(world, host, false);
		break;
	case NODE_DO_PLACE_STORE:
		offer_store(world, host);
		break;
	case NODE_DO_RECORD:
		arbiter_record(world, host, &action->end);
		break;
	case NODE_DO_HOST:
		act_host(world, host, &action->agent);
		break;
	case NODE_DO_ASKED:
		asks_asked(world, host, &action->msg);
		break;
	case NODE_DO_NOTE:
		checks_noted(world, host, &action->note);
		gaits_noted(world, host, &action->note);
		break;
	case NODE_ACTION_COUNT:
		break;
	}
}

void host_step(struct world *world, struct host *host, const struct node_event *event)
{
	if (!host->process)
		return;
	struct node_actions actions = world->spare;
	world->spare = NODE_ACTIONS_INIT;
	uint32_t generation = host->generation;
	struct before before = look(host, event);
	if (event->type == NODE_EV_MSG && event->msg->type == MSG_ASK)
		check_asks_taken(world, host, &event->msg->ask);
	world->depth++;
	node_set_wall(&host->node, clocks_wall_shift(host));
	node_step(&host->node, event, world_local_ns(world, host), &actions);
	if (event->type == NODE_EV_MSG && event->msg->type == MSG_PONG)
		clocks_check(world, host);
	compare(world, host, before);
	if (!host->ended && host->node.agent.state == AGENT_ENDED) {
		host->ended = true;
		check_outcome(world, host, &host->node.exit.agent.outcome);
	}
	for (size_t i = 0; i < actions.count && host->generation == generation; i++)
		act(world, host, &actions.items[i]);
	node_actions_done(&world->spare);
	world->spare = actions;
	node_actions_clear(&world->spare);
	rearm(world, host);
	if (world->depth == 1)
		asks_obey(world, host);
	if (--world->depth == 0) {
		checks_settled(world, host);
		check_asks_step(world, host);
	}
}

void host_tell(struct world *world, struct host *host, const struct agent_event *event)
{
	if (event->type == AGENT_GROUP_GONE)
		offer_store(world, host);
	host_step(world, host, &(struct node_event){ .type = NODE_EV_HOST, .agent = *event });
}

/* ---- processes ---- */

/* Where an arbiter's lease decides, agents differ a little in it, which the lease covers. */
#define PERIODS 5
static uint64_t period_ns(const struct world *world, uint32_t index)
{
	uint64_t usual_ns = fence_period_ns(world->max_nodes);
	return world->fenced ? usual_ns + usual_ns * (index % PERIODS) / 10 : usual_ns;
}

uint64_t host_death_ns(const struct world *world, uint32_t index)
{
	return node_death_ns(&(struct node_info){ .period_ns = period_ns(world, index),
						  .lease_periods = FENCE_LEASE_PERIODS });
}

uint64_t host_longest_death_ns(const struct world *world)
{
	return host_death_ns(world, PERIODS - 1);
}

static struct agent_config agent_config(struct world *world, const struct host *host)
{
	struct agent_config config = {
		.node = { .id = { host->index + 1, host->generation },
			  .min_nodes = host->min_nodes,
			  .max_nodes = host->max_nodes,
			  .nproc = (uint32_t)rng_range(&world->rng, 1, SIM_NPROC_MAX),
			  .node_rank = host->node_rank,
			  .max_restarts = world->max_restarts,
			  .by_progress = world->by_progress,
			  .period_ns = period_ns(world, host->index),
			  .lease_periods = FENCE_LEASE_PERIODS,
			  .lost_timeout_ns = world->lost_timeout_ns },
		.join_timeout_ns = world->join_timeout_ns,
	};
	snprintf(config.node.role, sizeof(config.node.role), "role%u", host->index % SIM_ROLES);
	snprintf(config.node.name, sizeof(config.node.name), "h%u", host->index);
	checks_configure(world, host, &config);
	return config;
}

static struct coordinator_config coordinator_config(struct world *world)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	config.quorum = world->mode == SIM_MODE_ENDPOINT ? QUORUM_ANY
			: world->fenced			 ? QUORUM_LEASE
							 : QUORUM_MAJORITY;
	config.id = 1 + SIM_TERMS_MAX * (uint64_t)world->processes;
	config.salt = (uint32_t)config.id;
	config.last_call_ns = world->last_call_ns;
	config.scale_up_delay_ns = world->scale_up_delay_ns;
	config.close_timeout_ns = world->close_timeout_ns;
	config.membership = world->pace;
	return config;
}

void host_boot(struct world *world, struct host *host)
{
	if (host->process)
		return;
	host->up = true;
	host->process = true;
	host->booted_ns = world->now_ns;
	host->generation++;
	host->ended = false;
	host->stuck = host->stopped = host->must_stop = host->must_renew = false;
	host->keep = (struct sim_keep){ .contents = 0 };
	world->running++;
	world_trace(world, "h%u boots", host->index);
	struct node_config config = {
		.kind = world->mode == SIM_MODE_ARBITER ? NODE_ARBITER : NODE_ENDPOINTS,
		.agent = agent_config(world, host),
		.finder = { .count = world->endpoints, .failover_after_ns = 10 * NS_PER_S },
		.coordinator = coordinator_config(world),
	};
	world->processes++;
	node_init(&host->node, &config);
	group_init(&host->group, 15, SIM_GRACE_NS);
	host_step(world, host, &(struct node_event){ .type = NODE_EV_START });
}

void host_end_process(struct world *world, struct host *host, bool power)
{
	if (!host->process)
		return;
	world_trace(world, "h%u %s", host->index, power ? "loses power" : "process ends");
	host->process = false;
	host->up = !power;
	workers_gone(world, host);
	world->running--;
	if (host->node.link && host->node.link < NODE_LOCAL_LINK)
		net_close(world, host, host->node.link, power);
	net_close_all(world, host, power);
	asks_process_ended(world, host);
	node_done(&host->node);
	group_done(&host->group);
	host->generation++;
	rearm(world, host);
}
