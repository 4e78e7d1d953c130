/* Writes the history, from which the report and the exit code are made. */
#include <stdlib.h>

#include "base/mem.h"
#include "run/tell/happening.h"
#include "run/kernel_said.h"

static void on_formed(struct telling *telling, const struct happening *happening)
{
	const struct msg_formed *formed = happening->formed;
	history_begin_attempt(telling->history, formed->restarts, formed->world_size,
			      happening->when_ns);
	history_last(telling->history)->oom_kills = kernel_oom_kills();
}

/* While the counters are fresh: what ends the others comes later. */
static void on_failed(struct telling *telling, const struct happening *happening UNUSED)
{
	struct history_attempt *attempt = history_last(telling->history);
	attempt->oom_kill = kernel_oom_kills() > attempt->oom_kills;
}

static void on_stacks_read(struct telling *telling, const struct happening *happening)
{
	struct history_attempt *attempt = history_last(telling->history);
	free(attempt->stacks);
	attempt->stacks = mem_strdup(happening->text);
}

static void on_explained(struct telling *telling, const struct happening *happening)
{
	struct history_attempt *attempt = history_last(telling->history);
	free(attempt->collectives);
	attempt->collectives = mem_strdup(happening->text);
}

static void on_stop_requested(struct telling *telling, const struct happening *happening)
{
	if (!telling->history->stop_signal)
		telling->history->stop_signal = happening->signal;
}

static void on_restart_requested(struct telling *telling, const struct happening *happening UNUSED)
{
	telling->history->restart_asked = true;
}

static void on_stopping(struct telling *telling, const struct happening *happening)
{
	if (happening->cause)
		history_blame(telling->history, happening->cause, happening->when_ns);
}

static void on_done(struct telling *telling, const struct happening *happening)
{
	history_end_attempt(telling->history,
			    attempt_decide(&(struct attempt_facts){ .done = true }),
			    happening->when_ns);
}

/* Completes the record of the round. */
static void on_gone(struct telling *telling, const struct happening *happening)
{
	struct history *history = telling->history;
	struct history_attempt *attempt = history_last(history);
	if (attempt->end == ATTEMPT_RUNNING) {
		workers_record(telling->workers, telling->group, history);
		struct attempt_facts facts = {
			.failed = telling->group->failed,
			.stop_asked = history->stop_signal,
			.restart_asked = history->restart_asked,
			.blamed = history_cause(attempt),
		};
		history_end_attempt(history, attempt_decide(&facts), happening->when_ns);
		if (attempt->end == ATTEMPT_FAILED && !attempt->kernel)
			attempt->kernel = kernel_log_since(attempt->started_ns);
	}
	history->restart_asked = false;
}

/* The coordinator knows the first cause on all nodes, and tells it even to a node that was in no
 * round. */
static void on_decided(struct telling *telling, const struct happening *happening)
{
	const struct outcome *outcome = happening->outcome;
	if (outcome->kind != OUTCOME_FAILED || !outcome->has_cause)
		return;
	history_blame(telling->history, &outcome->cause, happening->when_ns);
	if (history_last(telling->history)->end != ATTEMPT_FAILED)
		history_end_attempt(telling->history, ATTEMPT_FAILED, happening->when_ns);
}

const struct listener listen_history = {
	.on = {
		[HAPPENED_ROUND_FORMED] = on_formed,
		[HAPPENED_STACKS_READ] = on_stacks_read,
		[HAPPENED_HANG_EXPLAINED] = on_explained,
		[HAPPENED_STOP_REQUESTED] = on_stop_requested,
		[HAPPENED_RESTART_REQUESTED] = on_restart_requested,
		[HAPPENED_GROUP_FAILED] = on_failed,
		[HAPPENED_GROUP_STOPPING] = on_stopping,
		[HAPPENED_GROUP_DONE] = on_done,
		[HAPPENED_GROUP_GONE] = on_gone,
		[HAPPENED_GROUP_STUCK] = on_gone,
		[HAPPENED_JOB_DECIDED] = on_decided,
	},
};
