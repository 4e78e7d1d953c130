/* The faults. */
#include <string.h>

#include "base/clock.h"
#include "sim/world.h"

void faults_start(struct world *world)
{
	uint64_t length_s =
		world->noise ? rng_range(&world->rng, 1200, 3600) : rng_range(&world->rng, 10, 240);
	if (world->script)
		length_s = 120;
	world->faults_end_ns = world->now_ns + length_s * NS_PER_S;
	world_at(world, world->now_ns + rng_range(&world->rng, 0, 10 * NS_PER_S), HAPPEN_FAULT, 0);
	scripts_start(world);
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

/* Two sides; sometimes only one direction between them is cut. */
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

void faults_freeze(struct world *world, struct host *host, uint64_t length_ns)
{
	if (world_frozen(world, host))
		return;
	host->frozen_until_ns = MIN(world->now_ns + length_ns, world->faults_end_ns);
	host->thawed_ns = host->frozen_until_ns;
	world_trace(world, "h%u frozen", host->index);
}

static void freeze(struct world *world)
{
	uint64_t longest_ms = rng_chance(&world->rng, 50) ? 3000 : 40000;
	faults_freeze(world, any_host(world), rng_range(&world->rng, 100, longest_ms) * NS_PER_MS);
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

/* A process or a host dies, and usually comes back, without its memory. */
static void crash_host(struct world *world, struct host *host)
{
	if (!host->process || world_frozen(world, host) || world->gentle)
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

static void crash(struct world *world)
{
	crash_host(world, any_host(world));
}

static void user_stops(struct world *world)
{
	struct host *host = any_host(world);
	if (!host->process || world_frozen(world, host) || world->gentle ||
	    !rng_chance(&world->rng, 30))
		return;
	world->amnesia++;
	host->stopped = true;
	world_trace(world, "h%u user stops", host->index);
	host_tell(world, host, &(struct agent_event){ .type = AGENT_STOP_REQUESTED, .signal = 15 });
	if (rng_chance(&world->rng, 50))
		boot_later(world, host, 5000, 30000);
}

static void user_restarts(struct world *world)
{
	struct host *host = any_host(world);
	if (!host->process || world_frozen(world, host))
		return;
	world_trace(world, "h%u user asks for a new round", host->index);
	host_tell(world, host, &(struct agent_event){ .type = AGENT_RESTART_REQUESTED });
}

/* Agents that are gone come back, others leave: the noise of a fleet. */
static void user_comes_and_goes(struct world *world)
{
	struct host *host = any_host(world);
	if (host->process)
		user_stops(world);
	else if (world->boots == 0)
		boot_later(world, host, 0, 1000);
}

/* Links. */

/* A link between two hosts of which neither is frozen. */
static bool link_usable(const struct world *world, const struct link *link)
{
	return link->open[0] && link->open[1] && link->host[0] != link->host[1] &&
	       !world_frozen(world, &world->hosts[link->host[0]]) &&
	       !world_frozen(world, &world->hosts[link->host[1]]);
}

static void reset_link(struct world *world, struct link *link)
{
	world_trace(world, "h%u link reset", link->host[TO_AGENT]);
	net_reset(world, link);
}

static void half_open_link(struct world *world, struct link *link)
{
	int dir = rng_chance(&world->rng, 50) ? TO_AGENT : TO_COORDINATOR;
	world_trace(world, "h%u link half open%s", link->host[TO_AGENT],
		    dir == TO_AGENT ? ", and it knows" : "");
	net_half_open(world, link, dir);
}

/* For a while messages take seconds, in one direction or both. */
static void lag_link(struct world *world, struct link *link)
{
	for (int dir = 0; dir < 2; dir++) {
		bool slow = rng_chance(&world->rng, 60);
		link->lag_ns[dir] = slow ? rng_range(&world->rng, 100, 8000) * NS_PER_MS : 0;
	}
	link->lag_until_ns =
		MIN(world->now_ns + rng_range(&world->rng, 1, 20) * NS_PER_S, world->faults_end_ns);
	world_trace(world, "h%u link slow, %lu ms to and %lu ms from the coordinator",
		    link->host[TO_AGENT], link->lag_ns[TO_COORDINATOR] / NS_PER_MS,
		    link->lag_ns[TO_AGENT] / NS_PER_MS);
}

static void any_link(struct world *world, void (*fault)(struct world *, struct link *))
{
	enum { TRIES = 8 };
	for (int i = 0; world->link_count && i < TRIES; i++) {
		struct link *link = world->links[rng_range(&world->rng, 0, world->link_count - 1)];
		if (link_usable(world, link)) {
			fault(world, link);
			return;
		}
	}
}

static void reset(struct world *world)
{
	any_link(world, reset_link);
}

static void half_open(struct world *world)
{
	any_link(world, half_open_link);
}

static void lag(struct world *world)
{
	any_link(world, lag_link);
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

/* Aimed faults: at the moment at which a coordinator decides. */

static void cut_off(struct world *world, struct host *host)
{
	bool out = rng_chance(&world->rng, 80), in = !out || rng_chance(&world->rng, 80);
	world_trace(world, "h%u cut off%s", host->index, in && out ? "" : " one way");
	for (uint32_t i = 0; i < world->count; i++) {
		world->cut[host->index * world->count + i] |= out;
		world->cut[i * world->count + host->index] |= in;
	}
	world->arbiter_cut[host->index] |= rng_chance(&world->rng, 50);
}

void faults_cut(struct world *world, uint32_t a, uint32_t b)
{
	world_trace(world, "h%u and h%u cut apart", a, b);
	world->cut[a * world->count + b] = true;
	world->cut[b * world->count + a] = true;
}

static void part_from_one(struct world *world, struct host *host)
{
	struct host *other = any_host(world);
	faults_cut(world, host->index, other->index);
}

static void stand_still(struct world *world, struct host *host)
{
	faults_freeze(world, host, rng_range(&world->rng, 500, 9000) * NS_PER_MS);
}

static void lose_arbiter(struct world *world, struct host *host)
{
	world->arbiter_cut[host->index] = true;
}

static void one_link(struct world *world, struct host *host)
{
	static void (*const faults[])(struct world *, struct link *) = { reset_link, half_open_link,
									 lag_link };
	for (size_t i = world->link_count; i-- > 0;) {
		struct link *link = world->links[i];
		if (link->host[TO_COORDINATOR] == host->index && link_usable(world, link) &&
		    rng_chance(&world->rng, 40)) {
			faults[rng_range(&world->rng, 0, ARRAY_LEN(faults) - 1)](world, link);
			return;
		}
	}
}

/* What agents say takes so long that they have left, and may be elsewhere, when it arrives. */
static void late_mail(struct world *world, struct host *host)
{
	world_trace(world, "h%u gets its mail late", host->index);
	for (size_t i = 0; i < world->link_count; i++) {
		struct link *link = world->links[i];
		if (link->host[TO_COORDINATOR] != host->index || !link_usable(world, link))
			continue;
		link->lag_ns[TO_AGENT] = 0;
		link->lag_ns[TO_COORDINATOR] = rng_range(&world->rng, 4000, 9000) * NS_PER_MS;
		link->lag_until_ns = world->now_ns + rng_range(&world->rng, 2, 10) * NS_PER_S;
	}
}

/* The JOIN is under way for seconds, and its sender may give up the link at once. */
void faults_stray(struct world *world, struct link *link)
{
	if (world->now_ns >= world->faults_end_ns || !rng_chance(&world->rng, world->stray_percent))
		return;
	world_trace(world, "h%u JOIN goes astray", link->host[TO_AGENT]);
	world->result->faults++;
	link->lag_ns[TO_AGENT] = 0;
	link->lag_ns[TO_COORDINATOR] = rng_range(&world->rng, 1000, 9000) * NS_PER_MS;
	link->lag_until_ns = world->now_ns + 1;
	if (rng_chance(&world->rng, 70)) {
		uint64_t at_ns = world->now_ns + rng_range(&world->rng, 0, 2000) * NS_PER_MS;
		world_at(world, at_ns, HAPPEN_UNREACHABLE, link->host[TO_AGENT])->link = link->id;
	}
}

void faults_provoke(struct world *world, uint32_t host)
{
	if (!rng_chance(&world->rng, world->malice_percent) ||
	    world->now_ns >= world->faults_end_ns)
		return;
	static const uint64_t delays_ms[] = { 0, 1, 5, 50, 1000, 6000 };
	uint64_t longest_ns =
		delays_ms[rng_range(&world->rng, 0, ARRAY_LEN(delays_ms) - 1)] * NS_PER_MS;
	uint64_t at_ns = world->now_ns + rng_range(&world->rng, 0, longest_ns);
	world_at(world, at_ns, HAPPEN_PROVOKED, host);
	/* Leases last four seconds: faults that heal within ten are the most interesting. */
	world_at(world, at_ns + rng_range(&world->rng, 1000, 12000) * NS_PER_MS, HAPPEN_HEAL, host);
}

void faults_provoked(struct world *world, struct host *host)
{
	static void (*const faults[])(struct world *, struct host *) = {
		cut_off,  cut_off,  part_from_one, stand_still,	 one_link,
		one_link, one_link, crash_host,	   lose_arbiter, late_mail,
	};
	if (world->script) {
		scripts_strike(world, host);
		return;
	}
	if (world->now_ns >= world->faults_end_ns)
		return;
	world->result->faults++;
	faults[rng_range(&world->rng, 0, ARRAY_LEN(faults) - 1)](world, host);
}

void faults_heal(struct world *world)
{
	heal(world);
}

/* All of them. */

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
		partition,  partition,	   heal,  heal,	     freeze, slow_down,	   crash,
		user_stops, user_restarts, reset, half_open, lag,    arbiter_cuts, arbiter_lags,
	};
	if (world->now_ns >= world->faults_end_ns) {
		end_faults(world);
		return;
	}
	if (world->script) {
		scripts_begin(world);
		return;
	}
	world->result->faults++;
	if (world->noise && rng_chance(&world->rng, 95))
		user_comes_and_goes(world);
	else
		faults[rng_range(&world->rng, 0, ARRAY_LEN(faults) - 1)](world);
	uint64_t pause_ns =
		rng_range(&world->rng, 10, rng_chance(&world->rng, 30) ? 1000 : 20000) * NS_PER_MS;
	world_at(world, MIN(world->now_ns + pause_ns, world->faults_end_ns), HAPPEN_FAULT, 0);
}
