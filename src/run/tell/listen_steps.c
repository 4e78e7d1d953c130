/* Keeps how far the workers got: for the report, and after their output is forgotten. */
#include <stdlib.h>

#include "base/mem.h"
#include "run/tell/happening.h"

static void on_formed(struct telling *telling, const struct happening *happening UNUSED)
{
	steps_begin(&telling->steps);
}

static void record_left(struct telling *telling, struct history_attempt *attempt)
{
	free(attempt->left);
	attempt->left = NEW_ARRAY(struct history_left, MAX(telling->group->count, (size_t)1));
	attempt->left_count = 0;
	for (size_t i = 0; i < telling->group->count; i++) {
		struct history_left left = { .rank = telling->workers->round.rank_base +
						     (uint32_t)i };
		struct step_progress progress;
		if (!plan_has_left(worker_pages_get(guard_pages(telling->guard), i), &left.step))
			continue;
		steps_of(&telling->steps, i, &progress);
		left.has_saved = progress.has_saved;
		left.saved = progress.saved;
		attempt->left[attempt->left_count++] = left;
	}
}

/* Later news replace earlier ones: the last lines of a worker may be read after its group is
 * gone. */
static void record(struct telling *telling, const struct happening *happening UNUSED)
{
	struct history_attempt *attempt = history_last(telling->history);
	if (!attempt)
		return;
	attempt->steps = steps_span(&telling->steps);
	record_left(telling, attempt);
}

/* Most workers print no steps; a look at all of them for each would take long where they are many.
 */
static void on_drained(struct telling *telling, const struct happening *happening)
{
	if (steps_keep(&telling->steps, happening->id))
		record(telling, happening);
}

static void on_straggler(struct telling *telling, const struct happening *happening)
{
	steps_set_late(&telling->steps, happening->rank, happening->straggler.news,
		       happening->straggler.why, happening->straggler.group);
}

const struct listener listen_steps = {
	.on = {
		[HAPPENED_ROUND_FORMED] = on_formed,
		[HAPPENED_WORKER_DRAINED] = on_drained,
		[HAPPENED_STRAGGLER] = on_straggler,
		[HAPPENED_GROUP_DONE] = record,
		[HAPPENED_GROUP_GONE] = record,
		[HAPPENED_GROUP_STUCK] = record,
		[HAPPENED_JOB_ENDED] = record,
	},
};
