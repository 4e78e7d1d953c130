/* The loop of a batch: turns wardens, timers and signals into events for core/batch, and carries
 * its actions out. */
#ifndef BATCH_RUNNER_H
#define BATCH_RUNNER_H

#include "batch/config.h"
#include "batch/journal.h"
#include "batch/plan.h"
#include "proto/orders.h"

struct warden;

struct runner_job {
	const struct batch_config *config;
	const struct orders *orders; /* batch_orders[i].item.index is an index into this */
	struct batch_order *batch_orders;
	size_t count;
	struct plan *plan;
	struct batch_opts opts;
	struct journal *journal;
	struct warden **wardens; /* plan->jobs of them; the runner may replace one */
	size_t already_done;	 /* for the summary */
	struct measure *measure;
	const struct orders *hooks; /* one per enum batch_hook, the absent ones empty */
	size_t b_offset;	    /* distance in `orders` from an order to its variant B */
};

/* Returns the exit code. */
int runner_run(const struct runner_job *job);

#endif
