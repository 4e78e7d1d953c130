/* What happens in a job. The job announces each happening once; every part that records or shows it
 * is a listener with a function for each happening that it handles. One table (happening.c) lists
 * the listeners, in the order of their calls.
 *
 * Telling takes long: lines are formatted, events written. So what is to be done comes first, such
 * as signalling the other workers when one has died: TELL_LATER() keeps what happened until
 * happening_flush(), in order. Listeners read the data of the job only then; what they need of it
 * must still be there.
 *
 * Listeners record, print and count. They decide nothing and push no step to the machines. */
#ifndef RUN_TELL_HAPPENING_H
#define RUN_TELL_HAPPENING_H

#include "core/rounds/agent.h"
#include "core/worker/standstill.h"
#include "run/guard.h"
#include "run/tell/events.h"
#include "run/tell/steps.h"
#include "run/tell/trainer.h"
#include "run/workers.h"

enum happening_kind {
	HAPPENED_JOB_STARTED,
	HAPPENED_RESTART,	 /* restarts: the group of the last attempt starts again */
	HAPPENED_ROUND_FORMED,	 /* formed: workers_begin() has prepared the round */
	HAPPENED_WORKER_STARTED, /* rank */
	/* rank; why: it could not be requested; NULL: the start failed */
	HAPPENED_WORKER_NOT_STARTED,
	HAPPENED_WORKER_EXITED,	   /* rank, ended */
	HAPPENED_WORKER_DRAINED,   /* id: all that this start wrote has been read */
	HAPPENED_WORKER_CONDEMNED, /* rank, reason, signal */
	HAPPENED_TIMER_EXPIRED,	   /* rank, expiry */
	HAPPENED_TIMER_REJECTED,   /* text, detail: a request to the watchdog */
	HAPPENED_STACKS_READ,	   /* text: of all workers, before one is given up */
	HAPPENED_HANG_EXPLAINED,   /* text: what the flight records of all ranks say, lines */
	HAPPENED_STOP_REQUESTED,   /* signal: muster must end */
	HAPPENED_RESTART_REQUESTED,
	HAPPENED_NOTICE,     /* notice: the workers of the job are to leave or to save together */
	HAPPENED_AGREED,     /* plan: they do so after its step */
	HAPPENED_STRAGGLER,  /* rank, straggler: it holds the others up, or no longer does */
	HAPPENED_STANDSTILL, /* standstill: the steps of this host's workers stopped, or go on */
	HAPPENED_HOST_LOST,  /* cause: the round ends because of it */
	HAPPENED_GROUP_STOPPING, /* cause, which may be NULL: the agent ends the round */
	HAPPENED_GROUP_FAILED,	 /* rank: the first failure */
	HAPPENED_GROUP_DONE,
	HAPPENED_GROUP_GONE,
	HAPPENED_GROUP_STUCK,
	HAPPENED_SURVIVOR, /* ended: a process outlives the killing */
	HAPPENED_WARDEN_LOST,
	HAPPENED_JOB_DECIDED, /* outcome: the agent has left, only output is left to write */
	HAPPENED_JOB_ENDED,   /* outcome: the loop is over; NULL: it never ran */
	HAPPENING_COUNT,
};

/* All pointers are borrowed for the call; TELL_LATER() copies what they point to. */
struct happening {
	enum happening_kind kind;
	uint64_t when_ns; /* 0: now */
	size_t rank;	  /* local */
	union {
		const struct msg_formed *formed;
		const struct warden_event *ended;
		const struct watchdog_expiry *expiry;
		const struct outcome *outcome;
		const struct cause *cause;
		const struct err *why;
		const void *data; /* each of these */
		uint64_t id;
		uint32_t restarts;
		const struct stop_plan *plan;
		struct {
			enum plan_kind kind;
			int signal; /* 0: a user asked for it */
		} notice;
		struct {
			const struct straggler_news *news;
			const char *why;   /* as far as the kernel knows; "": it is not known */
			const char *group; /* of collectives; "": not known, or of steps */
		} straggler;
		struct {
			enum standstill_news news;
			uint64_t lasted_ns, usual_ns, step;
			bool first_host; /* of the job */
		} standstill;
		struct {
			enum failure_reason reason;
			int signal;
		};
		struct {
			const char *text, *detail;
		};
	};
};

/* The data that listeners read and write, and what is to be told to them. */
struct telling {
	/* Borrowed, for as long as this is used. */
	const struct run_config *config;
	const struct workers *workers;
	const struct group *group;
	struct history *history;
	struct output *output;
	struct guard *guard; /* NULL until it is made: no worker is started before */

	struct events events;
	struct steps steps;
	struct trainer *trainer;  /* NULL: nobody wants to be told of the progress */
	uint64_t lost_timeout_ns; /* a lost host is waited for */
	uint64_t cause_id;  /* the start that failed first in the last failed attempt; 0: none */
	bool cause_drained; /* all that it wrote has been read */

	struct happening *later;
	size_t later_count, later_cap;
};

typedef void happening_fn(struct telling *telling, const struct happening *happening);

struct listener {
	bool (*is_wanted)(const struct run_config *config); /* NULL: always */
	happening_fn *on[HAPPENING_COUNT];		    /* NULL: does not care */
};

extern const struct listener listen_log, listen_history, listen_steps, listen_output, listen_events,
	listen_torch_events, listen_trainer;

/* At once, after what waits. */
void happening_tell(struct telling *telling, const struct happening *happening);

/* Only of kinds that happening.c can copy. */
void happening_tell_later(struct telling *telling, const struct happening *happening);

/* Tells what waits. */
void happening_flush(struct telling *telling);

#define TELL(telling, what, ...) \
	happening_tell(telling, &(struct happening){ .kind = (what), __VA_ARGS__ })
#define TELL_LATER(telling, what, ...) \
	happening_tell_later(telling, &(struct happening){ .kind = (what), __VA_ARGS__ })

#endif
