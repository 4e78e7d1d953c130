#include "lib/worker_ends.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"

static void forget(struct worker_ends *ends)
{
	for (size_t i = 0; i < ends->count; i++)
		free((char *)ends->items[i].error_file);
	ends->count = 0;
}

/* The worker that the event is about, added if new. Events come in the order of ranks, except for a
 * worker that could not be started. */
static struct muster_worker_end *worker_of(struct worker_ends *ends, const struct event_in *event)
{
	size_t at = 0;
	while (at < ends->count && ends->items[at].local_rank < event->local_rank)
		at++;
	if (at < ends->count && ends->items[at].local_rank == event->local_rank)
		return &ends->items[at];
	ARRAY_RESERVE(ends->items, ends->count, ends->cap);
	memmove(&ends->items[at + 1], &ends->items[at], (ends->count - at) * sizeof(*ends->items));
	ends->count++;
	ends->items[at] = (struct muster_worker_end){ .rank = event->rank,
						      .local_rank = event->local_rank,
						      .pid = (pid_t)event->pid,
						      .exit_code = -1 };
	return &ends->items[at];
}

static void note_started(struct worker_ends *ends, struct event_in *event)
{
	struct muster_worker_end *worker = worker_of(ends, event);
	if (buf_len(&event->error_file) > 0 && !worker->error_file)
		worker->error_file = mem_strdup(buf_str(&event->error_file));
}

static void note_exited(struct worker_ends *ends, struct event_in *event)
{
	struct muster_worker_end *worker = worker_of(ends, event);
	int sig = buf_len(&event->signal) > 0 ? str_to_signal(buf_str(&event->signal)) : 0;
	worker->exit_code = (int)event->exit_code;
	worker->signal = MAX(sig, 0);
	worker->ended_ms = event->timestamp;
}

void worker_ends_note(struct worker_ends *ends, struct event_in *event)
{
	const char *name = buf_str(&event->name);
	ends->restarts = event->restarts;
	if (str_eq(name, "round.formed"))
		forget(ends);
	if (event->local_rank < 0)
		return;
	if (str_eq(name, "worker.started"))
		note_started(ends, event);
	else if (str_eq(name, "worker.exited"))
		note_exited(ends, event);
	else if (str_eq(name, "group.failed"))
		worker_of(ends, event)->first = 1;
}

void worker_ends_done(struct worker_ends *ends)
{
	forget(ends);
	free(ends->items);
	*ends = WORKER_ENDS_INIT;
}

struct muster_result *worker_ends_take(struct worker_ends *ends, int exit_code)
{
	struct muster_result *result = NEW(struct muster_result);
	*result = (struct muster_result){ .exit_code = exit_code,
					  .restarts = ends->restarts,
					  .count = ends->count,
					  .workers = ends->items };
	*ends = WORKER_ENDS_INIT;
	return result;
}

void muster_result_free(struct muster_result *result)
{
	if (!result)
		return;
	struct worker_ends ends = { .items = (struct muster_worker_end *)result->workers,
				    .count = result->count };
	worker_ends_done(&ends);
	free(result);
}
