#include "sys/sweeper.h"

#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sys/proctree.h"
#include "sys/warden.h"

/* How soon to look again: the kernel tells of the end of a child, but not of the moment when a fork
 * loop stops. What does not die is looked for less and less often. */
#define PERIOD_MIN_NS (5 * NS_PER_MS)
#define PERIOD_MAX_NS (500 * NS_PER_MS)

struct sweeper {
	struct event *timer, *on_child;
	uint64_t period_ns;   /* 0: not sweeping */
	struct warden **lost; /* those whose heirs are still at work */
	size_t lost_count, lost_cap;
	bool idle; /* the last sweep met nothing */
	sweeper_clear_fn *on_clear;
	void *arg;
};

/* Kills what is left once. */
static void sweep(struct sweeper *sweeper)
{
	AUTO(pids_done) struct pids heirs = PIDS_INIT;
	for (size_t i = 0; i < sweeper->lost_count; i++)
		pids_add(&heirs, warden_heir(sweeper->lost[i]));
	sweeper->idle = proctree_sweep(&heirs) == 0;
}

/* Lets go of the wardens whose heirs have ended. What a killed heir had is ours from then on. */
static void settle(struct sweeper *sweeper)
{
	size_t kept = 0;
	for (size_t i = 0; i < sweeper->lost_count; i++)
		if (!warden_try_free(sweeper->lost[i], sweeper->idle))
			sweeper->lost[kept++] = sweeper->lost[i];
	sweeper->lost_count = kept;
}

static void look(struct sweeper *sweeper)
{
	settle(sweeper);
	sweep(sweeper);
	if (sweeper->idle && sweeper->lost_count == 0) {
		sweeper->period_ns = 0;
		event_del(sweeper->timer);
		sweeper->on_clear(sweeper->arg);
		return;
	}
	struct timeval period = clock_timeval(sweeper->period_ns);
	event_add(sweeper->timer, &period);
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct sweeper *sweeper = arg;
	sweeper->period_ns = MIN(sweeper->period_ns * 2, PERIOD_MAX_NS);
	look(sweeper);
}

static void on_child(evutil_socket_t sig UNUSED, short what UNUSED, void *arg)
{
	struct sweeper *sweeper = arg;
	if (sweeper->period_ns)
		look(sweeper);
	else
		proctree_reap_orphans();
}

struct sweeper *sweeper_new(struct event_base *base, sweeper_clear_fn *on_clear, void *arg)
{
	struct sweeper *sweeper = NEW(struct sweeper);
	sweeper->on_clear = on_clear;
	sweeper->arg = arg;
	sweeper->timer = evtimer_new(base, on_timer, sweeper);
	sweeper->on_child = evsignal_new(base, SIGCHLD, on_child, sweeper);
	event_add(sweeper->on_child, NULL);
	return sweeper;
}

void sweeper_free(struct sweeper *sweeper)
{
	if (!sweeper)
		return;
	event_free(sweeper->timer);
	event_free(sweeper->on_child);
	for (size_t i = 0; i < sweeper->lost_count; i++)
		warden_free(sweeper->lost[i]);
	free(sweeper->lost);
	free(sweeper);
}

void sweeper_start(struct sweeper *sweeper, struct warden *lost)
{
	ARRAY_RESERVE(sweeper->lost, sweeper->lost_count, sweeper->lost_cap);
	sweeper->lost[sweeper->lost_count++] = lost;
	sweeper->idle = false;
	sweeper->period_ns = PERIOD_MIN_NS;
	event_active(sweeper->timer, EV_TIMEOUT, 0);
}
