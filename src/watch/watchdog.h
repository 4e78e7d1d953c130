/* The watchdog of the workers on this host: their timers, which processes may arm them, and what
 * expires.
 *
 * Requests come through channels (watch/fifo.h, watch/socket.h). The watchdog accepts a request
 * only if its process is a worker or descends from one: it opens a pidfd first, then follows the
 * parent chain up to the warden, then checks through the pidfd that the process still exists.
 * Signals go through that pidfd, so they never hit another process with the same pid. A process
 * that ends takes its timers along; its pidfd reports that, without polling.
 *
 * When a deadline passes, the watchdog reads the channels once more before it gives a worker up: a
 * release that waited in a pipe while we were slow counts. */
#ifndef WATCH_WATCHDOG_H
#define WATCH_WATCHDOG_H

#include <event2/event.h>

#include "base/list.h"
#include "core/worker/deadlines.h"

struct watchdog;

/* Why a request was rejected. All are counted, the first of each kind is reported (on_rejected). */
enum watchdog_rejection {
	REJECT_LINE,	 /* not a request; `detail` says what is wrong with it */
	REJECT_PID,	 /* 0, 1, negative, or more than a pid can be */
	REJECT_GONE,	 /* no such process */
	REJECT_FOREIGN,	 /* not a worker of this job, nor a descendant of one */
	REJECT_DEADLINE, /* NaN */
	REJECT_TOO_MANY, /* more timers than one process may have */
	REJECT_COUNT,
};

const char *watchdog_rejection_name(enum watchdog_rejection rejection);

struct watchdog_expiry {
	size_t rank; /* local rank of the worker */
	pid_t pid;   /* the process that armed the timer: the worker or a descendant */
	const char *scope;
	int signal; /* <= 0: report only, send nothing */
	uint64_t armed_ns;
	uint64_t deadline_ns;
	uint64_t late_ns; /* how long after the deadline this report comes */
	uint64_t cpu_ns;  /* CPU time the process used since the timer was armed */
	size_t others;	  /* further timers of the process, dropped if there is a signal */
};

/* All optional. Called from the loop; they may add and remove workers. */
struct watchdog_hooks {
	void (*on_expired)(void *arg, const struct watchdog_expiry *expiry);
	void (*on_rejected)(void *arg, enum watchdog_rejection rejection, const char *detail);
	void *arg;
};

struct watchdog *watchdog_new(struct event_base *base, const struct watchdog_hooks *hooks);
void watchdog_free(struct watchdog *watchdog); /* its channels must be gone */

/* The parent of all workers. Set it before requests come in. */
void watchdog_set_warden(struct watchdog *watchdog, pid_t warden_pid);

/* `count` workers are being started. A worker may send a request before we know its pid, so the
 * channels are not read until each of them was added or skipped. */
void watchdog_expect(struct watchdog *watchdog, size_t count);

/* A worker is known by its local rank from its start until the group is gone. */
void watchdog_add_worker(struct watchdog *watchdog, size_t rank, pid_t pid);
void watchdog_skip_worker(struct watchdog *watchdog); /* one that could not be started */
void watchdog_forget_all(struct watchdog *watchdog);  /* workers, processes, timers */

/* All workers and this process stood still for that long: timers do not run meanwhile. */
void watchdog_pause(struct watchdog *watchdog, uint64_t pause_ns);

/* ---- for the channels ---- */

/* 0, or -EINVAL/-ESRCH/-EPERM after counting and reporting the rejection. With `whole_worker` the
 * timer belongs to the worker's main process and outlives `pid`, one of its descendants. */
int watchdog_acquire(struct watchdog *watchdog, int64_t pid, bool whole_worker, const char *scope,
		     enum deadline_mode mode, int signal, uint64_t deadline_ns);
int watchdog_release(struct watchdog *watchdog, int64_t pid, bool whole_worker, const char *scope);

/* The local rank that `pid` belongs to, by the same rules. */
int watchdog_rank_of(struct watchdog *watchdog, int64_t pid, size_t *ret_rank);

/* Counts it, and reports it unless `detail` is NULL. */
void watchdog_reject(struct watchdog *watchdog, enum watchdog_rejection rejection,
		     const char *detail);

/* The watchdog asks a channel to read what is waiting before anything expires, or to stop reading
 * for a while. */
struct watchdog_channel {
	struct list link; /* private */
	void (*drain)(struct watchdog_channel *channel);
	void (*listen)(struct watchdog_channel *channel, bool on);
};

void watchdog_add_channel(struct watchdog *watchdog, struct watchdog_channel *channel);
void watchdog_remove_channel(struct watchdog_channel *channel);

/* Reads what is waiting in all channels now. */
void watchdog_drain(struct watchdog *watchdog);

/* ---- for reports ---- */

struct watchdog_stats {
	size_t armed; /* now */
	uint64_t requests;
	uint64_t expired;
	uint64_t rejected[REJECT_COUNT];
};

struct watchdog_stats watchdog_stats(const struct watchdog *watchdog);

/* Timers of one process: see core/worker/deadlines.h. */
const struct deadline *watchdog_timers_of(const struct watchdog *watchdog, pid_t pid);

#endif
