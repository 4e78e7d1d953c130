/* Worlds that follow a script. Chance alone rarely brings about what some rules are for.
 *
 * WIDOW   The coordinator's process is killed while a round runs that can do without it. The others
 *         go on.
 * TORN    Of two nodes, the link between them is torn while the coordinator makes the end of the
 *         job known, and its process is killed as soon as it has closed the job.
 * STRAY   A JOIN arrives after its sender has made another link to the same coordinator, has
 *         started workers there, and all others are done.
 * STALE   A JOIN arrives when its sender has long been in a round of another coordinator.
 * LATE    The same with PINGs, which arrive one by one, and with a third agent that comes then.
 * SHRINK  A coordinator loses one node of three, and is cut off from the other at the moment at
 *         which it forms the round of two, before anyone knows of it.
 * LOST    The coordinator is cut off for some seconds at the moment at which it forms a round,
 *         before any other member knows of it. All agents are there again: none may give up.
 * OUTCAST Of three nodes, one is lost so often that it becomes a spare of last resort, and one is
 *         cut off. The coordinator goes on alone, is soon done, and is cut off too. The other two
 *         can reach each other.
 * FENCE   With leases, the two members of a round lose the arbiter, and lose each other when the
 *         lease is about to end. A third agent comes, which knows nothing of the round.
 * THAW    A member's host stands still when the round's FORMED is on its way to it, for longer than
 *         its lease. The others go on without it; when it goes on, that FORMED is in its mail.
 * REBORN  The only coordinator, which has no workers, is killed and started again. The second time
 *         it may have workers and forms a round of itself. A spare comes first, which names a
 *         higher ballot and is then cut off, and then the member of the last round.
 * RIVALS  The coordinator's host stands still. The next one forms a round with a higher ballot and
 *         is cut off from all before another hears of it. The first one goes on without it.
 * RELIC   With leases, the two members of a round lose each other, and the one that does not
 *         coordinate has a failure that is final. The other one goes on, and loses the arbiter. The
 *         first is chosen, rules, and loses the arbiter before it can have the end recorded; then
 *         the other comes, with its later round.
 */
#include "base/clock.h"
#include "sim/world.h"

static void choose_nodes(struct world *world, uint32_t count, uint32_t least)
{
	world->mode = SIM_MODE_ENDPOINTS;
	world->endpoints = MIN(count, 3u);
	world->count = world->max_nodes = count;
	world->min_nodes = least;
}

void scripts_choose(struct world *world)
{
	struct rng *rng = &world->rng;
	world->script = (enum sim_script)rng_range(rng, SCRIPT_WIDOW, SCRIPT_COUNT - 1);
	world->gentle = world->noise = false;
	world->failure_percent = world->stuck_percent = 0;
	world->malice_percent = world->stray_percent = 0;
	if (world->script == SCRIPT_TORN) {
		choose_nodes(world, 2, 1);
	} else if (world->script == SCRIPT_STRAY) {
		choose_nodes(world, 2, 2);
		world->mode = SIM_MODE_ENDPOINT;
		world->endpoints = 1;
	} else if (world->script == SCRIPT_STALE) {
		choose_nodes(world, 3, 2);
		world->last_call_ns = 0;
		world->endpoints = 2;
	} else if (world->script == SCRIPT_LATE) {
		choose_nodes(world, 5, 3);
		world->last_call_ns = 0;
		world->endpoints = 2;
	} else if (world->script == SCRIPT_FENCE) {
		choose_nodes(world, 3, 1);
		world->mode = SIM_MODE_ARBITER;
		world->max_nodes = 2;
		world->endpoints = 1;
		world->last_call_ns = 0;
		world->work_ns = 300 * NS_PER_S;
	} else if (world->script == SCRIPT_REBORN) {
		choose_nodes(world, 3, 1);
		world->mode = SIM_MODE_ENDPOINT;
		world->max_nodes = world->endpoints = 1;
		world->work_ns = 300 * NS_PER_S;
	} else if (world->script == SCRIPT_RELIC) {
		choose_nodes(world, 2, 1);
		world->mode = SIM_MODE_ARBITER;
		world->endpoints = 1;
		world->max_restarts = 0;
		world->work_ns = 300 * NS_PER_S;
	} else if (world->script == SCRIPT_RIVALS) {
		choose_nodes(world, 3, 1);
		world->endpoints = 2;
		world->work_ns = 400 * NS_PER_S;
	} else if (world->script == SCRIPT_LOST || world->script == SCRIPT_THAW) {
		choose_nodes(world, (uint32_t)rng_range(rng, 3, 5), 2);
	} else if (world->script == SCRIPT_SHRINK || world->script == SCRIPT_OUTCAST) {
		choose_nodes(world, 3, 1);
		world->work_ns = 300 * NS_PER_S;
		world->pace = COORDINATOR_CONFIG_INIT.membership;
	} else if (world->mode != SIM_MODE_ARBITER || world->count < 3) {
		uint32_t count = (uint32_t)rng_range(rng, 2, 5);
		choose_nodes(world, count, (uint32_t)rng_range(rng, 1, count - 1));
	} else {
		world->max_nodes = world->count;
		world->min_nodes = MIN(world->min_nodes, world->count - 1);
	}
}

static void strike_at(struct world *world, const struct host *host, uint64_t at_ns)
{
	world_at(world, at_ns, HAPPEN_PROVOKED, host->index);
}

/* The parties of STALE and LATE: two that may coordinate, one that changes sides, their friends. */
enum { FIRST, SECOND, TURNCOAT, FRIEND_OF_SECOND, FRIEND_OF_FIRST };

void scripts_start(struct world *world)
{
	if (world->script == SCRIPT_REBORN)
		world->hosts[0].excluded = true;
	if (world->script != SCRIPT_STALE && world->script != SCRIPT_LATE)
		return;
	faults_cut(world, FIRST, SECOND);
	if (world->script == SCRIPT_STALE)
		return;
	faults_cut(world, FIRST, FRIEND_OF_SECOND);
	faults_cut(world, FRIEND_OF_FIRST, SECOND);
	faults_cut(world, FRIEND_OF_FIRST, FRIEND_OF_SECOND);
	faults_cut(world, FRIEND_OF_FIRST, FIRST);
}

static void joins_stray(struct world *world, struct link *link)
{
	world->result->faults++;
	world_trace(world, "h%u JOIN goes astray", link->host[TO_AGENT]);
	link->lag_ns[TO_COORDINATOR] = rng_range(&world->rng, 2000, 4500) * NS_PER_MS;
	link->lag_until_ns = world->now_ns + 1;
	world_at(world, world->now_ns + rng_range(&world->rng, 0, 50) * NS_PER_MS, HAPPEN_BROKEN,
		 link->host[TO_AGENT])
		->link = link->id;
}

static void joins_first(struct world *world, struct link *link)
{
	world->result->faults++;
	faults_cut(world, FIRST, TURNCOAT);
	if (world->script == SCRIPT_STALE)
		return;
	link->spacing_ns = 1; /* its JOIN passes, and what follows takes longer and longer */
	link->arrived_ns = world->now_ns + NS_PER_MS;
}

void scripts_joins(struct world *world, struct link *link)
{
	bool first = world->result->faults == 0;
	if (!world->script)
		faults_stray(world, link);
	else if (world->script == SCRIPT_STRAY && first)
		joins_stray(world, link);
	else if ((world->script == SCRIPT_STALE || world->script == SCRIPT_LATE) && first &&
		 link->host[TO_AGENT] == TURNCOAT && link->host[TO_COORDINATOR] == FIRST)
		joins_first(world, link);
}

/* In STRAY the coordinator's own workers are soon done, the others are not. In OUTCAST those of the
 * round of one are. */
void scripts_plan(struct world *world, struct host *host)
{
	if (world->script != SCRIPT_STRAY && world->script != SCRIPT_OUTCAST)
		return;
	bool soon = world->script == SCRIPT_STRAY ? host->node.coordinator != NULL
						  : host->node.agent.formed.nodes == 1;
	for (size_t i = 0; i < SIM_NPROC_MAX; i++)
		host->workers[i].ends_ns =
			world->now_ns + (soon ? rng_range(&world->rng, 200, 1500) * NS_PER_MS
					      : rng_range(&world->rng, 20, 40) * NS_PER_S);
}

static struct host *any_other(struct world *world, const struct host *host)
{
	uint32_t step = (uint32_t)rng_range(&world->rng, 1, world->count - 1);
	return &world->hosts[(host->index + step) % world->count];
}

/* All members know the round that runs, and it needs this many nodes to be of interest. */
static struct host *coordinator_of(struct world *world, uint32_t nodes)
{
	for (uint32_t i = 0; i < world->count; i++) {
		const struct coordinator *c = world->hosts[i].node.coordinator;
		if (c && c->state == COORDINATOR_RUNNING && c->coordinator_in_heard &&
		    c->roster.heard.nodes >= nodes &&
		    ballot_eq(c->roster.base.ballot, c->roster.heard.ballot))
			return &world->hosts[i];
	}
	return NULL;
}

static void kill_process(struct world *world, struct host *host)
{
	if (!host->process)
		return;
	world->amnesia++;
	world->result->faults++;
	host_end_process(world, host, false);
	world->faults_end_ns = world->now_ns;
}

static void reset_link_of(struct world *world, uint32_t agent)
{
	for (size_t i = 0; i < world->link_count; i++) {
		struct link *link = world->links[i];
		if (link->host[TO_AGENT] == agent && link->open[0] && link->open[1])
			net_reset(world, link);
	}
}

void scripts_begin(struct world *world)
{
	uint32_t nodes = world->script == SCRIPT_WIDOW && world->mode != SIM_MODE_ARBITER ? 2 : 3;
	struct host *host = coordinator_of(world, nodes);
	bool by_itself = world->script >= SCRIPT_OUTCAST && world->script != SCRIPT_RIVALS;
	if (by_itself || world->script == SCRIPT_TORN)
		return;
	if (!host) {
		uint64_t in_ns = rng_range(&world->rng, 10, 3000) * NS_PER_MS;
		world_at(world, world->now_ns + in_ns, HAPPEN_FAULT, 0);
	} else if (world->script == SCRIPT_WIDOW) {
		kill_process(world, host);
	} else if (world->script == SCRIPT_LOST) {
		world->result->faults++;
		reset_link_of(world, any_other(world, host)->index);
	} else if (world->script == SCRIPT_RIVALS) {
		world->result->faults++;
		faults_freeze(world, host, rng_range(&world->rng, 25, 40) * NS_PER_S);
	} else {
		world->result->faults++;
		faults_cut(world, host->index, any_other(world, host)->index);
		world_at(world, world->now_ns + 60 * NS_PER_S, HAPPEN_HEAL, 0);
	}
}

static bool was_in_last_round(const struct host *host)
{
	return memory_was_in(&host->node.agent.memory, host->node.agent.memory.heard.ballot);
}

static void part_from_spares(struct world *world, const struct host *host)
{
	for (uint32_t i = 0; i < world->count; i++)
		if (i != host->index && !was_in_last_round(&world->hosts[i]))
			faults_cut(world, host->index, i);
	world_at(world, world->now_ns + 20 * NS_PER_S, HAPPEN_HEAL, 0);
}

void scripts_decided(struct world *world, struct host *host)
{
	const struct coordinator *c = host->node.coordinator;
	if (!world->script) {
		faults_provoke(world, host->index);
		return;
	}
	if (!c || world->now_ns >= world->faults_end_ns)
		return;
	if (world->script == SCRIPT_SHRINK && world->result->faults && c->own &&
	    c->roster.heard.nodes == 2)
		strike_at(world, host, world->now_ns);
	if (world->script == SCRIPT_LOST && world->result->faults == 1 &&
	    c->state == COORDINATOR_RUNNING)
		strike_at(world, host, world->now_ns);
	if (world->script == SCRIPT_OUTCAST && c->own &&
	    (c->state == COORDINATOR_CLOSING ||
	     (c->state == COORDINATOR_RUNNING && c->roster.heard.nodes == 3)))
		strike_at(world, host,
			  world->now_ns + (c->state == COORDINATOR_RUNNING) * 500 * NS_PER_MS);
	if (world->script == SCRIPT_FENCE && world->result->faults == 0 &&
	    c->state == COORDINATOR_RUNNING && c->roster.heard.nodes == 2)
		strike_at(world, host, world->now_ns + 500 * NS_PER_MS);
	if (world->script == SCRIPT_THAW && world->result->faults == 0 && c->own &&
	    c->state == COORDINATOR_RUNNING)
		strike_at(world, host, world->now_ns);
	if (world->script == SCRIPT_REBORN && world->result->faults < 2 &&
	    c->state == COORDINATOR_RUNNING)
		strike_at(world, host,
			  world->now_ns + rng_range(&world->rng, 10, 9000) * NS_PER_MS);
	if (world->script == SCRIPT_REBORN && world->result->faults == 2 &&
	    host->node.coordinators > 1)
		strike_at(world, host, world->now_ns);
	if (world->script == SCRIPT_RIVALS && world->result->faults == 1 && c->own &&
	    c->state == COORDINATOR_RUNNING)
		strike_at(world, host, world->now_ns);
	if (world->script == SCRIPT_RELIC && c->own && c->state == COORDINATOR_RUNNING &&
	    world->result->faults + c->roster.heard.nodes == 2)
		strike_at(world, host, world->now_ns + 500 * NS_PER_MS);
	if (world->script == SCRIPT_TORN &&
	    (c->state == COORDINATOR_CLOSING || c->state == COORDINATOR_CLOSED))
		strike_at(world, host, world->now_ns);
	if ((world->script == SCRIPT_STALE || world->script == SCRIPT_LATE) &&
	    host->index == SECOND && c->state == COORDINATOR_RUNNING && c->own)
		strike_at(world, host, world->now_ns + rng_range(&world->rng, 10, 900) * NS_PER_MS);
}

/* The coordinator hears of it at once, the others a moment later: what it sent them is lost. */
static void tear_links(struct world *world, const struct host *host)
{
	for (size_t i = 0; i < world->link_count; i++) {
		struct link *link = world->links[i];
		if (link->host[TO_COORDINATOR] != host->index || !link->open[0] || !link->open[1])
			continue;
		world->result->faults++;
		world_at(world, world->now_ns + 20 * NS_PER_US, HAPPEN_BROKEN, link->host[TO_AGENT])
			->link = link->id;
		net_break(world, link, TO_COORDINATOR);
	}
}

static void cut_from_all(struct world *world, const struct host *host)
{
	for (uint32_t i = 0; i < world->count; i++)
		if (i != host->index)
			faults_cut(world, host->index, i);
}

static void strike_outcast(struct world *world, const struct host *host)
{
	uint32_t outcast = (host->index + 1) % world->count;
	uint32_t other = (host->index + 2) % world->count;
	if (host->node.coordinator->state == COORDINATOR_CLOSING) {
		cut_from_all(world, host);
		world_at(world, world->now_ns + 60 * NS_PER_S, HAPPEN_HEAL, 0);
		return;
	}
	reset_link_of(world, outcast);
	if (++world->result->faults == ROSTER_LOSSES_MAX)
		faults_cut(world, host->index, other);
}

static void strike_fence(struct world *world, struct host *host)
{
	if (world->result->faults++ > 0) {
		cut_from_all(world, host);
		world_at(world, world->now_ns + 30 * NS_PER_S, HAPPEN_HEAL, 0);
		return;
	}
	for (uint32_t i = 0; i < world->count; i++) {
		struct host *other = &world->hosts[i];
		world->arbiter_cut[i] = other->group_alive;
		if (other->group_alive)
			continue;
		host_end_process(world, other, false);
		world_at(world, world->now_ns + arbiter_ttl_ns(world) - 2 * NS_PER_S, HAPPEN_BOOT,
			 i);
	}
	strike_at(world, host,
		  world->now_ns + arbiter_ttl_ns(world) -
			  rng_range(&world->rng, 1000, 2000) * NS_PER_MS);
}

static void strike_reborn(struct world *world, struct host *host)
{
	if (world->result->faults > 2)
		return;
	if (world->result->faults == 2) {
		world->result->faults++;
		faults_heal(world);
		part_from_spares(world, host);
		return;
	}
	for (uint32_t i = 0; world->result->faults == 1 && i < world->count; i++)
		if (i != host->index && was_in_last_round(&world->hosts[i]))
			strike_at(world, &world->hosts[i], world->now_ns + 50 * NS_PER_MS);
	uint64_t end_ns = world->faults_end_ns;
	host->excluded = world->result->faults == 0;
	kill_process(world, host);
	world->faults_end_ns = end_ns;
	world_at(world, world->now_ns + rng_range(&world->rng, 100, 9000) * NS_PER_MS, HAPPEN_BOOT,
		 host->index);
}

static void fail_workers(struct world *world, struct host *host)
{
	for (size_t i = 0; i < SIM_NPROC_MAX; i++) {
		host->workers[i].ends_ns = MIN(host->workers[i].ends_ns, world->now_ns);
		host->workers[i].code = 1;
	}
	workers_happen(world, host);
}

static void strike_relic(struct world *world, struct host *host)
{
	struct host *other = &world->hosts[1 - host->index];
	switch (world->result->faults) {
	case 0:
		world->result->faults++;
		faults_cut(world, host->index, other->index);
		world_at(world, world->faults_end_ns, HAPPEN_HEAL, 0);
		fail_workers(world, other);
		break;
	case 1:
		world->result->faults++;
		world->arbiter_cut[host->index] = true;
		strike_at(world, host, world->now_ns + NS_PER_S);
		break;
	case 2: /* until the other one is chosen */
		world->result->faults += other->node.coordinator != NULL;
		world->arbiter_cut[other->index] = other->node.coordinator != NULL;
		strike_at(world, host,
			  world->now_ns + (other->node.coordinator ? 7500 : 500) * NS_PER_MS);
		break;
	case 3:
		world->result->faults++;
		faults_heal(world);
		world->arbiter_cut[other->index] = true;
		world->faults_end_ns = world->now_ns + 3 * NS_PER_S;
		world_at(world, world->faults_end_ns, HAPPEN_HEAL, 0);
		break;
	}
}

void scripts_strike(struct world *world, struct host *host)
{
	const struct coordinator *c = host->node.coordinator;
	if (world->script == SCRIPT_REBORN && host->process && host->index > 0) {
		faults_cut(world, 0, host->index); /* it knows that the coordinator has ended */
		world_at(world, world->now_ns + 20 * NS_PER_S, HAPPEN_HEAL, 0);
		return;
	}
	if (!host->process || !c)
		return;
	if (world->script == SCRIPT_OUTCAST) {
		strike_outcast(world, host);
	} else if (world->script == SCRIPT_FENCE) {
		strike_fence(world, host);
	} else if (world->script == SCRIPT_THAW) {
		world->result->faults++;
		faults_freeze(world, any_other(world, host),
			      rng_range(&world->rng, 5000, 20000) * NS_PER_MS);
	} else if (world->script == SCRIPT_REBORN) {
		strike_reborn(world, host);
	} else if (world->script == SCRIPT_RELIC) {
		strike_relic(world, host);
	} else if (world->script == SCRIPT_RIVALS) {
		world->result->faults++;
		cut_from_all(world, host);
		world->faults_end_ns = world->now_ns + 60 * NS_PER_S;
		world_at(world, world->faults_end_ns, HAPPEN_HEAL, 0);
	} else if (world->script == SCRIPT_STALE) {
		faults_heal(world);
	} else if (world->script == SCRIPT_LATE) {
		world->cut[FIRST * world->count + FRIEND_OF_FIRST] = false;
		world->cut[FRIEND_OF_FIRST * world->count + FIRST] = false;
		world_at(world, world->now_ns + 20 * NS_PER_S, HAPPEN_HEAL, 0);
	} else if (world->script == SCRIPT_SHRINK) {
		cut_from_all(world, host);
	} else if (world->script == SCRIPT_LOST) {
		world->result->faults++;
		cut_from_all(world, host);
		world->faults_end_ns = world->now_ns + 6 * NS_PER_S;
		world_at(world, world->faults_end_ns, HAPPEN_HEAL, 0);
	} else if (c->state == COORDINATOR_CLOSED) {
		kill_process(world, host);
	} else {
		tear_links(world, host);
	}
}
