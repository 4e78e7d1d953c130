/* Watches the workers of this host: timers, hangs, and the private directory through which workers
 * and users reach the job.
 *
 * It gives verdicts (on_condemned) and leaves their consequences to the group. It never signals a
 * worker's main process itself. With time for a diagnosis, it stops the worker first and collects
 * the stacks of all workers; the verdict follows. One diagnosis at a time: a worker that expires
 * during it is condemned at once.
 *
 * Whether the job hangs is for the coordinator to say (core/rounds/silence.h): the guard tells what
 * its workers do not do any more, and looks who is to blame when it is told to. */
#ifndef RUN_GUARD_H
#define RUN_GUARD_H

#include <event2/event.h>

#include "base/strv.h"
#include "base/err.h"
#include "core/worker/group.h"
#include "core/worker/hang.h"
#include "core/rounds/kept.h"
#include "core/worker/step_progress.h"
#include "run/ask/own_question.h"
#include "watch/flight_fetch.h"
#include "watch/watchdog.h"
#include "watch/worker_pages.h"

enum hang_action { HANG_ACTION_RESTART, HANG_ACTION_REPORT, HANG_ACTION_STOP };

struct guard_config {
	struct hang_policy hang;
	enum hang_action hang_action;
	uint64_t diagnose_timer_ns,
		diagnose_hang_ns; /* time for stacks before the verdict; 0: none */
	bool file_timer;	  /* serve torch's FileTimerClient */
	const char *timer_file;	  /* where; NULL: in the private directory */
	uint32_t flight;	  /* operations that PyTorch's recorder keeps; 0: it is off */
	bool warm;		  /* workers come from the template, which brings the hook */
	size_t workers;		  /* on this host, in every round */
	uint64_t keep_limit;	  /* bytes that they may keep over restarts */
	bool exclude_culprit;	  /* the host that holds the others up is left out */
};

struct guard_hooks {
	/* The worker must end. `final`: and so must the job, whatever restarts are left. */
	void (*on_condemned)(void *arg, size_t rank, enum failure_reason reason, int signal,
			     bool final);
	/* A timer has expired. */
	void (*on_expired)(void *arg, const struct watchdog_expiry *expiry);
	/* The first rejected watchdog request of its kind. */
	void (*on_rejected)(void *arg, const char *reason, const char *detail);
	/* For the coordinator, from the loop: what the workers do not do any more has changed; a
	 * worker of another host is to blame. */
	void (*on_signs)(void *arg, const struct msg_signs *signs);
	void (*on_found)(void *arg, const struct msg_found *found);
	/* A number that grows with what the worker prints. */
	uint64_t (*progress)(void *arg, size_t rank);
	/* Stops the worker (SIGSTOP) or continues it. */
	void (*hold)(void *arg, size_t rank, bool still);
	/* The file for stacks, which the guard frees; NULL: none. */
	char *(*stacks_path)(void *arg);
	/* `collectives`: what the flight records of all hosts say, and what a verdict relies on, a
	 * line each; `blame`: the same for other hosts. */
	void (*on_stacks)(void *arg, const char *stacks, const char *collectives,
			  const struct blame *blame);
	/* What guard_explain_end() began is over. */
	void (*on_end_explained)(void *arg);
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

/* Where workers give out their flight records; without a directory: there is no recorder.
 * Borrowed. */
struct flight_source guard_flight(const struct guard *guard);

/* How to ask the other hosts for their records, and who asks; both are borrowed. Before the first
 * round. */
void guard_set_asker(struct guard *guard, struct own_question *asker, const struct node_info *self);

/* The workers are descendants of this warden, from now on. */
void guard_set_warden(struct guard *guard, pid_t warden_pid);

/* A round begins: `count` workers of `world_size`, reported as `rank_base` + local rank. Adds the
 * variables of watchdog and recorder to their environment. */
void guard_begin(struct guard *guard, size_t count, size_t rank_base, size_t world_size,
		 struct strv *env);
/* Before guard_begin(): the round's workers go on from `state`. */
void guard_keep(struct guard *guard, struct ballot ballot, const struct kept_state *state);
/* What all workers have committed so far, and the bytes that they keep in all. */
void guard_kept(const struct guard *guard, struct kept_state ret_states[KEPT_STATES]);
uint64_t guard_kept_bytes(const struct guard *guard);
void guard_started(struct guard *guard, size_t rank, pid_t pid);
void guard_not_started(struct guard *guard); /* one of them */
void guard_ended(struct guard *guard, size_t rank);

/* An exception of torch.distributed has ended the worker, such as a time-out, or gloo has aborted
 * it, as it does when sizes do not match: who held it up is known while the others live. True: the
 * records are being read, the group should not know of the end before on_end_explained(). */
bool guard_explain_end(struct guard *guard, size_t rank, const struct exit_status *status);
/* What the coordinator says. */
void guard_look(struct guard *guard, const struct msg_look *look);
/* The worker has come to so many collectives. */
void guard_arrived(struct guard *guard, size_t rank, uint64_t collectives);
/* Whether it has worked or printed lately, as far as hangs are watched for. */
bool guard_works(const struct guard *guard, size_t rank);
bool guard_prints(const struct guard *guard, size_t rank);

void guard_paused(struct guard *guard, uint64_t pause_ns); /* all stood still for that long */
void guard_gone(struct guard *guard);			   /* nothing of the group is left */

struct watchdog_stats guard_stats(const struct guard *guard);
uint64_t guard_heartbeats(const struct guard *guard, size_t rank);
/* The pages of the workers of this round; borrowed. */
struct worker_pages *guard_pages(struct guard *guard);
/* What the worker told through its page, until the next round begins. */
void guard_headway(const struct guard *guard, size_t rank, struct step_progress *ret_headway);
uint64_t guard_alive_ns(const struct guard *guard, size_t rank); /* last sign of life; 0: unknown */
size_t guard_timers(const struct guard *guard,
		    size_t rank); /* armed by the worker's main process */

#endif
