/* Shared by the files of the job: the loop (job.c), actions of the machines (job_act.c), and
 * requests to the job (job_ask.c). Its parts do not know of it: each takes what it uses. */
#ifndef RUN_JOB_PRIVATE_H
#define RUN_JOB_PRIVATE_H

#include <event2/event.h>

#include "nodes/callers.h"
#include "nodes/wiring.h"
#include "run/ask/answers.h"
#include "run/ask/own_question.h"
#include "core/node/holdback.h"
#include "run/checks/job_checks.h"
#include "run/job.h"
#include "run/joblog/joblog.h"
#include "run/notice.h"
#include "run/own_node.h"
#include "run/pace/pace_report.h"
#include "run/pace/still_watch.h"
#include "run/round_store.h"
#include "sys/signals.h"
#include "run/tell/happening.h"
#include "run/tell/pages.h"
#include "run/workers.h"
#include "sys/sweeper.h"

struct job {
	const struct run_config *config;
	struct job_result *result;

	struct event_base *base;
	struct event *timer, *on_signal, *on_output, *on_lifeline;
	struct signals signals;
	struct warden *warden;
	struct output *output;
	struct guard *guard;
	struct pages pages;
	struct answers *answers;
	struct own_question *asker; /* to other hosts; NULL: there are none */
	struct cause cause; /* of the round that runs: blame, words and report are known here */
	struct workers workers;
	struct telling telling;
	struct notice notice;
	struct pace_report *pace; /* NULL without a guard */
	struct still_watch still;
	struct round_store store;

	struct group group;
	struct node node;
	struct node_actions actions; /* of its last step */
	struct routes routes;	     /* who takes what the node sends */
	struct wiring *wiring;	     /* to other hosts; NULL: the job is on this one alone */
	struct job_queue queue;	     /* for both machines */
	struct holdback holdback;

	struct sweeper *sweeper; /* after the death of a warden */
	struct job_checks checks;
	struct joblog log;
	struct err no_store; /* why the current round has no store here, though it should */
	struct err no_place; /* why this host can give no address of a store */
	bool stop_told;
	bool leaves; /* a worker of the round that runs is in state D: rule: stuck */
	uint64_t
		words_ns; /* when the end of the group is told without the last words of a worker */
	bool ended;	  /* the agent has left; only output is left to write */
};

/* ---- job.c ---- */

/* Queues an event for the next job_pump(), or holds it back. */
void job_push_group(struct job *job, struct group_event event);
void job_push_node(struct job *job, struct node_event event);
void job_push_agent(struct job *job, struct agent_event event); /* as NODE_EV_HOST */

/* For parts of the job, which have an event for the agent: the latter has it taken at once, the
 * former with the next job_pump(). */
void job_keep_agent_event(void *job, const struct agent_event *event);
void job_take_agent_event(void *job, const struct agent_event *event);

/* What was held back is queued. */
void job_release(struct job *job, enum hold why);

/* Has the machines take all queued events, including those that this causes; then tells what
 * happened and waits for the next event. */
void job_pump(struct job *job);

/* ---- job_act.c ---- */

/* The output of a worker has been read to its end, or it takes too long: if the end of the group
 * waits for that, it is told. */
void job_take_words(struct job *job);

/* Steps one of the machines and carries out its actions: only job_pump() calls it. */
void job_take(void *arg, const struct job_event *event);

/* Opens the workers' store of the next round and has the node told its address; ends the one of the
 * last round. */
int job_offer_store(struct job *job, struct err *err);

/* `why`: it could not even be asked for; NULL: the start failed. */
void job_not_started(struct job *job, size_t rank, int error, const struct err *why);

/* ---- job_mpi.c ---- */

void job_open_mpi(struct job *job); /* after the loop */

/* The coordinator is too old for what the workers' MPI needs. */
void job_refuse_mpi(struct job *job);

/* ---- job_ask.c ---- */

int job_start_guard(struct job *job, struct err *err);
int job_open_pages(struct job *job, struct err *err);
void job_open_log(struct job *job);	/* before the pages */
void job_open_answers(struct job *job); /* after them */
void job_join_others(struct job *job);
int job_open_store(struct job *job, struct err *err);
void job_stop(struct job *job, int signal);
void job_tell_stop(struct job *job, int signal); /* it has been requested */
void job_on_lifeline(evutil_socket_t fd, short what, void *arg);

#endif
