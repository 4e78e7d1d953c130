/* 14. What an agent believes of its coordinator's clocks holds, but for what the clocks drifted
 * apart since: the worlds' drift more than those of real hosts. */
#include <inttypes.h>

#include "base/clock.h"
#include "sim/world.h"

#define DRIFT_PPM 4000 /* of two hosts, at most */

/* The wall clock of a host is off by as much as its monotonic one: any distance will do. */
int64_t clocks_wall_shift(const struct host *host)
{
	return host->clock_offset_ns / 7 + 1;
}

static bool is_within(int64_t got, int64_t expected, uint64_t error_ns)
{
	uint64_t apart = got > expected ? (uint64_t)got - (uint64_t)expected
					: (uint64_t)expected - (uint64_t)got;
	return apart <= error_ns;
}

void clocks_check(struct world *world, const struct host *host)
{
	const struct agent *agent = &host->node.agent;
	const struct link *link = net_link(world, host->node.link);
	if (!agent->clock.known || !agent->linked || !link)
		return;
	const struct host *peer = &world->hosts[link->host[TO_COORDINATOR]];
	uint64_t now_ns = world_local_ns(world, host);
	uint64_t since_ns = now_ns - agent->clock.when_ns + 2 * agent->clock.half_ns;
	uint64_t error_ns = clock_offset_error_ns(&agent->clock, now_ns) +
			    since_ns / (1000000 / DRIFT_PPM) + NS_PER_MS;
	int64_t shift_ns = (int64_t)(world_local_ns(world, peer) - now_ns);
	struct wall_offset wall = agent_wall_offset(agent, now_ns);
	if (!is_within(agent->clock.shift_ns, shift_ns, error_ns))
		check_broken(world, "h%u takes h%u's clock to be %" PRId64 " ns off, not %" PRId64,
			     host->index, peer->index, agent->clock.shift_ns, shift_ns);
	if (wall.error_ns &&
	    !is_within(wall.offset_ns, shift_ns + clocks_wall_shift(peer) - clocks_wall_shift(host),
		       error_ns))
		check_broken(world, "h%u takes h%u's wall clock to be %" PRId64 " ns off",
			     host->index, peer->index, wall.offset_ns);
}
