/* One host's half of a batch: turns wardens, timers and signals into events for its slots
 * (core/dispatch/batch.h), and carries their actions out. Where the orders come from, and what
 * becomes of their results, is the matter of a source: the list of the batch (batch/dispatch.h) or
 * a coordinator elsewhere (batch/many). */
#ifndef BATCH_RUNNER_H
#define BATCH_RUNNER_H

#include "batch/config.h"
#include "batch/plan.h"
#include "proto/orders.h"
#include "sys/memory_group.h"

struct warden;
struct runner;
struct ending;
struct event_base;
struct outputs;
struct pipe_orders;
struct printer;

struct order_source {
	struct worklist list;
	const struct orders *orders; /* items of the list have an index into these */
	size_t variant_step; /* distance in `orders` from one variant of an order to the next */
	/* one per enum batch_hook, the absent ones empty; or as many for every order */
	const struct orders *hooks;
	struct pipe_orders *pipe; /* makes the orders; NULL: they are all there */
	const char *results;	  /* where their outputs are kept by name; NULL: they are not */
	const struct order_source_ops *ops;
	void *arg;
};

struct order_source_ops {
	void (*started)(void *arg, const struct batch_order *order);
	void (*ended)(void *arg, struct ending *ending); /* an attempt */
	/* Its output is measured. May take the descriptors of the ending. */
	void (*measured)(void *arg, struct ending *ending);
	/* Of an open list: fill this one in, and answer with BATCH_OFFER or BATCH_CLOSED. */
	void (*fetch)(void *arg, struct batch_order *order);
};

/* Whose batch it is. */
struct runner_owner {
	/* Before the loop: the source to begin with, borrowed; NULL: `err` says why there is none.
	 */
	struct order_source *(*open)(void *arg, struct runner *runner, struct err *err);
	void (*stepped)(void *arg);	       /* the slots have taken a step */
	void (*idle)(void *arg);	       /* BATCH_END */
	void (*signalled)(void *arg, int sig); /* also SIGWINCH and SIGUSR1 */
	int (*finish)(void *arg);	       /* after the loop: the exit code */
	void (*close)(void *arg, int code);    /* before the loop is freed */
};

struct runner_job {
	const struct batch_config *config;
	struct batch_plan *plan;
	struct batch_opts opts;
	struct warden **wardens; /* plan->jobs of them; the runner may replace one */
	struct start_ring *ring; /* of all wardens; NULL: none */
	struct measure *measure;
	const struct memory_base *memory; /* where orders get groups; its path NULL: they do not */
	const struct runner_owner *owner;
	void *owner_arg;
};

void runner_post(struct runner *runner, const struct batch_event *event);
/* Orders come from there from now on; see batch_adopt(). */
void runner_adopt(struct runner *runner, struct order_source *source);
struct event_base *runner_base(const struct runner *runner);
const struct batch *runner_batch(const struct runner *runner);
struct printer *runner_printer(const struct runner *runner);
struct outputs *runner_outputs(const struct runner *runner);
void runner_end(struct runner *runner);		     /* the loop */
int runner_stop_signal(const struct runner *runner); /* 0: none came */
/* Nothing can run here any more; not 0: the exit code of that. */
void runner_fail(struct runner *runner, const struct err *err);
int runner_failed(const struct runner *runner);

/* Returns the exit code. */
int runner_run(const struct runner_job *job);

#endif
