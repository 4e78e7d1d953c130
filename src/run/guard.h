/* Who watches the workers of this host: timers, hangs, and the private directory through which
 * workers and people reach the job.
 *
 * It gives verdicts (on_condemned) and leaves their consequences to the group's policy. It never
 * signals a worker's main process itself. With time for a diagnosis, the worker is held first and
 * the stacks of all are collected; the verdict follows. One diagnosis at a time: who expires during
 * it is condemned at once.
 */
#ifndef RUN_GUARD_H
#define RUN_GUARD_H

#include <event2/event.h>

#include "base/strv.h"
#include "base/err.h"
#include "core/worker/group.h"
#include "core/worker/hang.h"
#include "watch/watchdog.h"

enum hang_action { HANG_ACTION_RESTART, HANG_ACTION_REPORT, HANG_ACTION_STOP };

struct guard_config {
	struct hang_policy hang;
	enum hang_action hang_action;
	uint64_t diagnose_timer_ns,
		diagnose_hang_ns; /* time for stacks before the verdict; 0: none */
	bool file_timer;	  /* serve torch's FileTimerClient */
	const char *timer_file;	  /* where; NULL: in the private directory */
};

struct guard_hooks {
	/* The worker must go. `final`: and the job with it, whatever restarts are left. */
	void (*on_condemned)(void *arg, size_t rank, enum failure_reason reason, int signal,
			     bool final);
	/* A timer is over, whatever follows from it. */
	void (*on_expired)(void *arg, const struct watchdog_expiry *expiry);
	/* The first watchdog request of its kind that was not obeyed. */
	void (*on_rejected)(void *arg, const char *reason, const char *detail);
	/* A number that grows with what the worker prints. */
	uint64_t (*progress)(void *arg, size_t rank);
	/* Makes the worker stand still (SIGSTOP) or go on. */
	void (*hold)(void *arg, size_t rank, bool still);
	/* Where stacks are to be written, for the guard to free; NULL: nowhere. */
	char *(*stacks_path)(void *arg);
	void (*on_stacks)(void *arg, const char *text);
	void *arg;
};

struct guard;

/* A host without a place for the private directory still runs jobs: then there are no channels,
 * which is logged. Only a FIFO that was asked for and cannot be made is an error. */
int guard_new(const struct guard_config *config, struct event_base *base,
	      const struct guard_hooks *hooks, struct guard **ret, struct err *err);
void guard_free(struct guard *guard);

/* The path of a file in the private directory, for the caller to free; NULL if there is none. */
char *guard_file(const struct guard *guard, const char *name);

/* A round begins: `count` workers below this warden, to be called `rank_base` + local rank. Adds
 * the watchdog's variables to their environment. */
void guard_begin(struct guard *guard, pid_t warden_pid, size_t count, size_t rank_base,
		 struct strv *env);
void guard_started(struct guard *guard, size_t rank, pid_t pid);
void guard_not_started(struct guard *guard); /* one of them */
void guard_ended(struct guard *guard, size_t rank);
void guard_gone(struct guard *guard); /* nothing of the group is left */

struct watchdog_stats guard_stats(const struct guard *guard);
uint64_t guard_heartbeats(const struct guard *guard, size_t rank);
uint64_t guard_alive_ns(const struct guard *guard,
			size_t rank); /* last sign of life; 0: not looked at */
size_t guard_timers(const struct guard *guard,
		    size_t rank); /* armed by the worker's main process */

#endif
