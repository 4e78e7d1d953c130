/* Keeps the guard's list of workers. */
#include "run/tell/happening.h"

static void on_started(struct telling *telling, const struct happening *happening)
{
	guard_started(telling->guard, happening->rank, telling->workers->pids[happening->rank]);
}

static void on_not_started(struct telling *telling, const struct happening *happening UNUSED)
{
	guard_not_started(telling->guard);
}

static void on_exited(struct telling *telling, const struct happening *happening)
{
	guard_ended(telling->guard, happening->rank);
}

static void on_gone(struct telling *telling, const struct happening *happening UNUSED)
{
	guard_gone(telling->guard);
}

const struct listener listen_guard = {
	.on = {
		[HAPPENED_WORKER_STARTED] = on_started,
		[HAPPENED_WORKER_NOT_STARTED] = on_not_started,
		[HAPPENED_WORKER_EXITED] = on_exited,
		[HAPPENED_GROUP_GONE] = on_gone,
	},
};
