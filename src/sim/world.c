/* Hosts with their processes and worker groups, and the loop that makes things happen in order. */
#include "sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

#define BUSY_STEPS_MAX(agents) (10000 + 100 * (uint64_t)(agents)) /* within a millisecond */
#define AFTERMATH_NS (900 * NS_PER_S) /* the job must end within this after the last fault */

/* Time. */

uint64_t world_local_ns(const struct world *world, const struct host *host)
{
	int64_t drift = (int64_t)(world->now_ns / 1000000) * host->clock_ppm;
	return world->now_ns + (uint64_t)(host->clock_offset_ns + drift);
}

/* The first instant at which the host's clock shows at least `local_ns`. */
uint64_t world_ns(const struct world *world, const struct host *host, uint64_t local_ns)
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
		{ &host->node_timer, HAPPEN_NODE },
		{ &host->group_timer, HAPPEN_GROUP },
		{ &host->answer_timer, HAPPEN_ANSWERING },
		{ &host->step_timer, HAPPEN_STEP },
	};
	for (size_t i = 0; i < ARRAY_LEN(timers); i++)
		*timers[i].event = (struct happening_event){ .what = timers[i].what,
							     .embedded = true,
							     .host = index };
}

/* Chooses the parameters of a world with faults. */
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
	world->gentle = rng_chance(rng, 15);
	world->stray_percent = rng_chance(rng, 20) ? (uint32_t)rng_range(rng, 5, 50) : 0;
	world->noise = !world->gentle && rng_chance(rng, 2);
	if (world->gentle)
		world->stuck_percent = 0;
	if (world->noise)
		world->work_ns = 3600 * NS_PER_S;
	if (rng_chance(rng, 50))
		world->retry_max_ns = rng_range(rng, 1, 15) * NS_PER_S;
	world->scale_up_delay_ns = rng_range(rng, 0, 5) * NS_PER_S;
	world->close_timeout_ns = rng_range(rng, 1, 30) * NS_PER_S;
	world->pace.burst = (uint32_t)rng_range(rng, 1, 10);
	world->pace.interval_ns = rng_range(rng, 5, 60) * NS_PER_S;
}

/* Chooses given node ranks, sometimes duplicate or too high, and a host that was started for
 * another job. */
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
	world->by_progress = world->options.seed % 4 == 0;
	world->join_timeout_ns = rng_range(rng, 60, 200) * NS_PER_S;
	world->lost_timeout_ns = world->options.seed % 3 ? (3 + world->options.seed % 31) * NS_PER_S
							 : world->join_timeout_ns;
	world->last_call_ns = rng_range(rng, 0, 10) * NS_PER_S;
	choose_troubles(world);
	world->mode =
		world->options.mode ? world->options.mode : (enum sim_mode)rng_range(rng, 1, 3);
	world->endpoints = world->mode == SIM_MODE_ENDPOINTS
				   ? MIN((uint32_t)rng_range(rng, 2, 3), world->count)
				   : 1;
	if (world->mode == SIM_MODE_ENDPOINTS && world->endpoints == 1)
		world->mode = SIM_MODE_ENDPOINT;
	if (world->options.faults && !world->options.agents && rng_chance(rng, 20))
		scripts_choose(world);
	/* Without a draw, so that all other worlds stay as they are. */
	world->fenced = world->mode == SIM_MODE_ARBITER &&
			(world->options.seed % 2 == 0 || world->script == SCRIPT_FENCE ||
			 world->script == SCRIPT_RELIC);
}

void world_init(struct world *world, const struct sim_options *options, struct buf *trace,
		struct sim_result *result)
{
	*world = (struct world){
		.options = *options, .trace = trace, .result = result, .queue = HEAP_INIT
	};
	memset(result, 0, sizeof(*result));
	world->rng.state = options->seed * 0x2545f4914f6cdd1du + 1;
	world->now_ns = WORLD_BEGIN_NS;
	choose_job(world);
	result->agents = world->count;
	world->hosts = NEW_ARRAY(struct host, world->count);
	if (options->faults) {
		size_t cells = (size_t)world->count * world->count;
		world->cut = NEW_ARRAY(bool, cells);
		world->arbiter_cut = NEW_ARRAY(bool, world->count);
	}
	world_trace(world, "%u agents, --nnodes=%u:%u, %u restarts, mode %d%s, %u endpoints",
		    world->count, world->min_nodes, world->max_nodes, world->max_restarts,
		    world->mode, world->fenced ? " with leases" : "", world->endpoints);
	choose_differences(world);
	checks_choose(world);
	gaits_choose(world);
	hushes_choose(world);
	for (uint32_t i = 0; i < world->count; i++) {
		init_host(world, i);
		uint64_t spread_ns = rng_chance(&world->rng, 20) ? 60 * NS_PER_S : NS_PER_S;
		world_at(world,
			 world->now_ns + rng_range(&world->rng, 0, spread_ns) +
				 checks_before_join_ns(world),
			 HAPPEN_BOOT, i);
	}
	world->faults_end_ns = world->now_ns;
	if (options->faults)
		faults_start(world);
	if (world->mode == SIM_MODE_ARBITER)
		world_at(world, world->now_ns + ARBITER_TICK_NS, HAPPEN_ELECTION, 0);
	gaits_start(world);
	hushes_start(world);
	asks_start(world);
	notices_start(world);
}

static void happen(struct world *world, struct happening_event *event)
{
	struct host *host = &world->hosts[event->host];
	switch (event->what) {
	case HAPPEN_BOOT:
		/* An agent that came after the end would begin the job again. */
		world->boots--;
		if (!world->closed)
			host_boot(world, host);
		break;
	case HAPPEN_NODE:
		host_step(world, host, &(struct node_event){ .type = NODE_EV_TIMER });
		break;
	case HAPPEN_GROUP:
		workers_happen(world, host);
		break;
	case HAPPEN_PUMP:
		net_pump(world, world->links[event->link - 1], event->dir);
		break;
	case HAPPEN_ANSWER:
		host_step(world, host,
			  &(struct node_event){ .type = NODE_EV_ANSWER,
						.index = (int32_t)event->index,
						.probe = event->probe,
						.answer = event->answer,
						.ballot = event->ballot });
		break;
	case HAPPEN_CONNECTED:
		if (event->link == host->connection)
			net_connected(world, host, event->index);
		break;
	case HAPPEN_NOT_LINKED:
		if (event->link == host->connection)
			host_step(world, host, &(struct node_event){ .type = NODE_EV_NOT_LINKED });
		break;
	case HAPPEN_FAULT:
		faults_next(world);
		break;
	case HAPPEN_PROVOKED:
		faults_provoked(world, host);
		break;
	case HAPPEN_UNREACHABLE:
		net_half_open(world, world->links[event->link - 1], TO_AGENT);
		break;
	case HAPPEN_BROKEN:
		net_break(world, world->links[event->link - 1], TO_AGENT);
		break;
	case HAPPEN_HEAL:
		faults_heal(world);
		break;
	case HAPPEN_ELECTION:
		arbiter_elect(world);
		world_at(world, world->now_ns + ARBITER_TICK_NS, HAPPEN_ELECTION, 0);
		break;
	case HAPPEN_LEADER:
		arbiter_heard(world, host, event);
		break;
	case HAPPEN_RECORDED:
		host_step(world, host,
			  &(struct node_event){ .type = NODE_EV_RECORDED,
						.term.epoch = event->epoch });
		break;
	case HAPPEN_ASKER:
		asks_happen(world, &world->askers[event->index]);
		break;
	case HAPPEN_CHECKED:
		checks_end(world, host);
		break;
	case HAPPEN_MEASURED:
		checks_measured(world, host, event);
		break;
	case HAPPEN_ANSWERING:
		asks_answer(world, host);
		break;
	case HAPPEN_STEP:
		notices_step(world, host);
		break;
	case HAPPEN_NOTICE:
		notices_give(world, host);
		break;
	case HAPPEN_LOOK:
		gaits_look(world, host);
		break;
	case HAPPEN_SET_OUT:
		gaits_begin(world, event->index);
		break;
	case HAPPEN_STRIDE:
		gaits_stride(world, event->index);
		break;
	case HAPPEN_HUSH:
		hushes_happen(world, host);
		break;
	case HAPPEN_NEVER:
		break;
	}
}

static bool concerns_host(enum happening what)
{
	return what != HAPPEN_NOTICE && what != HAPPEN_SET_OUT && what != HAPPEN_STRIDE &&
	       what != HAPPEN_PUMP && what != HAPPEN_FAULT && what != HAPPEN_PROVOKED &&
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
		if (node->key > world->busy_ns + NS_PER_MS) {
			world->busy_steps = 0;
			world->busy_ns = node->key;
		}
		if (++world->busy_steps > BUSY_STEPS_MAX(world->count))
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
	for (uint32_t i = 0; i < world->count; i++) {
		node_done(&world->hosts[i].node);
		group_done(&world->hosts[i].group);
	}
	node_actions_done(&world->spare);
	net_done(world);
	asks_done(world);
	notices_done(world);
	gaits_done(world);
	free(world->hosts);
	free(world->cut);
	free(world->arbiter_cut);
	check_done(world);
}
