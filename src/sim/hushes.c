/* Workers that fall silent, and hosts that tell it as the real ones do (run/guard.c). In half of
 * the worlds all hosts' workers fall silent, each host's at a time of its own; in the others those
 * of one host never do.
 *
 * 16. A host is told to LOOK only if all workers of its round have been silent for the time-out, or
 *     are done. Long after the last fault, one is told to, soon after that is true.
 *
 * Only with an option, and chance comes from a stream of its own: other worlds stay as they are. */
#include "base/clock.h"
#include "sim/world.h"

#define TIMEOUT_NS (20 * NS_PER_S)
#define HUSH_MAX_NS (60 * NS_PER_S)	   /* after the start of the workers */
#define SOON_NS (30 * NS_PER_S)		   /* however slow the network, all mail has come */
#define WORK_NS (200 * (uint64_t)NS_PER_S) /* workers live long enough to fall silent */

void hushes_choose(struct world *world)
{
	struct rng *rng = &world->hush_rng;
	world->hushes = world->options.silence && !world->noise;
	world->loud_host = UINT32_MAX;
	if (!world->hushes)
		return;
	rng->state = world->options.seed * 0xd6e8feb86659fd93u + 17;
	world->work_ns = MAX(world->work_ns, WORK_NS);
	if (rng_chance(rng, 50))
		world->loud_host = (uint32_t)rng_range(rng, 0, world->count - 1);
}

void hushes_start(struct world *world)
{
	for (uint32_t i = 0; world->hushes && i < world->count; i++)
		world->hosts[i].hush_timer = (struct happening_event){ .what = HAPPEN_HUSH,
								       .embedded = true,
								       .host = i };
}

void hushes_workers_start(struct world *world, struct host *host)
{
	if (!world->hushes || !host->group_alive)
		return;
	bool loud = host->index == world->loud_host;
	uint64_t after_ns = rng_range(&world->hush_rng, NS_PER_S, HUSH_MAX_NS);
	host->hush_ns = loud ? NS_NEVER : world->now_ns + after_ns;
	host->hush_told = false;
	world_arm(world, &host->hush_timer, ns_add(host->hush_ns, TIMEOUT_NS));
}

void hushes_workers_gone(struct world *world, struct host *host)
{
	if (world->hushes)
		world_arm(world, &host->hush_timer, NS_NEVER);
}

static bool has_workers(const struct host *host, const struct round_record *round)
{
	return host->group_alive && host->group.state == GROUP_ACTIVE && !host->group.done &&
	       ballot_eq(host->group_ballot, round->ballot);
}

/* When all workers of the round had been silent for the time-out; NS_NEVER: some go on. */
static uint64_t all_silent_ns(const struct world *world, const struct round_record *round)
{
	uint64_t latest_ns = 0;
	for (uint32_t rank = 0; rank < round->nodes; rank++) {
		const struct host *host = &world->hosts[round->seats[rank].host];
		if (has_workers(host, round))
			latest_ns = MAX(latest_ns, ns_add(host->hush_ns, TIMEOUT_NS));
	}
	return latest_ns;
}

/* Nothing keeps the coordinator of the round from hearing of it. */
static bool is_calm(const struct world *world, const struct round_record *round)
{
	if (world->options.faults && world->now_ns < world->faults_end_ns + SOON_NS)
		return false;
	for (uint32_t i = 0; i < world->count; i++)
		if (world->hosts[i].old || world_frozen(world, &world->hosts[i]))
			return false;
	for (uint32_t rank = 0; rank < round->nodes; rank++)
		if (!round->seats[rank].started)
			return false;
	return !world->script && round->failed == 0;
}

static void check_looked(struct world *world, const struct host *host)
{
	const struct round_record *round = check_round(world, host->group_ballot);
	uint64_t since_ns = all_silent_ns(world, round);
	if (is_calm(world, round) && world->now_ns > ns_add(since_ns, SOON_NS))
		check_broken(world, "all workers of h%u's round are silent, and nobody looks why",
			     host->index);
}

/* The time-out is over; or it is time to see whether somebody looks. */
void hushes_happen(struct world *world, struct host *host)
{
	if (!host->group_alive || host->group.state != GROUP_ACTIVE)
		return;
	world_arm(world, &host->hush_timer, world->now_ns + SOON_NS);
	if (world_frozen(world, host))
		return;
	if (host->hush_told) {
		check_looked(world, host);
		return;
	}
	host->hush_told = true;
	host_tell(world, host,
		  &(struct agent_event){ .type = AGENT_SIGNS,
					 .signs = { .signs = { .silence = HANG_SILENT } } });
}

void hushes_look(struct world *world, struct host *host)
{
	const struct round_record *round = check_round(world, host->group_ballot);
	world_trace(world, "h%u looks why its round hangs", host->index);
	world->result->looks++;
	if (!world->hushes || world->now_ns < all_silent_ns(world, round))
		check_broken(world, "h%u is to look, although workers go on", host->index);
	else if (host->group.state == GROUP_ACTIVE)
		workers_condemn(world, host);
}
