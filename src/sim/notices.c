/* Workers that take steps, ask after each whether to leave or to save, and notices to do so.
 *
 * In some worlds a worker takes its next step only when all others of its round have gone on after
 * the last one, as a collective would have it: there a worker that waits for a decision holds up
 * the others, who may be those on whom the decision waits.
 *
 * Chance comes from a stream of its own, so that worlds without notices stay as they are. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sim/world.h"

#define LOOK_NS (5 * NS_PER_MS)	    /* a worker that waits asks again after this */
#define PATIENCE_NS (90 * NS_PER_S) /* longer than a notice and a lease together */

void notices_start(struct world *world)
{
	struct rng *rng = &world->notice_rng;
	rng->state = world->options.seed * 0x9e3779b97f4a7c15u + 77;
	bool drawn =
		world->options.faults && !world->options.agents && world->options.seed % 3 == 1;
	world->notices = (drawn || world->options.notices) && !world->script && !world->noise;
	if (!world->notices)
		return;
	static const uint64_t steps_ms[] = { 40, 200, 2000 };
	world->step_ns = steps_ms[rng_range(rng, 0, ARRAY_LEN(steps_ms) - 1)] * NS_PER_MS;
	world->lockstep = rng_chance(rng, 70);
	world->cadence = rng_chance(rng, 20) ? 3 : 1;
	world->some_never_ask = world->options.faults && rng_chance(rng, 10);
	uint32_t count = world->options.faults ? (uint32_t)rng_range(rng, 1, 4) : 1;
	uint64_t until_ns =
		world->options.faults ? world->faults_end_ns : world->now_ns + 20 * NS_PER_S;
	for (uint32_t i = 0; i < count; i++)
		world_at(world, rng_range(rng, world->now_ns, until_ns), HAPPEN_NOTICE,
			 (uint32_t)rng_range(rng, 0, world->count - 1));
}

/* ---- workers ---- */

static void rearm(struct world *world, struct host *host)
{
	uint64_t next_ns = NS_NEVER;
	for (size_t i = 0; i < SIM_NPROC_MAX; i++)
		if (host->workers[i].alive && !host->steppers[i].leaving)
			next_ns = MIN(next_ns, host->steppers[i].next_ns);
	world_arm(world, &host->step_timer, next_ns);
}

void notices_workers_start(struct world *world, struct host *host)
{
	if (!world->notices)
		return;
	for (size_t i = 0; i < SIM_NPROC_MAX; i++) {
		struct sim_stepper *stepper = &host->steppers[i];
		struct worker_page *page = stepper->page ? stepper->page : NEW(struct worker_page);
		memset(page, 0, sizeof(*page));
		*stepper = (struct sim_stepper){
			.page = page,
			.asks = !(world->some_never_ask && i == 2),
			.tells = i != 1,
			.next_ns = world->now_ns +
				   rng_range(&world->notice_rng, 1, 2 * world->step_ns),
		};
	}
	host->shown = (struct stop_plan){ .phase = PLAN_NONE };
	world_arm(world, &host->step_timer, world->now_ns + 1); /* when they have started */
}

void notices_workers_gone(struct world *world, struct host *host)
{
	if (world->notices)
		world_arm(world, &host->step_timer, NS_NEVER);
}

void notices_done(struct world *world)
{
	for (uint32_t i = 0; world->notices && i < world->count; i++)
		for (size_t j = 0; j < SIM_NPROC_MAX; j++)
			free(world->hosts[i].steppers[j].page);
}

/* Another worker of the round has not gone on after the step before this one's. */
static bool held_up(const struct world *world, const struct host *host, uint64_t step)
{
	for (uint32_t i = 0; world->lockstep && i < world->count; i++) {
		const struct host *other = &world->hosts[i];
		if (!other->group_alive || !ballot_eq(other->group_ballot, host->group_ballot))
			continue;
		for (size_t j = 0; j < SIM_NPROC_MAX; j++)
			if (other->workers[j].alive && other->steppers[j].step < step)
				return true;
	}
	return false;
}

static void leave(struct world *world, struct host *host, size_t rank)
{
	struct sim_stepper *stepper = &host->steppers[rank];
	stepper->leaving = true;
	host->workers[rank].ends_ns =
		MIN(host->workers[rank].ends_ns,
		    world->now_ns + rng_range(&world->notice_rng, 0, 2 * NS_PER_S));
	host->workers[rank].code = 0;
	workers_happen(world, host); /* for the new time of its end */
}

static uint64_t length_ns(struct world *world)
{
	return rng_range(&world->notice_rng, world->step_ns / 2, world->step_ns * 3 / 2);
}

static void go_on(struct world *world, struct sim_stepper *stepper)
{
	stepper->step++;
	stepper->waits = false;
	stepper->next_ns = world->now_ns + length_ns(world);
}

static void wait(struct world *world, struct host *host, struct sim_stepper *stepper)
{
	if (!stepper->waits)
		stepper->waits_since_ns = world->now_ns;
	stepper->waits = true;
	stepper->next_ns = world->now_ns + LOOK_NS;
	uint64_t since_ns = MAX(stepper->waits_since_ns, host->thawed_ns);
	if (world->now_ns > since_ns + PATIENCE_NS && !host->stuck)
		check_broken(world, "h%u: a worker waits for ever after step %lu", host->index,
			     stepper->step);
}

/* The worker of `rank` asks after its step. Saving takes no time. */
static void ask(struct world *world, struct host *host, size_t rank)
{
	struct sim_stepper *stepper = &host->steppers[rank];
	uint64_t seen;
	atomic_fetch_or(&stepper->page->asks, 1u << PLAN_LEAVE | 1u << PLAN_SAVE);
	enum plan_answer save = plan_ask(stepper->page, stepper->step, true, &seen);
	if (save == PLAN_ACT) {
		check_acts(world, host, rank, stepper->step);
		atomic_store(&stepper->page->saved, stepper->tells ? stepper->step + 1 : 0);
	}
	enum plan_answer answer = save == PLAN_WAIT
					  ? PLAN_WAIT
					  : plan_ask(stepper->page, stepper->step, false, &seen);
	if (answer == PLAN_ACT) {
		if (save != PLAN_ACT)
			check_broken(world, "h%u leaves without saving", host->index);
		world_trace(world, "h%u worker %zu leaves after step %lu", host->index, rank,
			    stepper->step);
		leave(world, host, rank);
	} else if (answer == PLAN_WAIT) {
		wait(world, host, stepper);
	} else {
		go_on(world, stepper);
	}
}

static void report(struct world *world, struct host *host)
{
	struct plan_positions positions = { .pending = 0 };
	if (!host->process || host->shown.phase == PLAN_NONE)
		return;
	for (size_t i = 0; i < host->group.count; i++)
		plan_look(host->steppers[i].page, &host->shown, host->workers[i].alive, &positions);
	host_tell(world, host,
		  &(struct agent_event){
			  .type = AGENT_POSITIONS, .positions = positions, .of = host->shown });
}

void notices_step(struct world *world, struct host *host)
{
	uint32_t generation = host->generation;
	for (size_t i = 0; i < SIM_NPROC_MAX; i++) {
		struct sim_stepper *stepper = &host->steppers[i];
		if (!host->workers[i].alive || stepper->leaving || stepper->next_ns > world->now_ns)
			continue;
		if (!stepper->waits && held_up(world, host, stepper->step))
			stepper->next_ns = world->now_ns + MAX(LOOK_NS, world->step_ns / 8);
		else if (!stepper->asks || stepper->step % world->cadence)
			go_on(world, stepper);
		else
			ask(world, host, i);
		if (host->generation != generation)
			return;
	}
	report(world, host);
	if (host->generation == generation)
		rearm(world, host);
}

/* ---- agents ---- */

void notices_show(struct world *world, struct host *host, const struct stop_plan *plan)
{
	host->shown = *plan;
	if (!world->notices)
		return;
	for (size_t i = 0; i < SIM_NPROC_MAX; i++)
		if (host->steppers[i].page)
			atomic_store(&host->steppers[i].page->plan, plan_word(plan));
	report(world, host);
}

bool notices_left(const struct world *world, const struct host *host)
{
	struct plan_leavers leavers = { .left = 0 };
	for (size_t i = 0; world->notices && i < host->group.count; i++)
		plan_count(host->steppers[i].page, exit_status_ok(&host->group.workers[i].status),
			   &leavers);
	return plan_all_left(&leavers);
}

static bool any_asks(const struct host *host)
{
	for (size_t i = 0; host->group_alive && i < SIM_NPROC_MAX; i++)
		if (host->workers[i].alive && plan_is_asked_for(host->steppers[i].page, PLAN_LEAVE))
			return true;
	return false;
}

/* A round runs that nothing is about to end; with faults that does not matter. */
static bool calm(const struct world *world)
{
	bool runs = false;
	for (uint32_t i = 0; i < world->count; i++) {
		const struct coordinator *c = world->hosts[i].node.coordinator;
		runs |= world->hosts[i].process && c && c->state == COORDINATOR_RUNNING &&
			c->scale_up_ns == NS_NEVER;
	}
	return world->options.faults || (runs && world->boots == 0);
}

void notices_give(struct world *world, struct host *host)
{
	struct rng *rng = &world->notice_rng;
	bool save = world->options.faults && (world->gentle || rng_chance(rng, 40));
	uint64_t left_ns = rng_range(rng, 20, 60) * NS_PER_S;
	/* Its workers may not have begun, or be between two rounds. */
	if (!host->process || host->ended || world_frozen(world, host) || !any_asks(host) ||
	    !calm(world)) {
		uint64_t later_ns = world->now_ns + NS_PER_S;
		if (!world->options.faults || later_ns < world->faults_end_ns)
			world_at(world, later_ns, HAPPEN_NOTICE, host->index);
		return;
	}
	world_trace(world, "h%u is to %s, in %lu s", host->index, save ? "save" : "leave",
		    left_ns / NS_PER_S);
	world->result->notices++;
	/* Another one while this one is being agreed on or carried out. */
	if (save && rng_chance(rng, 50))
		world_at(world, world->now_ns + rng_range(rng, 0, 4 * world->step_ns),
			 HAPPEN_NOTICE, (uint32_t)rng_range(rng, 0, world->count - 1));
	if (!save) {
		world->amnesia++;
		host->stopped = true;
	}
	host_tell(world, host,
		  &(struct agent_event){ .type = AGENT_NOTICE,
					 .kind = save ? PLAN_SAVE : PLAN_LEAVE,
					 .signal = SIGTERM,
					 .left_ns = left_ns });
}
