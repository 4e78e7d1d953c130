/* When ranks told their steps, and which rank told each of them last.
 *
 * A mark says when the last of some ranks told a step, and when they did on average. Marks of ranks
 * make marks of hosts, and those of hosts make the marks of a job: the coordinator knows who came
 * last without a list of all ranks. Pure. */
#ifndef CORE_PACE_STEP_TIMES_H
#define CORE_PACE_STEP_TIMES_H

#include "core/worker/worker_page.h"

/* The last steps of one worker, from its page. */
struct step_times {
	uint64_t told;	 /* index of the last one: the worker told it as its told-th */
	uint64_t step;	 /* its number */
	uint64_t stride; /* between two of them */
	size_t count;
	uint64_t ns[STEP_PROGRESS_TIMES]; /* oldest first */
};

/* False: it tells no steps, or not in even strides, or it told one meanwhile. */
bool step_times_read(const struct worker_page *page, struct step_times *ret);

/* Only every n-th step is compared, so that there are at most `limit` a second: a power of two, so
 * that hosts that differ still have common ones. */
uint64_t step_times_sampling(const struct step_times *times, uint64_t limit);

struct step_mark {
	uint64_t step;
	uint64_t last_ns, mean_ns;
	uint64_t error_ns; /* by which the times of the worst of the hosts may be wrong */
	uint32_t rank;	   /* the last one */
	uint32_t ranks;	   /* how many have told this step */
	/* Of a look (core/pace/looks.h): the wait that it belongs to; 0: of a step or collective */
	uint32_t wait;
};

#define STEP_MARKS_KEPT 64

struct step_marks {
	struct step_mark items[STEP_MARKS_KEPT]; /* ranks 0: free */
};

/* Adds what is known of a step. Returns the mark once all `of` ranks have told it, else NULL.
 * Steps older than those that are kept are ignored. */
const struct step_mark *step_marks_add(struct step_marks *marks, const struct step_mark *mark,
				       uint32_t of);

#endif
