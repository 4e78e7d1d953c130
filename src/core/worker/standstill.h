/* Whether a job that tells steps stands still: whether no step was told for far longer than usual.
 *
 * That is a fact, not a verdict: a checkpoint, a validation and a hang look the same from here. It
 * is said where people look, at once; on stderr one line when it begins and one when the steps go
 * on, and again only if the next pause is much longer than what the job came back from. Pure. */
#ifndef CORE_WORKER_STANDSTILL_H
#define CORE_WORKER_STANDSTILL_H

#include "base/clock.h"
#include "core/worker/step_progress.h"

#define STANDSTILL_LEAST_NS (60 * NS_PER_S)
#define STANDSTILL_TIMES 20 /* the usual time between two steps, */
#define STANDSTILL_AGAIN 2  /* and the longest that was seen lately */
#define STANDSTILL_TOLD 4   /* steps, before anything is usual */

/* The time that usually lies between two steps that a worker tells; 0: unknown. */
uint64_t standstill_usual_ns(const struct step_progress *progress);

/* For how long a worker that runs has told no step, if that is far longer than usual; 0: it is not,
 * it has told its last one, or nobody knows what is usual. */
uint64_t standstill_of(const struct step_progress *progress, uint64_t now_ns);

/* As step_progress_left_s(), which a worker that stands still does not know. */
double standstill_left_s(const struct step_progress *progress, uint64_t now_ns);

/* What to say on stderr about the workers of a host together. */
struct standstill {
	bool told;
	uint64_t lasts_ns;   /* the one under way, at the last look; 0: none */
	uint64_t longest_ns; /* of those that the job came back from */
};

enum standstill_news {
	STANDSTILL_NOTHING,
	STANDSTILL_BEGINS,
	STANDSTILL_ENDS,
};

/* `still_ns`: of the workers together (struct step_progress_sum). `ret_lasted_ns`: how long it has
 * lasted by now, or did. */
enum standstill_news standstill_look(struct standstill *standstill, uint64_t still_ns,
				     uint64_t *ret_lasted_ns);

#endif
