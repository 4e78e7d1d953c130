/* From the host and the command line to a core pool, and the output of --dry-run. */
#ifndef BATCH_PLAN_H
#define BATCH_PLAN_H

#include <stdio.h>

#include "batch/config.h"
#include "core/dispatch/batch.h"
#include "core/host/topology.h"

struct batch_plan {
	struct topology topology; /* empty when nothing is pinned */
	struct corepool pool;
	int jobs;
	bool pinned;
	const char *why_unpinned; /* borrowed; NULL: pinned, or the user asked for it */
};

/* `max_width`: of the widest order; `max_jobs`: the most that can run at a time. */
int plan_make(struct batch_plan *plan, const struct batch_config *config, int max_width,
	      int max_jobs, struct err *err);
void plan_done(struct batch_plan *plan);

/* The pool, what is shared, and the first place of every order. */
void plan_print(const struct batch_plan *plan, const struct batch_order *orders, size_t count,
		FILE *out);

#endif
