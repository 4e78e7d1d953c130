/* Workers that keep pace, as a collective has them: each begins a step when all have told the last
 * one, and so comes to it. Hosts read their pages and send PACE as the real ones do, about the
 * steps and the same again about the collectives (run/pace/flights.h). In half of the worlds one
 * worker is slow; in a quarter each comes last in its turn, in a quarter none by much.
 *
 * 15. Only the slow worker is ever named, to its own host, by its rank in the round that runs, and
 *     not twice in a row. Long after the last fault, the coordinator has named it once all have
 *     told more steps than a verdict needs. A host sends no more PACEs than its steps fill.
 *
 * Only with an option, and chance comes from a stream of its own: other worlds stay as they are. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/pace/host_steps.h"
#include "sim/world.h"

#define LOOK_NS (200 * NS_PER_MS)
#define WORK_NS (200 * NS_PER_S) /* workers live long enough to tell some hundred steps */
#define QUIET_NS (30 * NS_PER_S) /* after the last fault all mail has come */
#define STEPS_ENOUGH (STRAGGLER_TRIALS + 40)
#define GROUP 7	      /* of all ranks */
#define DRIFT_PART 40 /* clocks drift as little as core/pace/clock_offset.h takes for granted */

struct sim_gait {
	struct worker_page pages[SIM_NPROC_MAX];
	uint64_t seen[SIM_NPROC_MAX];
	uint64_t takes_ns[SIM_NPROC_MAX]; /* for the step that they are in */
	uint64_t held_ns;		  /* the host stood still in this step, until then */
	struct host_steps steps;
	uint32_t world_size;
	size_t may_send; /* PACEs */
	struct happening_event timer;
};

void gaits_choose(struct world *world)
{
	struct rng *rng = &world->gait_rng;
	world->gaits = world->options.pace && !world->noise;
	world->slow_host = UINT32_MAX;
	if (!world->gaits)
		return;
	rng->state = world->options.seed * 0xd6e8feb86659fd93u + 16;
	world->work_ns = MAX(world->work_ns, WORK_NS);
	world->gait_ns = rng_range(rng, 50, 150) * NS_PER_MS;
	world->in_turn = rng_chance(rng, 50);
	if (rng_chance(rng, 50))
		world->slow_host = (uint32_t)rng_range(rng, 0, world->count - 1);
}

void gaits_start(struct world *world)
{
	for (uint32_t i = 0; world->gaits && i < world->count; i++) {
		struct host *host = &world->hosts[i];
		host->clock_ppm /= DRIFT_PART;
		host->gait = NEW(struct sim_gait);
		memset(host->gait, 0, sizeof(*host->gait));
		host->gait->timer = (struct happening_event){ .what = HAPPEN_LOOK,
							      .embedded = true,
							      .host = i };
	}
	if (world->slow_host < world->count)
		world_trace(world, "h%u has a slow worker", world->slow_host);
}

void gaits_done(struct world *world)
{
	for (uint32_t i = 0; world->gaits && i < world->count; i++) {
		host_steps_done(&world->hosts[i].gait->steps);
		free(world->hosts[i].gait);
	}
}

/* ---- steps of a round ---- */

/* All its workers are there. */
static bool goes(const struct world *world, const struct round_record *round)
{
	for (uint32_t rank = 0; rank < round->nodes; rank++) {
		const struct seat *seat = &round->seats[rank];
		const struct host *host = &world->hosts[seat->host];
		if (!seat->started || !host->group_alive ||
		    !ballot_eq(host->group_ballot, round->ballot))
			return false;
		for (uint32_t i = 0; i < seat->nproc; i++)
			if (!host->workers[i].alive)
				return false;
	}
	return true;
}

/* How long the step that begins takes a worker. */
static uint64_t takes_ns(struct world *world, const struct round_record *round, uint32_t host,
			 uint32_t rank, bool first)
{
	uint64_t ns = world->gait_ns + rng_range(&world->gait_rng, 0, world->gait_ns / 64);
	if (world->slow_host < world->count)
		return host == world->slow_host && first ? ns + world->gait_ns : ns;
	return world->in_turn && round->step % round->world_size == rank ? ns + world->gait_ns / 2
									 : ns;
}

static void begin_step(struct world *world, struct round_record *round)
{
	uint64_t longest_ns = 0;
	for (uint32_t rank = 0; rank < round->nodes; rank++) {
		const struct seat *seat = &round->seats[rank];
		struct sim_gait *gait = world->hosts[seat->host].gait;
		gait->held_ns = 0;
		for (uint32_t i = 0; i < seat->nproc; i++) {
			gait->takes_ns[i] =
				takes_ns(world, round, seat->host, seat->rank_base + i, i == 0);
			longest_ns = MAX(longest_ns, gait->takes_ns[i]);
		}
	}
	round->step_ns = world->now_ns;
	world_at(world, world->now_ns + longest_ns, HAPPEN_STRIDE, 0)->index =
		(uint32_t)(round - world->rounds);
}

static void tell_step(struct world *world, const struct round_record *round)
{
	for (uint32_t rank = 0; rank < round->nodes; rank++) {
		const struct host *host = &world->hosts[round->seats[rank].host];
		struct sim_gait *gait = host->gait;
		for (uint32_t i = 0; i < round->seats[rank].nproc; i++) {
			uint64_t at_ns = MAX(round->step_ns + gait->takes_ns[i], gait->held_ns);
			worker_page_tell(&gait->pages[i], round->step,
					 world_local_ns(world, host) - (world->now_ns - at_ns));
		}
	}
}

/* Until when a member stands still; 0: none does. */
static uint64_t held_until(const struct world *world, const struct round_record *round)
{
	uint64_t until_ns = 0;
	for (uint32_t rank = 0; rank < round->nodes; rank++) {
		const struct host *host = &world->hosts[round->seats[rank].host];
		if (!world_frozen(world, host))
			continue;
		host->gait->held_ns = host->frozen_until_ns;
		until_ns = MAX(until_ns, host->frozen_until_ns);
	}
	return until_ns;
}

/* The coordinator of a round, if all that take part know PACE. */
static const struct host *judge_of(const struct world *world, const struct round_record *round)
{
	const struct host *judge = NULL;
	for (uint32_t i = 0; i < world->count; i++) {
		const struct host *host = &world->hosts[i];
		const struct coordinator *c = host->process ? host->node.coordinator : NULL;
		if (host->old)
			return NULL;
		if (c && c->state == COORDINATOR_RUNNING &&
		    ballot_eq(c->roster.heard.ballot, round->ballot))
			judge = host;
	}
	return judge;
}

static bool has_slow(const struct world *world, const struct round_record *round)
{
	for (uint32_t rank = 0; rank < round->nodes; rank++)
		if (round->seats[rank].host == world->slow_host)
			return round->world_size > 1;
	return false;
}

static void check_named(struct world *world, struct round_record *round)
{
	bool quiet = world->now_ns >= world->faults_end_ns + (world->options.faults ? QUIET_NS : 0);
	if (!quiet || world->script || !has_slow(world, round) ||
	    ++round->quiet_steps != STEPS_ENOUGH)
		return;
	const struct host *judge = judge_of(world, round);
	if (!judge)
		return;
	if (round->late_term != judge->term)
		check_broken(world, "c%u has not named the slow worker of h%u in %u collectives",
			     judge->index, world->slow_host, STEPS_ENOUGH);
	world->result->judged++;
}

/* Each host that starts workers makes this happen: the last one begins the first step. */
void gaits_begin(struct world *world, uint32_t index)
{
	struct round_record *round = &world->rounds[index];
	if (round->step_ns == 0 && goes(world, round))
		begin_step(world, round);
}

void gaits_stride(struct world *world, uint32_t index)
{
	struct round_record *round = &world->rounds[index];
	uint64_t held_ns = held_until(world, round);
	if (!goes(world, round))
		return;
	if (held_ns) {
		world_at(world, held_ns, HAPPEN_STRIDE, 0)->index = index;
		return;
	}
	tell_step(world, round);
	round->step++;
	check_named(world, round);
	begin_step(world, round);
}

/* ---- hosts ---- */

void gaits_workers_start(struct world *world, struct host *host, const struct msg_formed *formed)
{
	struct sim_gait *gait = host->gait;
	if (!world->gaits || !host->group_alive)
		return;
	memset(gait->pages, 0, sizeof(gait->pages));
	memset(gait->seen, 0, sizeof(gait->seen));
	gait->world_size = formed->world_size;
	host_steps_begin(&gait->steps, formed->rank_base, host->node.agent.config.node.nproc,
			 formed->nodes);
	world_arm(world, &gait->timer, world->now_ns + LOOK_NS);
	world_at(world, world->now_ns, HAPPEN_SET_OUT, 0)->index = (uint32_t)host->group_round;
}

void gaits_workers_gone(struct world *world, struct host *host)
{
	if (world->gaits)
		world_arm(world, &host->gait->timer, NS_NEVER);
}

void gaits_look(struct world *world, struct host *host)
{
	struct sim_gait *gait = host->gait;
	struct host_steps *steps = &gait->steps;
	if (host->group.state != GROUP_ACTIVE || host->group.count != steps->workers)
		return;
	world_arm(world, &gait->timer, world->now_ns + LOOK_NS);
	steps->told_count = 0;
	for (uint32_t i = 0; i < steps->workers; i++)
		if (host->group.workers[i].state == WORKER_RUNNING)
			host_steps_look(steps, i, &gait->pages[i], &gait->seen[i]);
	if (steps->told_count == 0)
		return;
	struct agent_event event = { .type = AGENT_PACE,
				     .marks = steps->told,
				     .mark_count = steps->told_count };
	gait->may_send = (steps->told_count + MSG_MARKS_MAX - 1) / MSG_MARKS_MAX;
	if (gait->world_size > 1)
		gait->may_send *= 2;
	host_tell(world, host, &event);
	event.group = GROUP;
	event.size = gait->world_size;
	if (gait->world_size > 1)
		host_tell(world, host, &event);
	gait->may_send = 0;
}

void gaits_sent(struct world *world, const struct host *host, const struct msg *msg)
{
	if (!world->gaits || msg->type != MSG_PACE)
		return;
	world->result->paces++;
	if (host->gait->may_send-- == 0)
		check_broken(world, "h%u sends more PACEs than it has steps to tell of",
			     host->index);
}

/* ---- verdicts ---- */

static bool is_slow(const struct world *world, const struct round_record *round, uint32_t rank)
{
	for (uint32_t i = 0; round && i < round->nodes; i++)
		if (round->seats[i].host == world->slow_host)
			return round->seats[i].rank_base == rank;
	return false;
}

void gaits_noted(struct world *world, struct host *host, const struct note *note)
{
	if (note->kind != NOTE_LATE && note->kind != NOTE_IN_STEP)
		return;
	bool late = note->kind == NOTE_LATE;
	struct round_record *round = check_round(world, host->term_ballot);
	world_trace(world, "c%u: rank %u of %s is %s", host->index, note->late.rank, note->name,
		    late ? "late" : "in step");
	world->result->late += late;
	if (!is_slow(world, round, note->late.rank) ||
	    strcmp(note->name, world->hosts[world->slow_host].node.agent.config.node.name) != 0)
		check_broken(world, "c%u names rank %u of %s, which is not slow", host->index,
			     note->late.rank, note->name);
	else if (note->late.group != GROUP || late == (round->late_term == host->term))
		check_broken(world, "c%u says twice, or of steps, that rank %u is %s", host->index,
			     note->late.rank, late ? "late" : "in step");
	else
		round->late_term = late ? host->term : 0;
}

void gaits_late(struct world *world, const struct host *host, const struct straggler_news *news)
{
	world_trace(world, "h%u hears that rank %u is %s", host->index, news->rank,
		    news->begins ? "late" : "in step");
	if (host->index != world->slow_host ||
	    !is_slow(world, check_round(world, host->group_ballot), news->rank))
		check_broken(world, "h%u hears of rank %u, which is not its slow worker",
			     host->index, news->rank);
}
