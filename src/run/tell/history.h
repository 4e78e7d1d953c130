/* What happened in a job: its attempts, the failures in each, and how it ended. The report and the
 * exit code are made from it.
 *
 * Times are monotonic nanoseconds; `wall_offset_ns` turns them into wall time for display. */
#ifndef RUN_TELL_HISTORY_H
#define RUN_TELL_HISTORY_H

#include "base/buf.h"
#include "core/worker/attempt.h"
#include "core/worker/exit_status.h"
#include "core/worker/step_progress.h"
#include "core/worker/group.h"
#include "core/rounds/agent.h"
#include "run/checks/node_table.h"

#define HISTORY_HOST_MAX 256
#define HISTORY_FIRST_MAX 16	/* attempts that are kept from the first on */
#define HISTORY_ATTEMPTS_MAX 64 /* and with the last ones */
#define HISTORY_TAILS_MAX 16	/* attempts whose output is kept, counted from the last */

/* One worker that failed. */
struct history_failure {
	uint32_t rank, local_rank, group_rank;
	uint64_t id; /* of its start (run/workers.h); 0: on another node */
	pid_t pid;   /* 0: it was never started */
	char host[HISTORY_HOST_MAX];
	enum failure_reason reason;
	int spawn_errno; /* with FAILURE_SPAWN */
	struct exit_status status;
	bool first;	/* the first cause: named by the group, then by the coordinator */
	bool elsewhere; /* on another node, which has its output */
	bool stopped;	/* it ended after we stopped it: a consequence, not a cause */
	uint64_t started_ns, ended_ns;
	char *error_file; /* the file for its error; NULL: none */
	bool captured;	  /* `tail` has the end of its stderr; otherwise that went to ours */
	struct buf tail;
};

/* One worker that left as agreed (core/worker/stop_plan.h). */
struct history_left {
	uint32_t rank;
	uint64_t step; /* after which */
	bool has_saved;
	uint64_t saved; /* the last step that it has saved, if it told */
};

/* One life of the worker group. */
struct history_attempt {
	uint32_t restart_count;
	uint32_t world_size;
	enum attempt_end end;
	uint64_t started_ns, ended_ns;
	struct history_failure *failures; /* in the order of their deaths */
	size_t count, cap;
	struct step_progress_span steps; /* of the workers of this host */
	struct cause *ruled; /* what the coordinator says ended it; NULL: nothing, or not yet */
	struct history_left *left; /* those that left as agreed, by rank */
	size_t left_count;
	char *stacks;	    /* of all workers before one was given up; NULL: not read */
	char *collectives;  /* what their flight records said then; NULL: not read */
	uint64_t oom_kills; /* that the kernel had counted in our cgroup when it began */
	bool oom_kill;	    /* one more when the first worker failed */
	char *kernel;	    /* what the kernel logged meanwhile; NULL: nothing, or not readable */
};

/* Attempts between the first and the last ones, of which only numbers are kept. */
struct history_forgotten {
	size_t count;
	uint64_t causes[FAILURE_REASON_COUNT]; /* of those that had one */
	uint64_t others[ATTEMPT_END_COUNT];    /* the rest */
};

struct history {
	uint64_t wall_offset_ns;
	uint64_t started_ns, ended_ns;
	char host[HISTORY_HOST_MAX]; /* this one */
	struct history_attempt *attempts;
	size_t count, cap;
	struct history_forgotten forgotten; /* after the first HISTORY_FIRST_MAX */
	int stop_signal;		    /* it asked muster to end; 0: none */
	struct node_table nodes;	    /* if this process coordinated */
	bool restart_asked;		    /* a user asked for the end of the attempt under way */
};

#define HISTORY_INIT ((struct history){ .attempts = NULL })

void history_begin(struct history *history, uint64_t now_ns);
void history_end(struct history *history, uint64_t now_ns);
void history_done(struct history *history);

/* An attempt begins; history_add() and history_end_attempt() refer to it. */
void history_begin_attempt(struct history *history, uint32_t restart_count, uint32_t world_size,
			   uint64_t now_ns);
void history_end_attempt(struct history *history, enum attempt_end end, uint64_t now_ns);

/* A zeroed failure on this host for the caller to fill in; valid until the next call. */
struct history_failure *history_add(struct history *history);

/* Adds up the attempts by their end: those with a first cause by its reason, the others. Without
 * the last one unless `all`. */
void history_count(const struct history *history, bool all, struct history_forgotten *ret_counts);

/* NULL before the first attempt. */
struct history_attempt *history_last(const struct history *history);

/* What the coordinator says ended the attempt, wherever it happened: from now on its first
 * cause. */
void history_blame(struct history *history, const struct cause *cause, uint64_t now_ns);

/* The failure of the worker with this start; NULL: none is recorded. */
struct history_failure *history_find(const struct history *history, uint64_t id);

/* The first cause; NULL if there is none. */
const struct history_failure *history_cause(const struct history_attempt *attempt);

/* As job_exit_code(), for a job that came to `kind`. */
int history_exit_code(const struct history *history, enum outcome_kind kind);

/* The code with which `muster run` ends, as its options have it. */
struct run_config;
int history_final_code(const struct history *history, const struct outcome *outcome,
		       const struct run_config *config);

#endif
