/* Watches the workers of this host: timers, hangs, and the private directory through which workers
 * and users reach the job.
 *
 * It gives verdicts (on_condemned) and leaves their consequences to the group. It never signals a
 * worker's main process itself. With time for a diagnosis, it stops the worker first and collects
 * the stacks of all workers; the verdict follows. One diagnosis at a time: a worker that expires
 * during it is condemned at once. */
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
	/* The worker must end. `final`: and so must the job, whatever restarts are left. */
	void (*on_condemned)(void *arg, size_t rank, enum failure_reason reason, int signal,
			     bool final);
	/* A timer has expired. */
	void (*on_expired)(void *arg, const struct watchdog_expiry *expiry);
	/* The first rejected watchdog request of its kind. */
	void (*on_rejected)(void *arg, const char *reason, const char *detail);
	/* A number that grows with what the worker prints. */
	uint64_t (*progress)(void *arg, size_t rank);
	/* Stops the worker (SIGSTOP) or continues it. */
	void (*hold)(void *arg, size_t rank, bool still);
	/* The file for stacks, which the guard frees; NULL: none. */
	char *(*stacks_path)(void *arg);
	void (*on_stacks)(void *arg, const char *text);
	void *arg;
};

struct guard;

/* Without a private directory the job still runs, but without channels, which is logged. Only a
 * FIFO that was asked for and cannot be made is an error. */
int guard_new(const struct guard_config *config, struct event_base *base,
	      const struct guard_hooks *hooks, struct guard **ret, struct err *err);
void guard_free(struct guard *guard);

/* The path of a file in the private directory; the caller frees it. NULL if there is no
 * directory. */
char *guard_file(const struct guard *guard, const char *name);

/* The workers are descendants of this warden, from now on. */
void guard_set_warden(struct guard *guard, pid_t warden_pid);

/* A round begins: `count` workers, reported as `rank_base` + local rank. Adds the watchdog's
 * variables to their environment. */
void guard_begin(struct guard *guard, size_t count, size_t rank_base, struct strv *env);
void guard_started(struct guard *guard, size_t rank, pid_t pid);
void guard_not_started(struct guard *guard); /* one of them */
void guard_ended(struct guard *guard, size_t rank);
void guard_paused(struct guard *guard, uint64_t pause_ns); /* all stood still for that long */
void guard_gone(struct guard *guard);			   /* nothing of the group is left */

struct watchdog_stats guard_stats(const struct guard *guard);
uint64_t guard_heartbeats(const struct guard *guard, size_t rank);
uint64_t guard_alive_ns(const struct guard *guard, size_t rank); /* last sign of life; 0: unknown */
size_t guard_timers(const struct guard *guard,
		    size_t rank); /* armed by the worker's main process */

#endif
