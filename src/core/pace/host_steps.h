/* What a host tells of the steps of its workers: those that all of them have told since it looked
 * last, but no more in a second than the coordinator, which hears of all hosts, can take. Pure. */
#ifndef CORE_PACE_HOST_STEPS_H
#define CORE_PACE_HOST_STEPS_H

#include "core/pace/step_times.h"

#define HOST_STEPS_PER_S 64    /* that a host tells, where nodes are few */
#define HOST_STEPS_IN_ALL 6400 /* that all hosts tell, a second */
#define HOST_STEPS_MIN 4

struct host_steps {
	uint32_t rank_base, workers;
	uint64_t limit; /* a second */
	struct step_marks marks;
	struct step_mark *told; /* complete, for the coordinator; the caller sets told_count to 0 */
	size_t told_count, told_cap;
};

/* A round of so many nodes begins. */
void host_steps_begin(struct host_steps *steps, uint32_t rank_base, uint32_t workers,
		      uint32_t nodes);
void host_steps_done(struct host_steps *steps);

/* Takes the steps that a worker has told since the last look; `seen`: how many it had told then.
 * False: it tells none. */
bool host_steps_look(struct host_steps *steps, uint32_t local_rank, const struct worker_page *page,
		     uint64_t *seen);

#endif
