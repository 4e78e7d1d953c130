/* Stragglers: ranks that hold the others up, because they come last too often.
 *
 * Each step that all ranks have told is a trial: who told it last, and how long after the others.
 * A lag that matters counts against that rank: longer than LAG_MIN, than a part of a step, and than
 * the clocks of the hosts may be wrong. If none is slower than the others, each is last as often as
 * any other; a sign test over the last trials tells when that is no longer likely. A rank stays
 * named until it is last in few of them. Pure. */
#ifndef CORE_PACE_STRAGGLER_H
#define CORE_PACE_STRAGGLER_H

#include "core/pace/step_times.h"

#define STRAGGLER_TRIALS 64	     /* the last ones, which decide */
#define STRAGGLER_TRIALS_MIN 16	     /* before the first verdict */
#define STRAGGLER_LEVEL 1e-5	     /* of the test, for all ranks together */
#define STRAGGLER_LAG_MIN_NS 1000000 /* shorter ones do not matter */
#define STRAGGLER_STEP_PART 20	     /* nor those below this part of a step */
#define STRAGGLER_NAMED_MAX 8

struct straggler_trial {
	uint32_t rank;
	uint64_t lag_ns;
};

struct stragglers {
	uint32_t world_size;
	struct straggler_trial trials[STRAGGLER_TRIALS];
	size_t count;		   /* so far */
	uint64_t step, step_at_ns; /* the last one that was complete */
	uint64_t step_ns;	   /* how long one takes, smoothed; 0: unknown */
	uint32_t named[STRAGGLER_NAMED_MAX];
	size_t named_count;
};

/* A rank is named, or no longer is. */
struct straggler_news {
	uint32_t rank;
	bool begins;
	uint32_t times,
		of;	 /* it was last, by so much that it matters, in so many of the last steps */
	uint64_t lag_ns; /* after the others, on average over those */
	uint64_t group;	 /* of whose collectives that is true; 0: of steps */
};

void stragglers_begin(struct stragglers *stragglers, uint32_t world_size);

/* A step that all ranks have told. `error_ns`: how wrong times of two hosts may be, compared.
 * Returns whether there are news. */
bool stragglers_add(struct stragglers *stragglers, const struct step_mark *mark, uint64_t error_ns,
		    struct straggler_news *ret_news);

/* The same without a verdict: how long a step takes. */
void stragglers_measure(struct stragglers *stragglers, const struct step_mark *mark);

/* How long the last one came after the others, on average. */
uint64_t straggler_lag_ns(const struct step_mark *mark);

/* Whether the rank is named now, and how often it was last. */
bool stragglers_is_named(const struct stragglers *stragglers, uint32_t rank,
			 struct straggler_news *ret_news);

/* How likely it is to be last in `times` of `trials` or more by chance alone. */
double straggler_chance(uint32_t times, uint32_t trials, uint32_t world_size);

#endif
