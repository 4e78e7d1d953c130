/* The arbiter: an election service with leases. It can be cut off like any host, and its messages
 * can be late. */
#include "base/clock.h"
#include "core/rounds/fence.h"
#include "sim/world.h"

uint64_t arbiter_ttl_ns(const struct world *world)
{
	if (!world->fenced)
		return ARBITER_TTL_NS;
	return fence_lease_s((host_death_ns(world, 0) + NS_PER_S - 1) / NS_PER_S) * NS_PER_S;
}

static bool arbiter_sees(const struct world *world, const struct host *host)
{
	return host->process && !world_frozen(world, host) && !host->ended &&
	       (!world->arbiter_cut || !world->arbiter_cut[host->index]);
}

static void announce(struct world *world, struct host *host)
{
	uint64_t at_ns = world->now_ns + host->arbiter_lag_ns + net_latency_ns(world, host);
	struct happening_event *event = world_at(world, at_ns, HAPPEN_LEADER, host->index);
	event->index = world->arbiter_leader;
	event->epoch = world->arbiter_epoch;
	event->past = world->arbiter_past;
	if (world->fenced && host->index == world->arbiter_leader)
		event->until_ns = world_local_ns(world, host) + arbiter_ttl_ns(world);
}

void arbiter_elect(struct world *world)
{
	struct host *leader = &world->hosts[world->arbiter_leader];
	bool seen = world->arbiter_epoch && arbiter_sees(world, leader) &&
		    leader->generation == world->arbiter_generation;
	if (seen)
		world->arbiter_seen_ns = world->now_ns;
	if (!seen && (!world->arbiter_epoch ||
		      world->now_ns > world->arbiter_seen_ns + arbiter_ttl_ns(world))) {
		uint32_t from = world->options.faults
					? (uint32_t)rng_range(&world->rng, 0, world->count - 1)
					: 0;
		for (uint32_t k = 0; k < world->count; k++) {
			uint32_t i = (from + k) % world->count;
			if (!arbiter_sees(world, &world->hosts[i]))
				continue;
			world->arbiter_leader = i;
			world->arbiter_generation = world->hosts[i].generation;
			world->arbiter_epoch++;
			world->arbiter_seen_ns = world->now_ns;
			world_trace(world, "arbiter elects h%u, epoch %lu", i,
				    world->arbiter_epoch);
			break;
		}
	}
	for (uint32_t i = 0; i < world->count; i++)
		if (world->arbiter_epoch && arbiter_sees(world, &world->hosts[i]) &&
		    (world->hosts[i].node.search.term.epoch != world->arbiter_epoch ||
		     (world->fenced && i == world->arbiter_leader)) &&
		    (i != world->arbiter_leader ||
		     world->hosts[i].generation == world->arbiter_generation))
			announce(world, &world->hosts[i]);
}

/* A message of the arbiter: a leader and its epoch. The shell does not judge what is late, but
 * remembers only the newest leader. */
void arbiter_heard(struct world *world, struct host *host, const struct happening_event *event)
{
	if (event->epoch > host->node.search.term.epoch)
		host->leader = event->index;
	host_step(world, host,
		  &(struct node_event){ .type = NODE_EV_TERM,
					.term = { event->epoch, event->index == host->index,
						  event->until_ns, event->past } });
}

/* Only the leader may; a request that does not arrive is lost, and so may the answer be. */
void arbiter_record(struct world *world, struct host *host, const struct recorded_end *end)
{
	bool leads = world->arbiter_leader == host->index && world->arbiter_epoch == end->epoch &&
		     world->arbiter_generation == host->generation;
	if (!leads || !arbiter_sees(world, host))
		return;
	world->arbiter_past = *end;
	world_trace(world, "arbiter records the end of epoch %lu", end->epoch);
	uint64_t at_ns = world->now_ns + host->arbiter_lag_ns + net_latency_ns(world, host);
	world_at(world, at_ns, HAPPEN_RECORDED, host->index)->epoch = end->epoch;
}
