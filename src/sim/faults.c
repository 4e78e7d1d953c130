/* What goes wrong, and the arbiter, which can be cut off like anybody else. */
#include <string.h>

#include "base/clock.h"
#include "sim/world.h"

#define ARBITER_TTL_NS (10 * NS_PER_S)

void faults_start(struct world *world)
{
	world->faults_end_ns = world->now_ns + rng_range(&world->rng, 10, 240) * NS_PER_S;
	world_at(world, world->now_ns + rng_range(&world->rng, 0, 10 * NS_PER_S), HAPPEN_FAULT, 0);
}

static struct host *any_host(struct world *world)
{
	return &world->hosts[rng_range(&world->rng, 0, world->count - 1)];
}

static void heal(struct world *world)
{
	memset(world->cut, 0, (size_t)world->count * world->count);
	memset(world->arbiter_cut, 0, world->count);
	world_trace(world, "network heals");
}

/* Two sides; now and then only one direction between them is cut. */
static void partition(struct world *world)
{
	bool one_way = rng_chance(&world->rng, 20);
	bool alone = rng_chance(&world->rng, 40);
	uint32_t lonely = (uint32_t)rng_range(&world->rng, 0, world->count - 1);
	uint64_t sides = rng_next(&world->rng);
	world_trace(world, "network cut%s, sides %lx", one_way ? " one way" : "",
		    alone ? 1ul << (lonely % 64) : sides & ((1ul << MIN(world->count, 63u)) - 1));
	for (uint32_t i = 0; i < world->count; i++) {
		bool i_side = alone ? i == lonely : sides >> (i % 64) & 1;
		world->arbiter_cut[i] |= i_side && !one_way;
		for (uint32_t j = 0; j < world->count; j++) {
			bool j_side = alone ? j == lonely : sides >> (j % 64) & 1;
			if (i_side != j_side && (!one_way || i_side))
				world->cut[i * world->count + j] = true;
		}
	}
}

static void freeze(struct world *world)
{
	struct host *host = any_host(world);
	if (world_frozen(world, host))
		return;
	uint64_t length_ns = rng_range(&world->rng, 100, rng_chance(&world->rng, 50) ? 3000 : 40000) *
			     NS_PER_MS;
	host->frozen_until_ns = MIN(world->now_ns + length_ns, world->faults_end_ns);
	host->thawed_ns = host->frozen_until_ns;
	world_trace(world, "h%u frozen", host->index);
}

static void slow_down(struct world *world)
{
	struct host *host = any_host(world);
	host->slow_ns = host->slow_ns ? 0 : rng_range(&world->rng, 10, 250) * NS_PER_MS;
	world_trace(world, "h%u slow %lu ms", host->index, host->slow_ns / NS_PER_MS);
}

/* A process or a host dies, and mostly comes back, without its memory. */
static void crash(struct world *world)
{
	struct host *host = any_host(world);
	if (!host->process || world_frozen(world, host))
		return;
	world->amnesia++;
	host_end_process(world, host, rng_chance(&world->rng, 40));
	if (rng_chance(&world->rng, 80) && !world->closed) {
		uint64_t at_ns = world->now_ns + rng_range(&world->rng, 15, 60) * NS_PER_S;
		world_at(world, at_ns, HAPPEN_BOOT, host->index);
	} else {
		host->up = true;
	}
}

static void user_stops(struct world *world)
{
	struct host *host = any_host(world);
	if (!host->process || world_frozen(world, host) || !rng_chance(&world->rng, 30))
		return;
	world->amnesia++;
	world_trace(world, "h%u user stops", host->index);
	host_agent_step(world, host,
			&(struct agent_event){ .type = AGENT_STOP_REQUESTED, .signal = 15 });
}

/* A link between two hosts of which neither is frozen, or NULL. */
static struct link *any_link(struct world *world)
{
	if (!world->link_count)
		return NULL;
	struct link *link = world->links[rng_range(&world->rng, 0, world->link_count - 1)];
	bool usable = link->open[0] && link->open[1] && link->host[0] != link->host[1] &&
		      !world_frozen(world, &world->hosts[link->host[0]]) &&
		      !world_frozen(world, &world->hosts[link->host[1]]);
	return usable ? link : NULL;
}

static void reset(struct world *world)
{
	struct link *link = any_link(world);
	if (link) {
		world_trace(world, "h%u link reset", link->host[TO_AGENT]);
		net_reset(world, link);
	}
}

static void half_open(struct world *world)
{
	struct link *link = any_link(world);
	if (link) {
		world_trace(world, "h%u link half open", link->host[TO_AGENT]);
		net_half_open(world, link);
	}
}

static void arbiter_cuts(struct world *world)
{
	uint32_t index = any_host(world)->index;
	world->arbiter_cut[index] = !world->arbiter_cut[index];
}

static void end_faults(struct world *world)
{
	heal(world);
	world->failure_percent = 0;
	for (uint32_t i = 0; i < world->count; i++) {
		world->hosts[i].slow_ns = 0;
		world->hosts[i].up = true;
	}
}

void faults_next(struct world *world)
{
	static void (*const faults[])(struct world *) = {
		partition, partition, heal, heal, freeze, slow_down,
		crash,	   user_stops, reset, half_open, arbiter_cuts,
	};
	if (world->now_ns >= world->faults_end_ns) {
		end_faults(world);
		return;
	}
	world->result->faults++;
	faults[rng_range(&world->rng, 0, ARRAY_LEN(faults) - 1)](world);
	uint64_t pause_ns = rng_range(&world->rng, 10, rng_chance(&world->rng, 30) ? 1000 : 20000) *
			    NS_PER_MS;
	world_at(world, MIN(world->now_ns + pause_ns, world->faults_end_ns), HAPPEN_FAULT, 0);
}

/* An election service with leases. */

static bool arbiter_sees(const struct world *world, const struct host *host)
{
	return host->process && !world_frozen(world, host) && !host->agent_ended &&
	       (!world->arbiter_cut || !world->arbiter_cut[host->index]);
}

static void announce(struct world *world, struct host *host)
{
	struct happening_event *event = world_at(world, world->now_ns + net_latency_ns(world, host),
						 HAPPEN_LEADER, host->index);
	event->index = world->arbiter_leader;
	event->epoch = world->arbiter_epoch;
}

void arbiter_elect(struct world *world)
{
	struct host *leader = &world->hosts[world->arbiter_leader];
	bool seen = world->arbiter_epoch && arbiter_sees(world, leader) &&
		    leader->generation == world->arbiter_generation;
	if (seen)
		world->arbiter_seen_ns = world->now_ns;
	if (!seen && (!world->arbiter_epoch || world->now_ns > world->arbiter_seen_ns + ARBITER_TTL_NS)) {
		for (uint32_t i = 0; i < world->count; i++) {
			if (!arbiter_sees(world, &world->hosts[i]))
				continue;
			world->arbiter_leader = i;
			world->arbiter_generation = world->hosts[i].generation;
			world->arbiter_epoch++;
			world->arbiter_seen_ns = world->now_ns;
			world_trace(world, "arbiter elects h%u, epoch %lu", i, world->arbiter_epoch);
			break;
		}
	}
	for (uint32_t i = 0; i < world->count; i++)
		if (world->arbiter_epoch && arbiter_sees(world, &world->hosts[i]) &&
		    world->hosts[i].leader_epoch != world->arbiter_epoch &&
		    (i != world->arbiter_leader ||
		     world->hosts[i].generation == world->arbiter_generation))
			announce(world, &world->hosts[i]);
}
