/* The life of the worker group on this host: started as a unit, stopped as a unit, gone as a unit.
 *
 * Pure: group_step() takes one event and the time and appends actions. The shell carries them out
 * through the warden; the agent core above says start, stop and kill and hears FAILED at once, DONE
 * when every worker has ended well, and GONE when nothing of the group is alive any more. Each
 * start ends in exactly one GONE, and between them there is at most one FAILED or DONE. STUCK says
 * that GONE may never come: something neither dies nor may be killed, and nothing new should be
 * started here.
 *
 * A worker has a main process, known by its local rank. What mains leave behind when they end is
 * called the orphans: the warden inherits them and cannot tell whose they were, which is why they
 * are addressed as a whole.
 *
 *     IDLE ──start──► ACTIVE ──all exit 0──► LINGERING ──2 s──► KILLING
 *                       │ failure, stop                            ▲
 *                       └──────────► STOPPING ──grace──────────────┤        any ──empty──► IDLE
 *     any ──kill, second stop──────────────────────────────────────┘
 */
#ifndef CORE_WORKER_GROUP_H
#define CORE_WORKER_GROUP_H

#include "base/actions.h"
#include "base/clock.h"
#include "core/worker/exit_status.h"

#define GROUP_LINGER_NS \
	(2 * NS_PER_S) /* for what successful workers left running, such as uploads */
#define GROUP_STUCK_NS (30 * NS_PER_S) /* alive this long after the kill: it will not end */
#define GROUP_FOREIGN_NS NS_PER_S      /* the same for a process that we may not kill */
#define GROUP_LATE_NS (50 * NS_PER_MS) /* a timer this late: the host stood still */

enum group_state {
	GROUP_IDLE,
	GROUP_ACTIVE,	 /* workers are being started or run */
	GROUP_STOPPING,	 /* the workers got the stop signal and have until the deadline */
	GROUP_LINGERING, /* all workers succeeded; what they left running got a stop signal */
	GROUP_KILLING,	 /* everything was killed; the kernel has not ended all of it yet */
	GROUP_STATE_COUNT,
};

/* Why a worker counts as failed. */
enum failure_reason {
	FAILURE_EXIT,	     /* it ended with an exit code or by a signal */
	FAILURE_SPAWN,	     /* it could not be started: `spawn_errno` */
	FAILURE_WARDEN,	     /* the warden died, so how the worker ended is unknown */
	FAILURE_TIMER,	     /* a watchdog expired */
	FAILURE_HANG,	     /* no sign of life for too long */
	FAILURE_ABORT,	     /* it asked for the end of the job: MPI_Abort */
	FAILURE_UNFINALIZED, /* it ended, with whatever code, between MPI_Init and MPI_Finalize */
	FAILURE_PMI,	     /* it sent its launcher what no MPI library sends */
	FAILURE_LOST,	     /* no worker: a host that the job needs was lost, and is not back */
	FAILURE_LEFT,	     /* the same of a host whose muster left: `status` is its signal */
	FAILURE_REASON_COUNT,
};

const char *failure_reason_name(enum failure_reason reason);

static inline bool failure_reason_is_mpi(enum failure_reason reason)
{
	return reason >= FAILURE_ABORT && reason <= FAILURE_PMI;
}

/* A host is the cause, not a worker. */
static inline bool failure_reason_is_host(enum failure_reason reason)
{
	return reason == FAILURE_LOST || reason == FAILURE_LEFT;
}

struct worker {
	enum worker_state {
		WORKER_NEW, /* to be started */
		WORKER_RUNNING,
		WORKER_ENDED, /* `status` is final */
		WORKER_STATE_COUNT,
	} state;
	struct exit_status status;
	enum failure_reason reason;
	int spawn_errno;
	bool stopped;	     /* it ended after we stopped it: a consequence, not a cause */
	bool condemned;	     /* a watchdog gave it up: `reason` counts, however it ends */
	uint64_t started_ns; /* 0: not yet */
	uint64_t ended_ns;
};

struct group {
	enum group_state state;
	struct worker *workers; /* by local rank */
	size_t count;
	size_t alive;	    /* main processes started, or being started, and not yet ended */
	int stop_signal;    /* for the other workers when one fails */
	uint64_t grace_ns;  /* and how long they may take */
	int signal;	    /* of the current stop */
	uint64_t failed_ns; /* when the first failure was seen, while `failed` */
	uint64_t deadline_ns;
	bool done; /* all workers ended well */
	bool failed;
	size_t first; /* the first failure, while `failed` */
};

enum group_event_type {
	GROUP_EV_START, /* .count workers */
	GROUP_EV_SPAWNED,
	GROUP_EV_SPAWN_FAILED, /* .rank, .error */
	/* .rank, .status, .when_ns: the true time of death; .reason: 0, or why it has failed
	 * whatever its status is */
	GROUP_EV_EXITED,
	/* .rank, .reason, .signal: a watchdog gave it up, or MPI in it; .status: the one that
	 * counts, whatever it ends with; unknown: that */
	GROUP_EV_EXPIRED,
	/* .error: a process could not be killed; EPERM: we may not kill it */
	GROUP_EV_SURVIVOR,
	GROUP_EV_EMPTY,	 /* the warden has no descendant left */
	GROUP_EV_LOST,	 /* the warden is gone; its descendants have been killed */
	GROUP_EV_STOP,	 /* .signal, .grace_ns; a second one kills */
	GROUP_EV_KILL,	 /* end everything now */
	GROUP_EV_TIMER,	 /* group_deadline_ns() has passed */
	GROUP_EV_PAUSED, /* .grace_ns: the whole host stood still for that long */
	GROUP_EVENT_COUNT,
};

struct group_event {
	enum group_event_type type;
	size_t rank;
	size_t count;
	int error;
	int signal;
	enum failure_reason reason;
	uint64_t grace_ns;
	uint64_t when_ns;
	struct exit_status status;
};

enum group_action_type {
	GROUP_DO_SPAWN, /* .rank */
	/* .rank, .signal: the worker's process group, as a terminal does */
	GROUP_DO_SIGNAL,
	GROUP_DO_SIGNAL_MAIN,	 /* .rank, .signal: its main process alone */
	GROUP_DO_SIGNAL_ORPHANS, /* .signal: orphans that have not had it yet */
	GROUP_DO_KILL_ALL,	 /* every descendant, until none is left */
	GROUP_DO_TELL_FAILED,	 /* .rank: the first failure */
	GROUP_DO_TELL_DONE,
	GROUP_DO_TELL_GONE,
	GROUP_DO_TELL_STUCK,
};

struct group_action {
	enum group_action_type type;
	size_t rank;
	int signal;
};

ACTIONS_OF(group);

/* `stop_signal` and `grace_ns` apply to the other workers when one fails. */
void group_init(struct group *group, int stop_signal, uint64_t grace_ns);
void group_done(struct group *group);

void group_step(struct group *group, const struct group_event *event, uint64_t now_ns,
		struct group_actions *actions);

/* When GROUP_EV_TIMER is due; NS_NEVER if the group waits for nothing. */
uint64_t group_deadline_ns(const struct group *group);

#endif
