#include "core/worker/group.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const char *const reason_names[] = {
	[FAILURE_EXIT] = "exit",
	[FAILURE_SPAWN] = "spawn",
	[FAILURE_WARDEN] = "warden",
	[FAILURE_TIMER] = "timer",
	[FAILURE_HANG] = "hang",
	[FAILURE_ABORT] = "abort",
	[FAILURE_UNFINALIZED] = "unfinalized",
	[FAILURE_PMI] = "pmi",
	[FAILURE_LOST] = "lost",
	[FAILURE_LEFT] = "left",
};
static_assert(ARRAY_LEN(reason_names) == FAILURE_REASON_COUNT, "every reason needs a name");

const char *failure_reason_name(enum failure_reason reason)
{
	return reason_names[reason];
}

void group_init(struct group *group, int stop_signal, uint64_t grace_ns)
{
	*group = (struct group){
		.stop_signal = stop_signal,
		.grace_ns = grace_ns,
		.deadline_ns = NS_NEVER,
	};
}

void group_done(struct group *group)
{
	free(group->workers);
	group->workers = NULL;
	group->count = 0;
}

uint64_t group_deadline_ns(const struct group *group)
{
	return group->deadline_ns;
}

/* One step's view: the handlers below all take it. */
struct step {
	struct group *group;
	const struct group_event *event;
	uint64_t now_ns;
	struct group_actions *actions;
};

static void act(struct step *s, enum group_action_type type, size_t rank, int sig)
{
	*group_actions_add(s->actions) = (struct group_action){ type, rank, sig };
}

static void enter(struct step *s, enum group_state state, uint64_t deadline_ns)
{
	s->group->state = state;
	s->group->deadline_ns = deadline_ns;
}

static void kill_all(struct step *s)
{
	enter(s, GROUP_KILLING, ns_add(s->now_ns, GROUP_STUCK_NS));
	act(s, GROUP_DO_KILL_ALL, 0, SIGKILL);
}

static void signal_workers(struct step *s, int sig, size_t except)
{
	for (size_t i = 0; i < s->group->count; i++)
		if (s->group->workers[i].state != WORKER_ENDED && i != except)
			act(s, GROUP_DO_SIGNAL, i, sig);
}

#define NOBODY SIZE_MAX

static void on_start(struct step *s)
{
	struct group *group = s->group;
	group->count = group->alive = s->event->count;
	group->workers = mem_grow(group->workers, group->count, sizeof(struct worker));
	memset(group->workers, 0, group->count * sizeof(struct worker));
	group->done = group->failed = false;
	enter(s, GROUP_ACTIVE, NS_NEVER);
	for (size_t i = 0; i < group->count; i++)
		act(s, GROUP_DO_SPAWN, i, 0);
}

static struct worker *event_worker(struct step *s)
{
	assert(s->event->rank < s->group->count);
	return &s->group->workers[s->event->rank];
}

static void on_spawned(struct step *s)
{
	struct worker *worker = event_worker(s);
	worker->state = WORKER_RUNNING;
	worker->started_ns = s->event->when_ns;
}

/* Records how the event's worker ended. */
static struct worker *note_end(struct step *s)
{
	struct worker *worker = event_worker(s);
	worker->state = WORKER_ENDED;
	if (!worker->condemned || worker->status.kind == EXIT_UNKNOWN)
		worker->status = s->event->status; /* otherwise another one counts */
	worker->ended_ns = s->event->when_ns;
	s->group->alive--;
	return worker;
}

static struct worker *note_spawn_failure(struct step *s)
{
	struct worker *worker = note_end(s);
	worker->status = (struct exit_status){ .kind = EXIT_UNKNOWN };
	worker->reason = FAILURE_SPAWN;
	worker->spawn_errno = s->event->error;
	worker->ended_ns = s->now_ns;
	return worker;
}

/* The first failure: tells it at once and stops the other workers. Kills what dead workers left
 * behind without grace; if no worker is alive, that is all. */
static void fail(struct step *s, size_t rank)
{
	struct group *group = s->group;
	group->failed = true;
	group->failed_ns = s->now_ns;
	group->first = rank;
	act(s, GROUP_DO_TELL_FAILED, rank, 0);
	if (group->alive == 0) {
		kill_all(s);
		return;
	}
	group->signal = group->stop_signal;
	enter(s, GROUP_STOPPING, ns_add(s->now_ns, group->grace_ns));
	act(s, GROUP_DO_SIGNAL_ORPHANS, 0, SIGKILL);
	signal_workers(s, group->signal, rank);
}

static void on_spawn_failed(struct step *s)
{
	note_spawn_failure(s);
	fail(s, s->event->rank);
}

static void on_exited(struct step *s)
{
	struct worker *worker = note_end(s);
	if (s->event->reason != FAILURE_EXIT) {
		worker->condemned = true;
		worker->reason = s->event->reason;
	}
	if (worker->condemned || !exit_status_ok(&worker->status)) {
		fail(s, s->event->rank);
	} else if (s->group->alive == 0) {
		enter(s, GROUP_LINGERING, ns_add(s->now_ns, GROUP_LINGER_NS));
		s->group->done = true;
		act(s, GROUP_DO_TELL_DONE, 0, 0);
		act(s, GROUP_DO_SIGNAL_ORPHANS, 0, SIGTERM);
	}
}

static void on_expired(struct step *s)
{
	struct worker *worker = event_worker(s);
	if (worker->state != WORKER_RUNNING)
		return;
	worker->condemned = true;
	worker->reason = s->event->reason;
	worker->status = s->event->status;
	worker->ended_ns = s->now_ns;
	fail(s, s->event->rank);
	act(s, GROUP_DO_SIGNAL_MAIN, s->event->rank, s->event->signal);
}

static void on_stop(struct step *s)
{
	s->group->signal = s->event->signal;
	enter(s, GROUP_STOPPING, ns_add(s->now_ns, s->event->grace_ns));
	act(s, GROUP_DO_SIGNAL_ORPHANS, 0, s->event->signal);
	signal_workers(s, s->event->signal, NOBODY);
}

/* Asked to stop while already stopping: a second Ctrl-C kills, a different signal is passed on, the
 * same one changes nothing. The time left never grows. */
static void on_stop_again(struct step *s)
{
	struct group *group = s->group;
	uint64_t deadline_ns = group->deadline_ns;
	bool same = s->event->signal == group->signal;

	if (same && group->signal == SIGINT)
		kill_all(s);
	else if (!same)
		on_stop(s);
	else
		group->deadline_ns = ns_add(s->now_ns, s->event->grace_ns);
	if (group->state == GROUP_STOPPING)
		group->deadline_ns = MIN(group->deadline_ns, deadline_ns);
}

static void on_exited_while_stopping(struct step *s)
{
	struct worker *worker = note_end(s);
	/* One that died before the others were signalled failed by itself, at the same time. */
	bool own = s->group->failed && worker->ended_ns < s->group->failed_ns &&
		   !exit_status_ok(&worker->status);
	worker->stopped = !worker->condemned && !own;
	/* A shell that wrapped the real worker is gone; signal the worker too. */
	if (s->group->state == GROUP_STOPPING)
		act(s, GROUP_DO_SIGNAL_ORPHANS, 0, s->group->signal);
}

static void on_spawn_failed_while_stopping(struct step *s)
{
	note_spawn_failure(s)->stopped = true;
	/* If nothing was started, or all of it is gone, no EMPTY would come. */
	if (s->group->state == GROUP_STOPPING && s->group->alive == 0)
		kill_all(s);
}

static void on_empty(struct step *s)
{
	/* An EMPTY sent before the last workers were started means nothing. */
	if (s->group->alive > 0)
		return;
	enter(s, GROUP_IDLE, NS_NEVER);
	act(s, GROUP_DO_TELL_GONE, 0, 0);
}

static void on_lost(struct step *s)
{
	struct group *group = s->group;
	bool was_active = group->state == GROUP_ACTIVE;
	for (size_t i = group->count; i-- > 0;) {
		struct worker *worker = &group->workers[i];
		if (worker->state == WORKER_ENDED)
			continue;
		worker->state = WORKER_ENDED;
		worker->status = (struct exit_status){ .kind = EXIT_UNKNOWN };
		worker->ended_ns = s->now_ns;
		worker->stopped = !was_active;
		if (was_active) {
			worker->reason = FAILURE_WARDEN;
			group->first = i;
		}
	}
	group->alive = 0;
	if (was_active) {
		group->failed = true;
		group->failed_ns = s->now_ns;
		act(s, GROUP_DO_TELL_FAILED, group->first, 0);
	}
	enter(s, GROUP_IDLE, NS_NEVER);
	act(s, GROUP_DO_TELL_GONE, 0, 0);
}

static void on_survivor(struct step *s)
{
	if (s->event->error == EPERM)
		s->group->deadline_ns =
			MIN(s->group->deadline_ns, ns_add(s->now_ns, GROUP_FOREIGN_NS));
}

/* After a host stood still, time has passed in which nothing could end, and news of what did end
 * may still be on its way. A timer that is late is the sign of that. */
static void on_stuck(struct step *s)
{
	bool late = s->now_ns >= ns_add(s->group->deadline_ns, GROUP_LATE_NS);
	s->group->deadline_ns = late ? ns_add(s->now_ns, GROUP_FOREIGN_NS) : NS_NEVER;
	if (late)
		return;
	act(s, GROUP_DO_TELL_STUCK, 0, 0);
}

static void on_paused(struct step *s)
{
	s->group->deadline_ns = ns_add(s->group->deadline_ns, s->event->grace_ns);
}

typedef void handler_fn(struct step *s);

/* An empty cell: the event changes nothing in that state. */
static handler_fn *const table[][GROUP_EVENT_COUNT] = {
	[GROUP_IDLE] = {
		[GROUP_EV_START] = on_start,
	},
	[GROUP_ACTIVE] = {
		[GROUP_EV_SPAWNED] = on_spawned,
		[GROUP_EV_SPAWN_FAILED] = on_spawn_failed,
		[GROUP_EV_EXITED] = on_exited,
		[GROUP_EV_EXPIRED] = on_expired,
		[GROUP_EV_EMPTY] = on_empty,
		[GROUP_EV_LOST] = on_lost,
		[GROUP_EV_STOP] = on_stop,
		[GROUP_EV_KILL] = kill_all,
	},
	[GROUP_STOPPING] = {
		[GROUP_EV_SPAWNED] = on_spawned,
		[GROUP_EV_SPAWN_FAILED] = on_spawn_failed_while_stopping,
		[GROUP_EV_EXITED] = on_exited_while_stopping,
		[GROUP_EV_EMPTY] = on_empty,
		[GROUP_EV_LOST] = on_lost,
		[GROUP_EV_STOP] = on_stop_again,
		[GROUP_EV_KILL] = kill_all,
		[GROUP_EV_TIMER] = kill_all,
		[GROUP_EV_PAUSED] = on_paused,
	},
	[GROUP_LINGERING] = {
		[GROUP_EV_EMPTY] = on_empty,
		[GROUP_EV_LOST] = on_lost,
		[GROUP_EV_STOP] = kill_all,
		[GROUP_EV_KILL] = kill_all,
		[GROUP_EV_TIMER] = kill_all,
		[GROUP_EV_PAUSED] = on_paused,
	},
	[GROUP_KILLING] = {
		[GROUP_EV_SPAWNED] = on_spawned,
		[GROUP_EV_SPAWN_FAILED] = on_spawn_failed_while_stopping,
		[GROUP_EV_EXITED] = on_exited_while_stopping,
		[GROUP_EV_SURVIVOR] = on_survivor,
		[GROUP_EV_EMPTY] = on_empty,
		[GROUP_EV_LOST] = on_lost,
		[GROUP_EV_TIMER] = on_stuck,
		[GROUP_EV_PAUSED] = on_paused,
	},
};
static_assert(ARRAY_LEN(table) == GROUP_STATE_COUNT, "every state needs a row");

void group_step(struct group *group, const struct group_event *event, uint64_t now_ns,
		struct group_actions *actions)
{
	struct step s = { group, event, now_ns, actions };
	handler_fn *handle = table[group->state][event->type];
	if (handle)
		handle(&s);
}
