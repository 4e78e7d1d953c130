/* Ends a worker's streams with it, and keeps the end of the first failed worker's output, for the
 * report and for `muster logs`. */
#include "run/tell/happening.h"

static void on_ended(struct telling *telling, const struct happening *happening)
{
	output_worker_ended(telling->output, workers_id_of(telling->workers, happening->rank));
}

/* Copies the tail of a worker into the history. The failure is recorded when the group is gone, and
 * the last bytes may be read before or after that: whichever comes later completes the copy. */
static void copy_tail(struct telling *telling, uint64_t id)
{
	struct history_failure *failure = id ? history_find(telling->history, id) : NULL;
	if (!failure || (id != telling->cause_id && !failure->first))
		return;
	buf_clear(&failure->tail);
	output_tail(telling->output, id, OUTPUT_STDERR, &failure->tail);
}

static void keep_tail(struct telling *telling, const struct happening *happening UNUSED)
{
	copy_tail(telling, telling->cause_id);
}

/* The output may be a whole attempt behind, on a paused terminal or a busy host. What was the cause
 * of an earlier attempt is then forgotten once it is drained. */
static void on_failed(struct telling *telling, const struct happening *happening)
{
	keep_tail(telling, happening);
	if (telling->cause_drained)
		output_forget(telling->output, telling->cause_id);
	telling->cause_id = workers_id_of(telling->workers, happening->rank);
	telling->cause_drained = false;
}

static void on_drained(struct telling *telling, const struct happening *happening)
{
	copy_tail(telling, happening->id);
	if (happening->id == telling->cause_id)
		telling->cause_drained = true;
	else
		output_forget(telling->output, happening->id);
}

const struct listener listen_output = {
	.on = {
		[HAPPENED_WORKER_NOT_STARTED] = on_ended,
		[HAPPENED_WORKER_EXITED] = on_ended,
		[HAPPENED_WORKER_DRAINED] = on_drained,
		[HAPPENED_GROUP_FAILED] = on_failed,
		[HAPPENED_GROUP_GONE] = keep_tail,
		[HAPPENED_GROUP_STUCK] = keep_tail,
		[HAPPENED_JOB_ENDED] = keep_tail,
	},
};
