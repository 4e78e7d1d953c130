/* Hosts with their processes and worker groups, and the loop that makes things happen in order. */
#include "sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

#define BUSY_STEPS_MAX(agents) \
	(10000 + 100 * (uint64_t)(agents)) /* with less than 1 ms between them */
#define AFTERMATH_NS (900 * NS_PER_S)	   /* once the faults are over the job ends within this */

/* Time. */

uint64_t world_local_ns(const struct world *world, const struct host *host)
{
	int64_t drift = (int64_t)(world->now_ns / 1000000) * host->clock_ppm;
	return world->now_ns + (uint64_t)(host->clock_offset_ns + drift);
}

/* The first instant at which the host's clock shows at least `local_ns`. */
static uint64_t world_ns(const struct world *world, const struct host *host, uint64_t local_ns)
{
	if (local_ns == NS_NEVER)
		return NS_NEVER;
	uint64_t now_local_ns = world_local_ns(world, host);
	if (local_ns <= now_local_ns)
		return world->now_ns;
	uint64_t wait_ns = local_ns - now_local_ns;
	int64_t drift = (int64_t)(wait_ns / 1000000) * host->clock_ppm;
	return world->now_ns + wait_ns - (uint64_t)drift + NS_PER_MS;
}

bool world_frozen(const struct world *world, const struct host *host)
{
	return host->frozen_until_ns > world->now_ns;
}

/* Happenings. */

void world_arm(struct world *world, struct happening_event *event, uint64_t at_ns)
{
	if (at_ns == NS_NEVER)
		heap_remove(&world->queue, &event->node);
	else
		heap_update(&world->queue, &event->node, MAX(at_ns, world->now_ns));
}

struct happening_event *world_at(struct world *world, uint64_t at_ns, enum happening what,
				 uint32_t host)
{
	struct happening_event *event = NEW(struct happening_event);
	event->what = what;
	event->host = host;
	event->generation = world->hosts[host].generation;
	world->boots += what == HAPPEN_BOOT;
	heap_push(&world->queue, &event->node, at_ns);
	return event;
}

void world_trace(struct world *world, const char *fmt, ...)
{
	if (!world->trace)
		return;
	va_list args;
	va_start(args, fmt);
	buf_printf(world->trace, "%10.3f ", (double)world->now_ns / NS_PER_S);
	buf_vprintf(world->trace, fmt, args);
	buf_append_char(world->trace, '\n');
	va_end(args);
}

void host_rearm(struct world *world, struct host *host)
{
	bool alive = host->process;
	world_arm(world, &host->agent_timer,
		  alive && !host->agent_ended
			  ? world_ns(world, host, agent_deadline_ns(&host->agent))
			  : NS_NEVER);
	world_arm(world, &host->coordinator_timer,
		  alive && host->coordinator
			  ? world_ns(world, host, coordinator_deadline_ns(host->coordinator))
			  : NS_NEVER);
	world_arm(world, &host->finder_timer,
		  alive && world->mode != SIM_MODE_ARBITER && !host->agent_ended
			  ? world_ns(world, host, finder_deadline_ns(&host->finder))
			  : NS_NEVER);
}

/* Steps, and what follows from them. */

static void agent_exit(struct world *world, struct host *host, const struct outcome *outcome)
{
	host->agent_ended = true;
	check_outcome(world, host, outcome);
	/* Whoever was refused is started once more, as by a user who thinks that it helps. */
	if (outcome->kind == OUTCOME_REFUSED && world->now_ns < world->faults_end_ns)
		world_at(world, world->now_ns + rng_range(&world->rng, 1, 20) * NS_PER_S,
			 HAPPEN_BOOT, host->index);
	/* A process that coordinates stays until all know that the job is over. */
	if (!host->coordinator || host->coordinator->state != COORDINATOR_CLOSED)
		host_end_process(world, host, false);
}

static void agent_act(struct world *world, struct host *host, const struct agent_action *action)
{
	switch (action->type) {
	case AGENT_SEND:
		if (action->msg.type != MSG_PING)
			world_trace(world, "h%u -> %s %lu.%lu", host->index,
				    msg_type_name(action->msg.type), action->msg.ballot.epoch,
				    action->msg.ballot.round);
		net_send(world, host->link, TO_COORDINATOR, &action->msg);
		break;
	case AGENT_PEERS:
		break;
	case AGENT_GROUP_START:
		world_trace(world, "h%u starts %lu.%lu rank %u of %u", host->index,
			    action->ballot.epoch, action->ballot.round, action->formed.group_rank,
			    action->formed.nodes);
		workers_start(world, host, action);
		break;
	case AGENT_GROUP_STOP:
		workers_stop(world, host);
		break;
	case AGENT_GROUP_KILL:
		workers_kill(world, host);
		break;
	case AGENT_HANG_UP:
		world_trace(world, "h%u hangs up", host->index);
		net_close(world, host->link, TO_COORDINATOR, false);
		host->link = 0;
		world_at(world, world->now_ns, HAPPEN_LOST, host->index);
		break;
	case AGENT_EXIT:
		agent_exit(world, host, &action->outcome);
		break;
	}
}

void host_agent_step(struct world *world, struct host *host, const struct agent_event *event)
{
	struct agent_actions actions = AGENT_ACTIONS_INIT;
	if (host->agent_ended)
		return;
	agent_step(&host->agent, event, world_local_ns(world, host), &actions);
	for (size_t i = 0; i < actions.count; i++)
		agent_act(world, host, &actions.items[i]);
	agent_actions_done(&actions);
	host_rearm(world, host);
}

static void coordinator_end(struct world *world, struct host *host, bool silently)
{
	if (!host->coordinator)
		return;
	for (size_t i = 0; i < world->link_count; i++)
		if (world->links[i]->host[TO_COORDINATOR] == host->index &&
		    world->links[i]->term == host->term)
			net_close(world, world->links[i]->id, TO_AGENT, silently);
	coordinator_done(host->coordinator);
	free(host->coordinator);
	host->coordinator = NULL;
}

void host_coordinator_step(struct world *world, struct host *host,
			   const struct coordinator_event *event)
{
	struct coordinator_actions actions = COORDINATOR_ACTIONS_INIT;
	bool step_down = false, finished = false;
	uint64_t term = host->term;
	enum coordinator_state before = host->coordinator->state;
	struct round_ref heard = host->coordinator->roster.heard;
	uint32_t restarts = host->coordinator->restarts;
	if (event->type == COORDINATOR_MSG && event->msg->type == MSG_JOIN) {
		const struct memory *memory = &event->msg->join.memory;
		if (ballot_compare(memory->heard.ballot, heard.ballot) > 0)
			heard = memory->heard;
		restarts = MAX(restarts, memory->restarts);
	}
	host->term_heard |= !ballot_is_none(heard.ballot);
	coordinator_step(host->coordinator, event, world_local_ns(world, host), &actions);
	for (size_t i = 0; i < actions.count; i++) {
		const struct coordinator_action *action = &actions.items[i];
		if (action->type == COORDINATOR_SEND) {
			net_send(world, action->link, TO_AGENT, &action->msg);
		} else if (action->type == COORDINATOR_HANG_UP) {
			net_close(world, action->link, TO_AGENT, false);
		}
		step_down |= action->type == COORDINATOR_STEP_DOWN;
		finished |= action->type == COORDINATOR_FINISHED;
	}
	coordinator_actions_done(&actions);
	if (before != host->coordinator->state)
		faults_provoke(world, host->index);
	if (before != host->coordinator->state)
		world_trace(world, "c%u %s -> %s, round %lu.%lu", host->index,
			    coordinator_state_name(before),
			    coordinator_state_name(host->coordinator->state),
			    host->coordinator->roster.heard.ballot.epoch,
			    host->coordinator->roster.heard.ballot.round);
	if (before == COORDINATOR_RUNNING && host->coordinator->state != COORDINATOR_RUNNING)
		check_round_ended(world, host, event);
	if (before < COORDINATOR_CLOSING && host->coordinator->ruling != RULING_NONE &&
	    host->coordinator->state >= COORDINATOR_CLOSING)
		check_ruling(world, host);
	if (host->coordinator->restarts > restarts)
		check_charge(world, host, heard.ballot, host->coordinator->restarts - restarts);
	struct ballot formed = coordinator_ballot(host->coordinator);
	if (!ballot_eq(formed, host->term_ballot)) {
		host->term_ballot = formed;
		check_formed(world, host);
	}
	if (step_down || finished) {
		coordinator_end(world, host, false);
		if (host->agent_ended)
			host_end_process(world, host, false);
		else if (!host->link)
			world_at(world, world->now_ns, HAPPEN_LOST, host->index);
	}
	if (host->term == term)
		host_rearm(world, host);
}

void host_coordinate(struct world *world, struct host *host, uint64_t epoch)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	bool alone = world->mode == SIM_MODE_ENDPOINT;
	config.quorum = alone ? QUORUM_ANY : QUORUM_MAJORITY;
	config.epoch = epoch;
	config.salt = (uint32_t)world->next_term + 1;
	config.id = world->next_term + 1;
	config.index = world->mode == SIM_MODE_ARBITER ? -1 : (int32_t)host->index;
	config.local = host->agent.config.node.id;
	config.last_call_ns = world->last_call_ns;
	config.scale_up_delay_ns = world->scale_up_delay_ns;
	config.close_timeout_ns = world->close_timeout_ns;
	config.membership = world->pace;
	coordinator_end(world, host, false);
	host->coordinator = NEW(struct coordinator);
	host->term = ++world->next_term;
	host->term_rounds = 0;
	host->term_heard = host->term_charged = false;
	host->term_ballot = BALLOT_NONE;
	host->term_ns = world->now_ns;
	world->result->takeovers += world->next_term > 1;
	coordinator_init(host->coordinator, &config);
	world_trace(world, "c%u begins", host->index);
	faults_provoke(world, host->index);
	if (!host->link)
		net_connect(world, host, host->index);
}

void host_supersede(struct world *world, struct host *host)
{
	host_coordinator_step(world, host,
			      &(struct coordinator_event){ .type = COORDINATOR_SUPERSEDED });
}

void host_finder_step(struct world *world, struct host *host, struct finder_event *event)
{
	struct finder_actions actions = { .count = 0 };
	if (host->coordinator) {
		event->settled = coordinator_settled(host->coordinator);
		event->own_ballot = coordinator_ballot(host->coordinator);
	}
	finder_step(&host->finder, event, world_local_ns(world, host), &actions);
	for (size_t i = 0; i < actions.count; i++) {
		const struct finder_action *action = &actions.items[i];
		if (action->type == FINDER_PROBE)
			net_probe(world, host, action->index, action->probe);
		else if (action->type == FINDER_STEP_DOWN)
			host_supersede(world, host);
		else
			host->dead_indexes = action->dead_indexes;
		if (action->type == FINDER_CONNECT)
			net_connect(world, host, action->index);
		else if (action->type == FINDER_COORDINATE)
			host_coordinate(world, host, 0);
	}
	host_rearm(world, host);
}

/* Processes. */

static struct agent_config agent_config(struct world *world, const struct host *host)
{
	struct agent_config config = {
		.node = { .id = { host->index + 1, host->generation },
			  .min_nodes = host->min_nodes,
			  .max_nodes = host->max_nodes,
			  .nproc = (uint32_t)rng_range(&world->rng, 1, 3),
			  .node_rank = host->node_rank,
			  .max_restarts = world->max_restarts,
			  .period_ns = MAX(NS_PER_S, world->max_nodes * (NS_PER_S / 2000)),
			  .lease_periods = 4,
			  .store_port = (uint16_t)rng_range(&world->rng, 1024, 65535) },
		.join_timeout_ns = world->join_timeout_ns,
	};
	snprintf(config.node.role, sizeof(config.node.role), "role%u", host->index % SIM_ROLES);
	snprintf(config.node.name, sizeof(config.node.name), "h%u", host->index);
	snprintf(config.node.store_host, sizeof(config.node.store_host), "h%u", host->index);
	return config;
}

void host_boot(struct world *world, struct host *host)
{
	if (host->process)
		return;
	host->up = true;
	host->process = true;
	host->generation++;
	host->agent_ended = false;
	host->stuck = false;
	host->link = 0;
	host->was_linked = false;
	host->leader_epoch = 0;
	world->running++;
	world_trace(world, "h%u boots", host->index);
	struct agent_config config = agent_config(world, host);
	agent_init(&host->agent, &config);
	host_agent_step(world, host, &(struct agent_event){ .type = AGENT_START });
	if (world->mode == SIM_MODE_ARBITER)
		return;
	struct finder_config finder = {
		.count = world->endpoints,
		.own = host->index < world->endpoints ? (int32_t)host->index : -1,
		.failover_after_ns = 10 * NS_PER_S,
	};
	finder_init(&host->finder, &finder);
	host_finder_step(world, host, &(struct finder_event){ .type = FINDER_START });
}

void host_end_process(struct world *world, struct host *host, bool power)
{
	if (!host->process)
		return;
	world_trace(world, "h%u %s", host->index, power ? "loses power" : "process ends");
	host->process = false;
	host->up = !power;
	host->crashed_ns = world->now_ns;
	workers_gone(world, host);
	world->running--;
	net_close(world, host->link, TO_COORDINATOR, power);
	host->link = 0;
	coordinator_end(world, host, power);
	host->generation++;
	host_rearm(world, host);
}

/* The loop. */

static void init_host(struct world *world, uint32_t index)
{
	struct host *host = &world->hosts[index];
	host->index = index;
	host->up = true;
	host->clock_offset_ns = (int64_t)rng_range(&world->rng, 0, 3600 * NS_PER_S);
	host->clock_ppm = (int64_t)rng_range(&world->rng, 0, 4000) - 2000;
	struct {
		struct happening_event *event;
		enum happening what;
	} timers[] = {
		{ &host->agent_timer, HAPPEN_AGENT },
		{ &host->coordinator_timer, HAPPEN_COORDINATOR },
		{ &host->finder_timer, HAPPEN_FINDER },
		{ &host->group_timer, HAPPEN_GROUP },
	};
	for (size_t i = 0; i < ARRAY_LEN(timers); i++)
		*timers[i].event = (struct happening_event){ .what = timers[i].what,
							     .embedded = true,
							     .host = index };
}

/* What differs from one world with faults to the next. */
static void choose_troubles(struct world *world)
{
	struct rng *rng = &world->rng;
	world->work_ns = 40 * NS_PER_S;
	world->retry_max_ns = 300 * NS_PER_MS;
	world->scale_up_delay_ns = 5 * NS_PER_S;
	world->close_timeout_ns = 30 * NS_PER_S;
	world->pace = COORDINATOR_CONFIG_INIT.membership;
	if (!world->options.faults)
		return;
	world->failure_percent = (uint32_t)rng_range(rng, 0, 40);
	world->stuck_percent = rng_chance(rng, 10) ? (uint32_t)rng_range(rng, 1, 10) : 0;
	world->malice_percent = rng_chance(rng, 60) ? (uint32_t)rng_range(rng, 10, 60) : 0;
	world->noise = rng_chance(rng, 2);
	if (world->noise)
		world->work_ns = 3600 * NS_PER_S;
	if (rng_chance(rng, 50))
		world->retry_max_ns = rng_range(rng, 1, 15) * NS_PER_S;
	world->scale_up_delay_ns = rng_range(rng, 0, 5) * NS_PER_S;
	world->close_timeout_ns = rng_range(rng, 1, 30) * NS_PER_S;
	world->pace.burst = (uint32_t)rng_range(rng, 1, 10);
	world->pace.interval_ns = rng_range(rng, 5, 60) * NS_PER_S;
}

/* Node ranks that are given, sometimes twice or too high, and a host that was started for another
 * job. */
static void choose_differences(struct world *world)
{
	struct rng *rng = &world->rng;
	bool given = world->options.faults && rng_chance(rng, 15);
	for (uint32_t i = 0; i < world->count; i++) {
		struct host *host = &world->hosts[i];
		host->min_nodes = world->min_nodes;
		host->max_nodes = world->max_nodes;
		host->node_rank =
			given && rng_chance(rng, 80) ? (int32_t)(i % (world->max_nodes + 1)) : -1;
	}
	world->misfit = world->options.faults && rng_chance(rng, 5);
	if (!world->misfit)
		return;
	uint32_t index = (uint32_t)rng_range(rng, 0, world->count - 1);
	world->hosts[index].max_nodes++;
	world_trace(world, "h%u has --nnodes=%u:%u", index, world->min_nodes, world->max_nodes + 1);
}

static void choose_job(struct world *world)
{
	struct rng *rng = &world->rng;
	world->count =
		world->options.agents ? world->options.agents : (uint32_t)rng_range(rng, 1, 7);
	world->max_nodes = world->options.agents > 64 ? world->count
						      : (uint32_t)rng_range(rng, 1, world->count);
	world->min_nodes = (uint32_t)rng_range(rng, 1, world->max_nodes);
	world->max_restarts = (uint32_t)rng_range(rng, 0, 3);
	world->join_timeout_ns = rng_range(rng, 60, 200) * NS_PER_S;
	world->last_call_ns = rng_range(rng, 0, 10) * NS_PER_S;
	choose_troubles(world);
	world->mode =
		world->options.mode ? world->options.mode : (enum sim_mode)rng_range(rng, 1, 3);
	world->endpoints = world->mode == SIM_MODE_ENDPOINTS
				   ? MIN((uint32_t)rng_range(rng, 2, 3), world->count)
				   : 1;
	if (world->mode == SIM_MODE_ENDPOINTS && world->endpoints == 1)
		world->mode = SIM_MODE_ENDPOINT;
}

void world_init(struct world *world, const struct sim_options *options, struct buf *trace,
		struct sim_result *result)
{
	*world = (struct world){
		.options = *options, .trace = trace, .result = result, .queue = HEAP_INIT
	};
	memset(result, 0, sizeof(*result));
	world->rng.state = options->seed * 0x2545f4914f6cdd1du + 1;
	world->now_ns = NS_PER_S;
	choose_job(world);
	result->agents = world->count;
	world->hosts = NEW_ARRAY(struct host, world->count);
	memset(world->hosts, 0, world->count * sizeof(struct host));
	if (options->faults) {
		size_t cells = (size_t)world->count * world->count;
		world->cut = memset(NEW_ARRAY(bool, cells), 0, cells);
		world->arbiter_cut = memset(NEW_ARRAY(bool, world->count), 0, world->count);
	}
	world_trace(world, "%u agents, --nnodes=%u:%u, %u restarts, mode %d, %u endpoints",
		    world->count, world->min_nodes, world->max_nodes, world->max_restarts,
		    world->mode, world->endpoints);
	choose_differences(world);
	for (uint32_t i = 0; i < world->count; i++) {
		init_host(world, i);
		uint64_t spread_ns = rng_chance(&world->rng, 20) ? 60 * NS_PER_S : NS_PER_S;
		world_at(world, world->now_ns + rng_range(&world->rng, 0, spread_ns), HAPPEN_BOOT,
			 i);
	}
	world->faults_end_ns = world->now_ns;
	if (options->faults)
		faults_start(world);
	if (world->mode == SIM_MODE_ARBITER)
		world_at(world, world->now_ns + ARBITER_TICK_NS, HAPPEN_ELECTION, 0);
}

static void lost(struct world *world, struct host *host)
{
	if (host->agent_ended || host->link)
		return;
	struct finder_event event = { .type = FINDER_LOST, .linked = host->was_linked };
	if (host->coordinator) {
		net_connect(world, host, host->index);
	} else if (world->mode == SIM_MODE_ARBITER) {
		arbiter_seek(world, host);
	} else {
		host->was_linked = false;
		host_finder_step(world, host, &event);
	}
}

static void happen(struct world *world, struct happening_event *event)
{
	struct host *host = &world->hosts[event->host];
	switch (event->what) {
	case HAPPEN_BOOT:
		/* Whoever came after the end would begin the job anew. */
		world->boots--;
		if (!world->closed)
			host_boot(world, host);
		break;
	case HAPPEN_AGENT:
		host_agent_step(world, host, &(struct agent_event){ .type = AGENT_TIMER });
		break;
	case HAPPEN_COORDINATOR:
		if (host->coordinator)
			host_coordinator_step(
				world, host,
				&(struct coordinator_event){ .type = COORDINATOR_TIMER });
		break;
	case HAPPEN_FINDER:
		host_finder_step(world, host, &(struct finder_event){ .type = FINDER_TIMER });
		break;
	case HAPPEN_GROUP:
		workers_happen(world, host);
		break;
	case HAPPEN_PUMP:
		net_pump(world, world->links[event->link - 1], event->dir);
		break;
	case HAPPEN_ANSWER:
		if (!host->agent_ended)
			host_finder_step(world, host,
					 &(struct finder_event){ .type = FINDER_ANSWER,
								 .index = event->index,
								 .probe = event->probe,
								 .answer = event->answer,
								 .ballot = event->ballot });
		break;
	case HAPPEN_CONNECTED:
		net_connected(world, host, event->index);
		break;
	case HAPPEN_LOST:
		lost(world, host);
		break;
	case HAPPEN_FAULT:
		faults_next(world);
		break;
	case HAPPEN_PROVOKED:
		faults_provoked(world, host);
		break;
	case HAPPEN_HEAL:
		faults_heal(world);
		break;
	case HAPPEN_ELECTION:
		arbiter_elect(world);
		world_at(world, world->now_ns + ARBITER_TICK_NS, HAPPEN_ELECTION, 0);
		break;
	case HAPPEN_LEADER:
		arbiter_heard(world, host, event->index, event->epoch);
		break;
	case HAPPEN_NEVER:
		break;
	}
}

static bool concerns_host(enum happening what)
{
	return what != HAPPEN_PUMP && what != HAPPEN_FAULT && what != HAPPEN_PROVOKED &&
	       what != HAPPEN_HEAL && what != HAPPEN_ELECTION;
}

static void one_step(struct world *world, struct happening_event *event)
{
	struct host *host = &world->hosts[event->host];
	bool embedded = event->embedded;
	if (concerns_host(event->what) && world_frozen(world, host)) {
		world_arm(world, event, host->frozen_until_ns);
		return;
	}
	bool stale = !embedded && event->what != HAPPEN_BOOT && concerns_host(event->what) &&
		     event->generation != host->generation;
	if (!stale) {
		world->result->steps++;
		happen(world, event);
	}
	if (!embedded)
		free(event);
}

void world_run(struct world *world)
{
	for (struct heap_node *node;
	     !world->result->broken && !world->over && (node = heap_pop(&world->queue));) {
		if (node->key > world->now_ns + NS_PER_MS)
			world->busy_steps = 0;
		else if (++world->busy_steps > BUSY_STEPS_MAX(world->count))
			check_broken(world, "so much happens that time stands still");
		world->now_ns = MAX(world->now_ns, node->key);
		one_step(world, container_of(node, struct happening_event, node));
		check_step(world);
		if (world->running == 0 && world->boots == 0 &&
		    world->now_ns >= world->faults_end_ns)
			break;
		if (world->now_ns > world->faults_end_ns + AFTERMATH_NS + 2 * world->work_ns)
			check_broken(world, "%u agents still wait %lu s after the last fault",
				     world->running,
				     (world->now_ns - world->faults_end_ns) / NS_PER_S);
	}
	world->result->virtual_ns = world->now_ns;
}

void world_done(struct world *world)
{
	for (struct heap_node *node; (node = heap_pop(&world->queue));) {
		struct happening_event *event = container_of(node, struct happening_event, node);
		if (!event->embedded)
			free(event);
	}
	heap_done(&world->queue);
	for (uint32_t i = 0; i < world->count; i++)
		if (world->hosts[i].coordinator) {
			coordinator_done(world->hosts[i].coordinator);
			free(world->hosts[i].coordinator);
		}
	net_done(world);
	free(world->hosts);
	free(world->cut);
	free(world->arbiter_cut);
	check_done(world);
}
