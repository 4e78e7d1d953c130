/* Events: one JSON object per line for each event of a job. One table has them all;
 * muster-events(7) documents them. */
#ifndef PROTO_EVENT_H
#define PROTO_EVENT_H

#include "base/buf.h"

struct story;

enum event_kind {
	EVENT_JOB_STARTED,
	EVENT_ROUND_FORMED,
	EVENT_WORKER_STARTED,
	EVENT_WORKER_EXITED,
	EVENT_GROUP_FAILED,
	EVENT_GROUP_DONE,
	EVENT_GROUP_GONE,
	EVENT_WORKER_CONDEMNED,
	EVENT_STOP_REQUESTED,
	EVENT_RESTART_REQUESTED,
	EVENT_GROUP_RESTART,
	EVENT_TIMER_EXPIRED,
	EVENT_TIMER_REJECTED,
	EVENT_HANG_EXPLAINED,
	EVENT_NOTICE_GIVEN,
	EVENT_NOTICE_AGREED,
	EVENT_STRAGGLER_FOUND,
	EVENT_STRAGGLER_GONE,
	EVENT_STANDSTILL_BEGAN,
	EVENT_STANDSTILL_ENDED,
	EVENT_JOB_ENDED,
	EVENT_KIND_COUNT,
};

/* Members of every event. `round` counts the rounds of this job on this host, from 1; 0: before
 * them. */
struct event_head {
	const char *run_id;
	const char *host;
	uint64_t sequence;
	uint64_t wall_ns;
	uint64_t mono_ns; /* since the job began on this host */
	uint64_t round;
	uint64_t epoch, ballot_round; /* the ballot of the round; round 0: none yet */
	uint64_t restarts;
};

#define EVENT_NO_RANK (-1)
/* Members that only some events have; those left at zero (rank: EVENT_NO_RANK) are not written. */
struct event_body {
	int64_t rank;
	int64_t local_rank;
	pid_t pid;
	uint64_t world_size;
	uint64_t nodes; /* of the round; with it, our rank among them */
	uint64_t group_rank;
	const char *reason; /* of a failure, a restart or a rejection */
	/* what exactly was rejected, why a worker could not be started, who holds the others up,
	 * and why */
	const char *detail;
	const char *scope;    /* of a timer */
	const char *status;   /* "exit code 3", "SIGKILL" */
	const int *exit_code; /* NULL: none */
	const char *signal;
	const char *error_file;		   /* the file for an exception of the worker */
	const uint64_t *step, *saved_step; /* of a worker that told them; NULL: none */
	const uint64_t *kept_step;	   /* of the state that all ranks have kept; NULL: none */
	/* Of a straggler; written where it is of steps, or of collectives of a group. */
	uint64_t times, of_steps, of_collectives, lag_us;
	const char *group; /* NULL: none */
	bool stopped; /* a worker ended after muster had stopped it: a consequence, not a cause */
	const struct story *story;		 /* of a job that is over; NULL: none */
	uint64_t still_ms, usual_ms;		 /* of a standstill */
	uint64_t user_us, system_us, max_rss_kb; /* of a worker that ended; written with `status` */
};

/* Appends the line with its newline. */
void event_line(struct buf *out, enum event_kind kind, const struct event_head *head,
		const struct event_body *body);

#endif
