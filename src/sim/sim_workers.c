/* Worker groups: the real machine of core/worker/group.h with a warden whose processes run, fail,
 * finish, leave others behind, take their time to stop, and now and then cannot be killed. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sim/world.h"

static void step_group(struct world *world, struct host *host, const struct group_event *event);

/* ---- processes ---- */

static bool any_alive(const struct host *host)
{
	for (size_t i = 0; i < SIM_NPROC_MAX; i++)
		if (host->workers[i].alive)
			return true;
	return host->orphans.alive;
}

static void rearm(struct world *world, struct host *host)
{
	uint64_t next_ns =
		MIN(host->empty_ns, world_ns(world, host, group_deadline_ns(&host->group)));
	for (size_t i = 0; i < SIM_NPROC_MAX; i++)
		if (host->workers[i].alive)
			next_ns = MIN(next_ns, host->workers[i].ends_ns);
	if (host->orphans.alive)
		next_ns = MIN(next_ns, host->orphans.ends_ns);
	world_arm(world, &host->group_timer, next_ns);
}

static uint64_t stop_time_ns(struct world *world)
{
	bool slow = rng_chance(&world->rng, 10);
	return rng_range(&world->rng, NS_PER_MS, slow ? 4 * NS_PER_S : 100 * NS_PER_MS);
}

/* Some processes ignore the request to end. Large ones take a moment to die. */
static void signal_process(struct world *world, struct sim_process *process, int signal)
{
	uint64_t longest_ns = (world->script == SCRIPT_REBORN ? 900 : 40) * NS_PER_MS;
	uint64_t shortest_ns = world->script == SCRIPT_REBORN ? longest_ns / 2 : 0;
	bool deaf = signal != SIGKILL && rng_chance(&world->rng, 3);
	if (!process->alive || deaf)
		return;
	uint64_t takes_ns = signal == SIGKILL ? rng_range(&world->rng, shortest_ns, longest_ns)
					      : stop_time_ns(world);
	if (world->now_ns + takes_ns >= process->ends_ns)
		return;
	process->ends_ns = world->now_ns + takes_ns;
	process->signal = signal;
}

static void kill_all(struct world *world, struct host *host)
{
	host->stuck = host->stuck || rng_chance(&world->rng, world->stuck_percent);
	if (host->stuck) {
		for (size_t i = 0; i < SIM_NPROC_MAX; i++)
			host->workers[i].ends_ns = NS_NEVER;
		host->orphans = (struct sim_process){ .ends_ns = NS_NEVER, .alive = true };
		host->empty_ns = NS_NEVER;
		step_group(world, host,
			   &(struct group_event){ .type = GROUP_EV_SURVIVOR,
						  .error = rng_chance(&world->rng, 50) ? EPERM
										       : 0 });
		return;
	}
	for (size_t i = 0; i < SIM_NPROC_MAX; i++)
		signal_process(world, &host->workers[i], SIGKILL);
	signal_process(world, &host->orphans, SIGKILL);
	if (!any_alive(host))
		host->empty_ns = MIN(host->empty_ns, world->now_ns);
}

/* ---- what the group wants ---- */

static void act(struct world *world, struct host *host, const struct group_action *action)
{
	switch (action->type) {
	case GROUP_DO_SPAWN:
		host->workers[action->rank].alive = true;
		break;
	case GROUP_DO_SIGNAL:
	case GROUP_DO_SIGNAL_MAIN:
		signal_process(world, &host->workers[action->rank], action->signal);
		break;
	case GROUP_DO_SIGNAL_ORPHANS:
		signal_process(world, &host->orphans, action->signal);
		break;
	case GROUP_DO_KILL_ALL:
		kill_all(world, host);
		break;
	case GROUP_DO_TELL_FAILED:
	case GROUP_DO_TELL_DONE:
	case GROUP_DO_TELL_GONE:
	case GROUP_DO_TELL_STUCK:
		break;
	}
}

static void tell_failed(struct world *world, struct host *host, size_t rank)
{
	const struct worker *worker = &host->group.workers[rank];
	/* Records blame some rank, perhaps of another host, for every fourth failure. */
	const struct blame blame = { .named = true,
				     .rank = (uint32_t)(worker->ended_ns >> 4 & 15),
				     .exclude = (worker->ended_ns & 3) == 0,
				     .text = "a rank never came" };
	check_round(world, host->group_ballot)->failed++;
	host_tell(world, host,
		  &(struct agent_event){ .type = AGENT_GROUP_FAILED,
					 .cause = { .reason = worker->reason,
						    .status = worker->status,
						    .spawn_errno = worker->spawn_errno,
						    .local_rank = (int32_t)rank,
						    .pid = 1,
						    .blame = blame },
					 .died_ns = worker->ended_ns });
}

/* 1 + the highest step of the workers of this host in their round. */
static uint64_t reached(const struct host *host)
{
	return (host->group_ballot.round * 7 + host->index) % SIM_STEPS;
}

static void tell_gone(struct world *world, struct host *host)
{
	struct agent_event event = { .type = AGENT_GROUP_GONE,
				     .left = notices_left(world, host),
				     .reached = reached(host) };
	struct cause ended = { .status = host->group.workers[host->group.first].status };
	snprintf(ended.words, sizeof(ended.words), "last words of %u.%lu", host->index,
		 host->group_ballot.round);
	if (host->group.failed)
		event.ended = &ended;
	workers_gone(world, host);
	stash_work(host);
	stash_read(host, event.kept);
	host_tell(world, host, &event);
}

/* Tells the node, after everything else is done: it may have actions for the group. */
static void tell(struct world *world, struct host *host, const struct group_action *action)
{
	switch (action->type) {
	case GROUP_DO_TELL_FAILED:
		world_trace(world, "h%u group failed", host->index);
		tell_failed(world, host, action->rank);
		break;
	case GROUP_DO_TELL_DONE:
		world_trace(world, "h%u group done", host->index);
		check_round(world, host->group_ballot)->done++;
		host_tell(world, host,
			  &(struct agent_event){ .type = AGENT_GROUP_DONE,
						 .left = notices_left(world, host) });
		break;
	case GROUP_DO_TELL_GONE:
		world_trace(world, "h%u group gone", host->index);
		tell_gone(world, host);
		break;
	case GROUP_DO_TELL_STUCK:
		world_trace(world, "h%u group stuck", host->index);
		host_tell(world, host,
			  &(struct agent_event){ .type = AGENT_GROUP_STUCK,
						 .died_ns = world_local_ns(world, host) });
		break;
	case GROUP_DO_SPAWN:
	case GROUP_DO_SIGNAL:
	case GROUP_DO_SIGNAL_MAIN:
	case GROUP_DO_SIGNAL_ORPHANS:
	case GROUP_DO_KILL_ALL:
		break;
	}
}

static void step_group(struct world *world, struct host *host, const struct group_event *event)
{
	struct group_actions actions = { 0 };
	uint32_t generation = host->generation;
	group_step(&host->group, event, world_local_ns(world, host), &actions);
	for (size_t i = 0; i < actions.count; i++)
		act(world, host, &actions.items[i]);
	for (size_t i = 0; i < actions.count && host->generation == generation; i++)
		tell(world, host, &actions.items[i]);
	group_actions_done(&actions);
	if (host->generation == generation)
		rearm(world, host);
}

/* ---- their lives ---- */

/* Plans each worker's end, if it is not stopped before. At most one fails on its own. */
static void plan(struct world *world, struct host *host)
{
	struct rng *rng = &world->rng;
	size_t count = host->node.agent.config.node.nproc;
	bool fails = rng_chance(rng, world->failure_percent);
	for (size_t i = 0; i < count; i++)
		host->workers[i] = (struct sim_process){
			.ends_ns = world->now_ns + rng_range(rng, 100 * NS_PER_MS, world->work_ns)
		};
	if (world->script)
		scripts_plan(world, host);
	if (!fails)
		return;
	struct sim_process *first = &host->workers[rng_range(rng, 0, count - 1)];
	bool starts = !rng_chance(rng, 3);
	first->code = starts ? 1 : -1;
	first->ends_ns =
		world->now_ns + rng_range(rng, 0, starts ? world->work_ns / 2 : 2 * NS_PER_MS);
}

void workers_start(struct world *world, struct host *host, const struct agent_action *action)
{
	if (host->group_alive) {
		check_broken(world, "h%u starts workers while older ones are alive", host->index);
		return;
	}
	host->group_ballot = action->ballot;
	check_group_start(world, host, &action->formed);
	stash_begin(world, host, &action->formed);
	host->group_alive = !world->result->broken;
	host->orphans.alive = false;
	host->empty_ns = NS_NEVER;
	plan(world, host);
	notices_workers_start(world, host);
	gaits_workers_start(world, host, &action->formed);
	hushes_workers_start(world, host);
	uint64_t now_ns = world_local_ns(world, host);
	size_t count = host->node.agent.config.node.nproc;
	step_group(world, host, &(struct group_event){ .type = GROUP_EV_START, .count = count });
	for (size_t i = 0; i < count; i++)
		if (host->workers[i].code >= 0)
			step_group(world, host,
				   &(struct group_event){ .type = GROUP_EV_SPAWNED,
							  .rank = i,
							  .when_ns = now_ns });
}

void workers_stop(struct world *world, struct host *host, int signal)
{
	notices_show(world, host, &(struct stop_plan){ .phase = PLAN_NONE });
	step_group(world, host,
		   &(struct group_event){ .type = GROUP_EV_STOP,
					  .signal = signal ? signal : host->group.stop_signal,
					  .grace_ns = host->group.grace_ns });
}

void workers_kill(struct world *world, struct host *host)
{
	notices_show(world, host, &(struct stop_plan){ .phase = PLAN_NONE });
	step_group(world, host, &(struct group_event){ .type = GROUP_EV_KILL });
}

void workers_condemn(struct world *world, struct host *host)
{
	for (size_t i = 0; i < host->group.count; i++)
		if (host->group.workers[i].state == WORKER_RUNNING) {
			step_group(world, host,
				   &(struct group_event){ .type = GROUP_EV_EXPIRED,
							  .rank = i,
							  .reason = FAILURE_HANG,
							  .signal = SIGKILL });
			return;
		}
}

void workers_gone(struct world *world, struct host *host)
{
	if (host->group_alive)
		check_group_end(world, host);
	host->group_alive = false;
	host->orphans.alive = false;
	host->empty_ns = NS_NEVER;
	for (size_t i = 0; i < SIM_NPROC_MAX; i++)
		host->workers[i].alive = false;
	world_arm(world, &host->group_timer, NS_NEVER);
	notices_workers_gone(world, host);
	gaits_workers_gone(world, host);
	hushes_workers_gone(world, host);
}

static void end_worker(struct world *world, struct host *host, size_t rank)
{
	struct sim_process *worker = &host->workers[rank];
	struct group_event event = { .type = GROUP_EV_EXITED,
				     .rank = rank,
				     .status = { EXIT_CODE, worker->code, false },
				     .when_ns = world_local_ns(world, host) };
	worker->alive = false;
	if (worker->signal)
		event.status = (struct exit_status){ EXIT_SIGNAL, worker->signal, false };
	if (worker->code < 0) {
		event.type = GROUP_EV_SPAWN_FAILED;
		event.error = EAGAIN;
	} else if (host->group.state != GROUP_KILLING && rng_chance(&world->rng, 5)) {
		host->orphans = (struct sim_process){ .ends_ns = NS_NEVER, .alive = true };
	}
	if (!any_alive(host))
		host->empty_ns = world->now_ns + rng_range(&world->rng, 0, 5 * NS_PER_MS);
	step_group(world, host, &event);
}

void workers_happen(struct world *world, struct host *host)
{
	for (size_t i = 0; i < SIM_NPROC_MAX; i++)
		if (host->workers[i].alive && host->workers[i].ends_ns <= world->now_ns) {
			end_worker(world, host, i);
			return;
		}
	if (host->orphans.alive && host->orphans.ends_ns <= world->now_ns) {
		host->orphans.alive = false;
		if (!any_alive(host))
			host->empty_ns = world->now_ns;
	}
	if (host->empty_ns <= world->now_ns) {
		host->empty_ns = NS_NEVER;
		step_group(world, host, &(struct group_event){ .type = GROUP_EV_EMPTY });
		return;
	}
	if (group_deadline_ns(&host->group) <= world_local_ns(world, host))
		step_group(world, host, &(struct group_event){ .type = GROUP_EV_TIMER });
	else
		rearm(world, host);
}
