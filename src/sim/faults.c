/* What goes wrong. */
#include <string.h>

#include "base/clock.h"
#include "sim/world.h"

void faults_start(struct world *world)
{
	uint64_t length_s = world->noise ? rng_range(&world->rng, 1200, 3600) : rng_range(&world->rng, 10, 240);
	world->faults_end_ns = world->now_ns + length_s * NS_PER_S;
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

static void boot_later(struct world *world, struct host *host, uint64_t from_ms, uint64_t to_ms)
{
	if (!world->closed)
		world_at(world, world->now_ns + rng_range(&world->rng, from_ms, to_ms) * NS_PER_MS,
			 HAPPEN_BOOT, host->index);
}

/* A process or a host dies, and mostly comes back, without its memory. */
static void crash(struct world *world)
{
	struct host *host = any_host(world);
	if (!host->process || world_frozen(world, host))
		return;
	world->amnesia++;
	bool power = rng_chance(&world->rng, 40);
	host_end_process(world, host, power);
	if (!rng_chance(&world->rng, 80))
		host->up = true;
	else if (!power && rng_chance(&world->rng, 30))
		boot_later(world, host, 100, 5000);
	else
		boot_later(world, host, 15000, 60000);
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
	if (rng_chance(&world->rng, 50))
		boot_later(world, host, 5000, 30000);
}

static void user_restarts(struct world *world)
{
	struct host *host = any_host(world);
	if (!host->process || world_frozen(world, host))
		return;
	world_trace(world, "h%u user asks for a new round", host->index);
	host_agent_step(world, host, &(struct agent_event){ .type = AGENT_RESTART_REQUESTED });
}

/* Whoever has gone comes back, whoever is there goes: the noise that a fleet makes. */
static void user_comes_and_goes(struct world *world)
{
	struct host *host = any_host(world);
	if (host->process)
		user_stops(world);
	else if (world->boots == 0)
		boot_later(world, host, 0, 1000);
}

/* A link between two hosts of which neither is frozen, or NULL. */
static struct link *any_link(struct world *world)
{
	enum { TRIES = 8 };
	for (int i = 0; world->link_count && i < TRIES; i++) {
		struct link *link = world->links[rng_range(&world->rng, 0, world->link_count - 1)];
		if (link->open[0] && link->open[1] && link->host[0] != link->host[1] &&
		    !world_frozen(world, &world->hosts[link->host[0]]) &&
		    !world_frozen(world, &world->hosts[link->host[1]]))
			return link;
	}
	return NULL;
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
		int dir = rng_chance(&world->rng, 50) ? TO_AGENT : TO_COORDINATOR;
		world_trace(world, "h%u link half open%s", link->host[TO_AGENT],
			    dir == TO_AGENT ? ", and it knows" : "");
		net_half_open(world, link, dir);
	}
}

/* For a while what is sent takes seconds, in one direction or both. */
static void lag(struct world *world)
{
	struct link *link = any_link(world);
	if (!link)
		return;
	for (int dir = 0; dir < 2; dir++)
		link->lag_ns[dir] = rng_chance(&world->rng, 60) ? rng_range(&world->rng, 100, 8000) * NS_PER_MS
								: 0;
	link->lag_until_ns = MIN(world->now_ns + rng_range(&world->rng, 1, 20) * NS_PER_S,
				 world->faults_end_ns);
	world_trace(world, "h%u link slow, %lu ms to and %lu ms from the coordinator", link->host[TO_AGENT],
		    link->lag_ns[TO_COORDINATOR] / NS_PER_MS, link->lag_ns[TO_AGENT] / NS_PER_MS);
}

static void arbiter_cuts(struct world *world)
{
	uint32_t index = any_host(world)->index;
	world->arbiter_cut[index] = !world->arbiter_cut[index];
}

static void arbiter_lags(struct world *world)
{
	struct host *host = any_host(world);
	host->arbiter_lag_ns = host->arbiter_lag_ns ? 0 : rng_range(&world->rng, 1, 20) * NS_PER_S;
}

static void end_faults(struct world *world)
{
	heal(world);
	world->failure_percent = 0;
	world->stuck_percent = 0;
	for (uint32_t i = 0; i < world->count; i++) {
		world->hosts[i].slow_ns = 0;
		world->hosts[i].arbiter_lag_ns = 0;
		world->hosts[i].up = true;
	}
}

void faults_next(struct world *world)
{
	static void (*const faults[])(struct world *) = {
		partition, partition,	  heal,	     heal,  freeze,    slow_down, crash,
		user_stops, user_restarts, reset, half_open, lag, arbiter_cuts, arbiter_lags,
	};
	if (world->now_ns >= world->faults_end_ns) {
		end_faults(world);
		return;
	}
	world->result->faults++;
	if (world->noise && rng_chance(&world->rng, 95))
		user_comes_and_goes(world);
	else
		faults[rng_range(&world->rng, 0, ARRAY_LEN(faults) - 1)](world);
	uint64_t pause_ns = rng_range(&world->rng, 10, rng_chance(&world->rng, 30) ? 1000 : 20000) *
			    NS_PER_MS;
	world_at(world, MIN(world->now_ns + pause_ns, world->faults_end_ns), HAPPEN_FAULT, 0);
}
