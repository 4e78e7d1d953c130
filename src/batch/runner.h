/* The loop of a batch: turns wardens, timers and signals into events for core/batch, and carries
 * its actions out. */
#ifndef BATCH_RUNNER_H
#define BATCH_RUNNER_H

#include "batch/config.h"
#include "batch/journal.h"
#include "batch/pipe/pipe.h"
#include "batch/plan.h"
#include "proto/orders.h"
#include "sys/memory_group.h"

struct warden;
struct runner;
struct ending;
struct event_base;
struct outputs;
struct printer;

/* Where orders come from and results go to, if not a list and a file here (batch/many). */
struct runner_source {
	void (*begin)(void *arg, struct runner *runner); /* before the loop */
	void (*started)(void *arg, const struct batch_order *order);
	/* An attempt is over. May take the descriptors of the ending. */
	void (*ended)(void *arg, struct ending *ending);
	/* Under which number the order is here now. */
	uint32_t (*lease)(void *arg, const struct batch_order *order);
	void (*signalled)(void *arg, int sig); /* the user wants an end */
	void (*idle)(void *arg);	       /* nothing runs and nothing will run */
	int (*finish)(void *arg);	       /* after the loop: the exit code */
	void (*close)(void *arg);	       /* before the loop is freed */
};

struct runner_job {
	const struct batch_config *config;
	const struct orders *orders; /* batch_orders[i].item.index is an index into this */
	struct batch_order *batch_orders;
	size_t count;
	struct batch_plan *plan;
	struct batch_opts opts;
	struct journal *journal;
	struct warden **wardens; /* plan->jobs of them; the runner may replace one */
	struct start_ring *ring; /* of all wardens; NULL: none */
	size_t already_done;	 /* for the summary */
	struct measure *measure;
	const struct memory_base *memory; /* where orders get groups; its path NULL: they do not */
	/* one per enum batch_hook, the absent ones empty; or as many for every order */
	const struct orders *hooks;
	struct pipe_orders *pipe;	    /* makes the orders; NULL: they are all there */
	const struct runner_source *source; /* NULL: the list is here */
	void *source_arg;
	size_t variant_step; /* distance in `orders` from one variant of an order to the next */
};

/* For a source. */
void runner_post(struct runner *runner, const struct batch_event *event);
struct event_base *runner_base(const struct runner *runner);
struct printer *runner_printer(const struct runner *runner);
struct outputs *runner_outputs(const struct runner *runner);
int runner_stop_signal(const struct runner *runner); /* 0: none came */

/* Returns the exit code. */
int runner_run(const struct runner_job *job);

#endif
