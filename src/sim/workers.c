/* Worker groups: they run, fail, finish, take their time to stop, and now and then cannot be
 * killed. */
#include "base/clock.h"
#include "sim/world.h"

static void plan(struct world *world, struct host *host, enum group_next next, uint64_t in_ns)
{
	host->group_next = next;
	world_arm(world, &host->group_timer, world->now_ns + in_ns);
}

/* The end of all processes, unless one of them will not die. */
static void plan_end(struct world *world, struct host *host, uint64_t in_ns)
{
	if (host->stuck)
		return;
	host->stuck = rng_chance(&world->rng, world->stuck_percent);
	if (host->stuck)
		plan(world, host, GROUP_NEXT_STUCK, rng_range(&world->rng, 5, 15) * NS_PER_S);
	else
		plan(world, host, GROUP_NEXT_GONE, in_ns);
}

static uint64_t stop_time_ns(struct world *world)
{
	bool slow = rng_chance(&world->rng, 10);
	return rng_range(&world->rng, NS_PER_MS, slow ? 4 * NS_PER_S : 100 * NS_PER_MS);
}

void workers_start(struct world *world, struct host *host, const struct agent_action *action)
{
	if (host->group_alive) {
		check_broken(world, "h%u starts workers while older ones are alive", host->index);
		return;
	}
	host->group_ballot = action->ballot;
	check_group_start(world, host, &action->formed);
	host->group_alive = !world->result->broken;
	if (rng_chance(&world->rng, world->failure_percent))
		plan(world, host, GROUP_NEXT_FAIL,
		     rng_range(&world->rng, NS_PER_MS, world->work_ns / 2));
	else
		plan(world, host, GROUP_NEXT_DONE,
		     rng_range(&world->rng, 100 * NS_PER_MS, world->work_ns));
}

/* A group that is already ending ends no later for it. */
void workers_stop(struct world *world, struct host *host)
{
	if (host->group_next != GROUP_NEXT_GONE)
		plan_end(world, host, stop_time_ns(world));
}

void workers_kill(struct world *world, struct host *host)
{
	plan_end(world, host, rng_range(&world->rng, 0, 40 * NS_PER_MS));
}

void workers_gone(struct world *world, struct host *host)
{
	if (host->group_alive)
		check_group_end(world, host);
	host->group_alive = false;
	host->group_next = GROUP_NEXT_NONE;
	world_arm(world, &host->group_timer, NS_NEVER);
}

void workers_happen(struct world *world, struct host *host)
{
	static const char *const names[] = { "", "done", "failed", "gone", "stuck" };
	struct round_record *round = check_round(world, host->group_ballot);
	struct agent_event event = { .type = AGENT_GROUP_GONE };
	enum group_next next = host->group_next;
	host->group_next = GROUP_NEXT_NONE;
	if (next == GROUP_NEXT_DONE) {
		event.type = AGENT_GROUP_DONE;
		round->done++;
		plan_end(world, host, rng_range(&world->rng, 0, 2 * NS_PER_S));
	} else if (next == GROUP_NEXT_FAIL) {
		event.type = AGENT_GROUP_FAILED;
		event.cause = (struct cause){ .status = { EXIT_CODE, 1, false }, .pid = 1 };
		event.died_ns = world_local_ns(world, host);
		round->failed++;
		plan_end(world, host, stop_time_ns(world));
	} else if (next == GROUP_NEXT_STUCK) {
		event.type = AGENT_GROUP_STUCK;
		event.died_ns = world_local_ns(world, host);
	} else {
		workers_gone(world, host);
		agent_set_store(&host->agent, host->agent.config.node.name,
				(uint16_t)rng_range(&world->rng, 1024, 65535));
	}
	world_trace(world, "h%u group %s", host->index, names[next]);
	host_agent_step(world, host, &event);
}
