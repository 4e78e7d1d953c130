/* How far the workers of a job have got, from the steps that they tell.
 *
 * A worker counts its own steps and tells their numbers (muster_step(), --progress-regex). This is
 * the arithmetic for people: steps per second, the time that is left, and who is behind. Pure. */
#ifndef CORE_WORKER_STEP_PROGRESS_H
#define CORE_WORKER_STEP_PROGRESS_H

#include "base/util.h"

#define STEP_PROGRESS_TIMES 64 /* the last steps whose times are kept */
#define STEP_PROGRESS_SECTION_MAX 48

/* What one worker has told so far. */
struct step_progress {
	uint64_t told;	/* how many times it told a step; 0: never, and no other field counts */
	uint64_t step;	/* the last one */
	uint64_t total; /* steps in all; 0: unknown */
	bool has_saved;
	uint64_t saved; /* the last step whose state is saved */
	uint64_t first_step;
	uint64_t first_ns, last_ns; /* monotonic; when it told the first and the last one */
	uint64_t oldest_ns;	    /* of those among the last STEP_PROGRESS_TIMES */
	uint64_t longest_ns;	    /* between two of these */
	char section[STEP_PROGRESS_SECTION_MAX]; /* what it is doing now; "": it has not said */
};

/* Steps per second over the last STEP_PROGRESS_TIMES; a worker that tells nothing for longer than
 * usual becomes slower. 0: unknown. */
double step_progress_rate(const struct step_progress *progress, uint64_t now_ns);

/* Seconds until the last step; negative: unknown. */
double step_progress_left_s(const struct step_progress *progress, uint64_t now_ns);

/* The workers of one host or of a job, added up one after the other. */
struct step_progress_sum {
	size_t count;	      /* workers that tell steps */
	uint64_t least, most; /* steps */
	uint64_t total;	      /* 0: unknown */
	double rate;	      /* steps per second of the worker with the least; 0: unknown */
	double left_s;	      /* the most time that any worker still needs; negative: unknown */
	int64_t behind;	      /* the rank with the least; -1: none is behind the others */
	bool has_saved;
	uint64_t saved; /* the last step that all of them have saved */
	/* The shortest time that any of those that run has told no step for, if that is far longer
	 * than usual for each (standstill.h); 0: one goes on, or none runs. */
	uint64_t still_ns;
	uint64_t usual_ns; /* between two steps of that one */
	size_t running;
};

#define STEP_PROGRESS_SUM_INIT ((struct step_progress_sum){ .left_s = -1, .behind = -1 })

/* One worker as it is shown. */
struct step_progress_rank {
	int64_t rank;
	uint64_t step, total;
	double rate, left_s;
	bool has_saved;
	uint64_t saved;
	bool ended;
	uint64_t still_ns, usual_ns; /* as above; 0: it goes on */
};

void step_progress_add(struct step_progress_sum *sum, const struct step_progress_rank *worker);

/* How far the workers of one host got in one attempt. */
struct step_progress_span {
	size_t workers;		    /* that told steps; 0: no field but the saved step counts */
	uint64_t first_step;	    /* the least that any of them began with */
	uint64_t least, most;	    /* their last steps */
	uint64_t first_ns, last_ns; /* of the first and the last step that any of them told */
	size_t savers;		    /* workers that told of a saved step */
	uint64_t saved;		    /* the last one that all of these have saved */
};

void step_progress_span_add(struct step_progress_span *span, const struct step_progress *worker);

#endif
