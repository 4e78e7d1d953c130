/* Where the time of a job went, from what one host knows of its attempts: new steps, steps that
 * were done again after a restart, starting, and waiting. Pure. */
#ifndef CORE_WORKER_GOODPUT_H
#define CORE_WORKER_GOODPUT_H

#include "core/worker/step_progress.h"

struct goodput {
	uint64_t total_ns;
	uint64_t steps_ns; /* new steps */
	uint64_t again_ns; /* steps that an earlier attempt had done already; estimated by the mean
			    * time of a step of the same attempt */
	uint64_t start_ns; /* from the start of the workers to their first step */
	uint64_t end_ns;   /* from the last step to the end of the attempt */
	uint64_t wait_ns;  /* no workers: before the first attempt and between two */
	uint64_t steps, again; /* numbers of steps */

	uint64_t reached; /* private: 1 + the highest step so far */
	uint64_t until_ns;
};

/* The job began at `started_ns`. */
void goodput_begin(struct goodput *goodput, uint64_t started_ns);

/* The next attempt. Returns the time that it took without bringing the job further. */
uint64_t goodput_add(struct goodput *goodput, uint64_t started_ns, uint64_t ended_ns,
		     const struct step_progress_span *span);

/* The job is over. */
void goodput_end(struct goodput *goodput, uint64_t ended_ns);

#endif
