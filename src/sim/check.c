/* The invariants.
 *
 * 1. Workers of one ballot only, over all agents with a live link.
 * 2. When a round forms, older workers are dead everywhere: on hosts that are cut off too. Excepted
 *    are frozen hosts, and for a moment those whose connection something on the way has torn down.
 * 3. The ranks of a round are exactly 0..n-1, MIN <= nodes <= MAX, and each ballot is formed once.
 * 4. All members agree on master address, world size and ballot, and start only what was formed.
 * 5. The budget is never exceeded, charged at most once per ballot, and only for worker failures.
 * 6. Rounds for changes of members are bounded in time.
 * 7. Once faults stop, the job ends in bounded time; if nobody was lost, not by a time-out.
 * 8. All who hear the end of the job hear the same, and success only when a whole round was done.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sim/world.h"

#define EXCUSE_NS (2 * NS_PER_S) /* after a thaw or a torn connection */

void check_broken(struct world *world, const char *fmt, ...)
{
	if (world->result->broken)
		return;
	va_list args;
	va_start(args, fmt);
	vsnprintf(world->result->why, sizeof(world->result->why), fmt, args);
	va_end(args);
	world->result->broken = true;
	world_trace(world, "BROKEN: %s", world->result->why);
}

struct round_record *check_round(struct world *world, struct ballot ballot)
{
	for (size_t i = world->round_count; i-- > 0;)
		if (ballot_eq(world->rounds[i].ballot, ballot))
			return &world->rounds[i];
	return NULL;
}

static bool excused(const struct world *world, const struct host *host)
{
	return world_frozen(world, host) ||
	       (host->thawed_ns && world->now_ns < host->thawed_ns + EXCUSE_NS) ||
	       (host->reset_ns && world->now_ns < host->reset_ns + EXCUSE_NS);
}

static void check_ranks(struct world *world, const struct coordinator *c, uint32_t nodes)
{
	const struct roster *roster = &c->roster;
	AUTO_FREE bool *taken = NEW_ARRAY(bool, nodes + 1);
	memset(taken, 0, nodes + 1);
	uint64_t workers = 0, covered = 0;
	for (size_t i = 0; i < roster->count; i++) {
		const struct member *member = roster->members[i];
		if (!member->in_round)
			continue;
		if (member->group_rank >= nodes || taken[member->group_rank]) {
			check_broken(world, "group rank %u twice or not below %u", member->group_rank, nodes);
			return;
		}
		taken[member->group_rank] = true;
		workers += member->nproc;
		covered += member->rank_base + member->nproc <= c->world_size;
		covered -= member->group_rank == 0 && member->rank_base != 0;
	}
	if (workers != c->world_size || covered != nodes)
		check_broken(world, "ranks of %u nodes do not cover %u workers", nodes, c->world_size);
}

/* Agents that have never heard of a round can begin one of their own where enough of them are: more
 * than half of MAX once more, or of those that lost their memory. That is another job. */
static bool may_be_another_job(const struct world *world, struct ballot ballot)
{
	return ballot.round == 1 && world->mode != SIM_MODE_ENDPOINT &&
	       (world->amnesia > 0 || world->count >= 2 * (world->max_nodes / 2 + 1));
}

static void check_no_older_workers(struct world *world, struct ballot ballot)
{
	if (may_be_another_job(world, ballot) && world->round_count > 0) {
		world->over = true;
		return;
	}
	for (uint32_t i = 0; i < world->count; i++) {
		const struct host *host = &world->hosts[i];
		if (host->group_alive && !ballot_eq(host->group_ballot, ballot) && !excused(world, host))
			check_broken(world, "h%u has workers of %lu.%lu when %lu.%lu forms", i,
				     host->group_ballot.epoch, host->group_ballot.round, ballot.epoch,
				     ballot.round);
	}
}

static void check_budget(struct world *world, const struct round_record *round)
{
	uint32_t before = 0, failed_rounds = 0;
	for (size_t i = 0; i < world->round_count; i++) {
		before = MAX(before, world->rounds[i].restarts);
		failed_rounds += world->rounds[i].failed > 0;
	}
	if (round->restarts > world->max_restarts)
		check_broken(world, "%u restarts with a budget of %u", round->restarts,
			     world->max_restarts);
	if (round->restarts > before + 1 || round->restarts > failed_rounds)
		check_broken(world, "%u restarts charged after %u failed rounds, %u before",
			     round->restarts, failed_rounds, before);
	world->result->restarts = MAX(before, round->restarts);
}

static void check_pace(struct world *world, struct host *host, const struct round_record *round)
{
	const struct pace *pace = &host->coordinator->config.membership;
	if (world->round_count && round->restarts == world->rounds[world->round_count - 1].restarts)
		host->term_rounds++;
	uint64_t allowed = pace->burst + (world->now_ns - host->term_ns) / pace->interval_ns + 2;
	if (host->term_rounds > allowed)
		check_broken(world, "%u rounds for members in %llu s", host->term_rounds,
			     (unsigned long long)((world->now_ns - host->term_ns) / NS_PER_S));
}

void check_formed(struct world *world, struct host *host)
{
	const struct coordinator *c = host->coordinator;
	struct round_record round = {
		.ballot = c->roster.heard.ballot,
		.nodes = c->roster.heard.nodes,
		.world_size = c->world_size,
		.restarts = c->restarts,
		.master_port = c->master_port,
	};
	memcpy(round.master_host, c->master_host, sizeof(round.master_host));
	world_trace(world, "c%u forms %lu.%lu with %u nodes, restart %u, base %lu.%lu", host->index,
		    round.ballot.epoch, round.ballot.round, round.nodes, round.restarts,
		    c->roster.base.ballot.epoch, c->roster.base.ballot.round);
	if (round.nodes < world->min_nodes || round.nodes > world->max_nodes)
		check_broken(world, "a round of %u nodes, --nnodes=%u:%u", round.nodes, world->min_nodes,
			     world->max_nodes);
	if (check_round(world, round.ballot))
		check_broken(world, "%lu.%lu formed twice", round.ballot.epoch, round.ballot.round);
	check_ranks(world, c, round.nodes);
	check_no_older_workers(world, round.ballot);
	check_budget(world, &round);
	check_pace(world, host, &round);
	if (world->closed && round.ballot.round > 1)
		check_broken(world, "%lu.%lu formed after the job was closed", round.ballot.epoch,
			     round.ballot.round);
	/* Agents that never heard of the job begin it anew. */
	world->over |= world->closed;
	ARRAY_RESERVE(world->rounds, world->round_count, world->round_cap);
	world->rounds[world->round_count++] = round;
	world->result->rounds++;
}

void check_group_start(struct world *world, struct host *host, const struct msg_formed *formed)
{
	const struct round_record *round = check_round(world, host->group_ballot);
	if (!round) {
		check_broken(world, "h%u starts workers of a round that nobody formed", host->index);
		return;
	}
	if (round->nodes != formed->nodes || round->world_size != formed->world_size ||
	    round->restarts != formed->restarts || round->master_port != formed->master_port ||
	    strcmp(round->master_host, formed->master_host) != 0)
		check_broken(world, "h%u was told another %lu.%lu than was formed", host->index,
			     round->ballot.epoch, round->ballot.round);
	if (world->count > 64)
		return;
	for (uint32_t i = 0; i < world->count; i++) {
		const struct host *other = &world->hosts[i];
		if (other->group_alive && !ballot_eq(other->group_ballot, host->group_ballot) &&
		    net_live(world, other->link) && !excused(world, other))
			check_broken(world, "h%u runs %lu.%lu while h%u starts %lu.%lu", i,
				     other->group_ballot.epoch, other->group_ballot.round, host->index,
				     host->group_ballot.epoch, host->group_ballot.round);
	}
}

static bool some_round_was_done(const struct world *world)
{
	for (size_t i = 0; i < world->round_count; i++)
		if (world->rounds[i].done >= world->rounds[i].nodes)
			return true;
	return false;
}

void check_outcome(struct world *world, struct host *host, const struct outcome *outcome)
{
	static const char *const names[] = { "done", "failed", "signal", "timed out", "refused", "unknown" };
	static_assert(ARRAY_LEN(names) == OUTCOME_KIND_COUNT, "every outcome needs a name");
	uint32_t *counts = world->result->outcomes;
	world_trace(world, "h%u ends: %s", host->index, names[outcome->kind]);
	counts[outcome->kind]++;
	if (host->group_alive)
		check_broken(world, "h%u ends with workers alive", host->index);
	if (counts[OUTCOME_DONE] && counts[OUTCOME_FAILED])
		check_broken(world, "h%u %s, another the opposite", host->index, names[outcome->kind]);
	if (outcome->kind == OUTCOME_DONE && !some_round_was_done(world))
		check_broken(world, "h%u reports success, but no round was done", host->index);
	if (outcome->kind == OUTCOME_DONE || outcome->kind == OUTCOME_FAILED)
		world->closed = true;
	bool late = world->now_ns > world->faults_end_ns;
	if (late && world->amnesia == 0 && !world->closed && outcome->kind == OUTCOME_TIMED_OUT &&
	    counts[OUTCOME_TIMED_OUT] == 1 && counts[OUTCOME_UNKNOWN] == 0 &&
	    world->now_ns > world->faults_end_ns + world->join_timeout_ns)
		check_broken(world, "h%u timed out although nobody was lost", host->index);
	if (outcome->kind == OUTCOME_TIMED_OUT || outcome->kind == OUTCOME_UNKNOWN)
		world->amnesia++;
}
