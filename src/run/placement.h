/* The CPUs of each worker: --numa-binding and --bind on the real host, and what follows from it
 * (memory, OMP_NUM_THREADS, the output of --show-binding).
 *
 * The topology is read only if something is bound: reading it costs more than starting four
 * workers. */
#ifndef RUN_PLACEMENT_H
#define RUN_PLACEMENT_H

#include "base/strv.h"
#include "core/host/binding.h"
#include "sys/devices.h"
#include "sys/spawn.h"

struct run_options;

struct run_placement {
	struct binding *plan; /* by local rank; NULL: workers run on muster's own CPUs */
	uint32_t nproc;
	struct topology topology;
	bool memory; /* the kernel lets us choose the memory node */
};

#define RUN_PLACEMENT_INIT ((struct run_placement){ .plan = NULL })

/* -EINVAL: the options do not fit this host. */
int run_placement_make(const struct run_options *options, uint32_t nproc,
		       struct run_placement *ret_placement, struct err *err);
void run_placement_done(struct run_placement *placement);

/* Binds the worker that is about to start; borrows from the placement. */
void run_placement_spawn(const struct run_placement *placement, uint32_t local_rank,
			 struct spawn_spec *spec);

/* Sets as many threads as the worker has cores, unless `inherited` already has a number. */
void run_placement_env(const struct run_placement *placement, char *const *inherited,
		       uint32_t local_rank, struct strv *env);

/* One line per worker: "local rank 0  [BB/..] [../..]  CPUs 0-1, node 0, 2 threads". */
void run_placement_draw(const struct run_placement *placement, struct buf *out);

#endif
