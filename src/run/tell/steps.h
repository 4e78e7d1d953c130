/* How far the workers of this host have got: what each tells through its page
 * (watch/worker_pages.h) or says in its output (--progress-regex), also after its end, as JSON and
 * as metrics. */
#ifndef RUN_TELL_STEPS_H
#define RUN_TELL_STEPS_H

#include "core/pace/straggler.h"
#include "proto/json_out.h"
#include "run/guard.h"
#include "run/workers.h"

struct steps {
	/* Borrowed, for as long as this is used. */
	const struct workers *workers;
	const struct output *output;
	const struct guard *guard;
	const struct group *group; /* NULL: all run */

	/* by local rank: what the output of a worker said, once it has been read to its end */
	struct step_progress *read;
	struct straggling *late; /* likewise: who holds the others up */
	size_t late_count;
};

struct straggling {
	struct straggler_news news; /* begins: it does */
	char *why, *group;
};

void steps_done(struct steps *steps);

/* A round begins: nothing is known yet. */
void steps_begin(struct steps *steps);

/* The output of this start is about to be forgotten. Returns whether it told steps. */
bool steps_keep(struct steps *steps, uint64_t id);

/* A worker holds the others up, or no longer does; why, and in which group's collectives ("": that
 * is not known). */
void steps_set_late(struct steps *steps, size_t local_rank, const struct straggler_news *news,
		    const char *why, const char *group);

/* What one worker of this host told; `told` is 0 if it never did. */
void steps_of(const struct steps *steps, size_t local_rank, struct step_progress *ret_headway);

/* The workers of this host together. */
struct step_progress_sum steps_sum(const struct steps *steps, uint64_t now_ns);

/* The same over the whole round, for its record. */
struct step_progress_span steps_span(const struct steps *steps);

/* Members of the open object of a worker: nothing if it tells no steps. */
void steps_put_worker(const struct steps *steps, size_t local_rank, uint64_t now_ns,
		      struct json_out *out);

/* Member "straggler" of the open object of a worker: nothing if it keeps up. */
void steps_put_straggler(const struct steps *steps, size_t local_rank, struct json_out *out);

/* The object "progress" of this host: nothing if no worker tells steps. */
void steps_put_host(const struct steps *steps, uint64_t now_ns, struct json_out *out);

/* Appends the metrics about steps. */
void steps_put_metrics(const struct steps *steps, struct buf *out);

#endif
