/* After an attempt: its result line, its line in the job log, its output on the screen. */
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "batch/runner_private.h"

#define HASH_AT_ONCE ((uint64_t)1 << 20) /* bytes hashed per turn of the loop */

static int64_t time_ns(const struct timeval *time)
{
	return (int64_t)time->tv_sec * (int64_t)NS_PER_S +
	       (int64_t)time->tv_usec * (int64_t)NS_PER_US;
}

static void set_values(struct result *result, const struct place *place,
		       const struct batch_outcome *outcome)
{
	static const char *const hook_failed[BATCH_HOOK_COUNT] = {
		[BATCH_HOOK_SETUP] = "the setup command failed",
		[BATCH_HOOK_PREPARE] = "the prepare command failed",
	};
	bool timed = place->has_timed && outcome->reason == REASON_OK;
	const struct rusage *usage = timed ? &place->timed_usage : &place->usage;
	if (place_is_hook(place)) {
		result_miss(result, "run", hook_failed[outcome->trial.hook]);
		return;
	}
	if (outcome->timed)
		result_set(result, RESULT_WALL_NS, (int64_t)(outcome->end_ns - outcome->start_ns));
	if (!place->has_usage) {
		result_miss(result, "rusage",
			    outcome->reason == REASON_SPAWN ? "never started"
							    : "its warden is gone");
		return;
	}
	result_set(result, RESULT_USER_NS, time_ns(&usage->ru_utime));
	result_set(result, RESULT_SYS_NS, time_ns(&usage->ru_stime));
	result_set(result, RESULT_MAXRSS_KB, usage->ru_maxrss);
	uint64_t peak = timed ? place->timed_peak : place_peak(place);
	if (peak)
		result_set(result, RESULT_MEMORY_PEAK_KB, (int64_t)(peak / 1024));
	result_set(result, RESULT_MINFLT, usage->ru_minflt);
	result_set(result, RESULT_MAJFLT, usage->ru_majflt);
	result_set(result, RESULT_NVCSW, usage->ru_nvcsw);
	result_set(result, RESULT_NIVCSW, usage->ru_nivcsw);
}

static void set_cores(struct result *result, const struct place *place)
{
	AUTO(buf_done) struct buf list = BUF_INIT;
	cpuset_format(&place->cpus, &list);
	if (buf_len(&list) > 0)
		result->cores = buf_take_str(&list);
	else
		result_miss(result, "cores", "not pinned");
}

/* What ended, and how, beside its result. */
static void set_order(struct ending *ending, const struct batch_outcome *outcome,
		      const struct place *place)
{
	ending->from = place->order;
	ending->source = place->source;
	ending->slot = place->number + 1;
	ending->timed = outcome->timed;
	ending->runtime_ns = outcome->end_ns - outcome->start_ns;
	ending->final = outcome->final;
	ending->unrun = !outcome->final && !outcome->retry && outcome->reason != REASON_OK;
	ending->retry = outcome->retry;
	ending->retry_in_ns = outcome->retry_in_ns;
	ending->canary = outcome->canary;
	memcpy(ending->shown, place->shown, sizeof(ending->shown));
}

/* What went wrong is on standard error, if there is anything. */
static void set_output(struct ending *ending, const struct batch_outcome *outcome,
		       const struct place *place)
{
	bool said = ending->result.err_out.bytes > 0;
	if (outcome->reason != REASON_OK)
		ending->result.tail =
			failures_tail(ending->fds[said], said ? ending->result.err_out.bytes
							      : ending->result.out.bytes);
	if (place->runner->job->config->ungroup)
		result_miss(&ending->result, "output", "it was not kept (--ungroup)");
}

static void fill(struct ending *ending, struct place *place, const struct batch_outcome *outcome)
{
	struct result *result = &ending->result;
	ending_set_order(result, place_order(place), place->number + 1, place->order->item.width);
	result->attempt = outcome->trial.attempt;
	result->run = outcome->trial.run;
	result->warmup = outcome->trial.warmup;
	if (outcome->trial.variant)
		result->variant[0] = outcome->trial.variant;
	result->block = outcome->trial.block;
	result->reason = outcome->reason;
	result->status = outcome->status;
	uint64_t ago = outcome->timed ? clock_now_ns() - outcome->start_ns : 0;
	ending->start_wall_ns = outcome->timed ? clock_wall_ns() - ago : place->asked_wall_ns;
	clock_iso(ending->start_wall_ns, result->start);
	set_values(result, place, outcome);
	set_cores(result, place);
	if (place->failure)
		result_miss(result, "start", place->failure);
	if (outcome->reason == REASON_CANARY && outcome->canary == REASON_TIMEOUT)
		result_miss(result, "run", "the canary timed out");
	if (outcome->shared)
		strv_add(&result->suspect, "smt-shared");
	if (outcome->trial.hook == BATCH_HOOK_TIMED)
		result_miss(result, "instructions", "the run before the counted one failed");
	if (place->has_usage && !outcome->trial.hook)
		measure_end(place->runner->job->measure, place->number, &place->env, result);
	if (place->paths[0]) {
		result->out.path = mem_strdup(place->paths[0]);
		result->err_out.path = mem_strdup(place->paths[1]);
	}
	set_order(ending, outcome, place);
	set_output(ending, outcome, place);
}

/* The result is complete. */
static void complete(struct ending *ending)
{
	ending->source->ops->measured(ending->source->arg, ending);
	ending_done(ending);
}

/* Files that stayed empty serve the next order, too. */
static void take_back(struct place *place, struct ending *ending)
{
	bool named = place->source->results;
	if (place->passed_on)
		return;
	if (!named && ending->result.out.bytes == 0)
		place->fds[0] = fd_take(&ending->fds[0]);
	if (!named && ending->result.err_out.bytes == 0)
		place->fds[1] = fd_take(&ending->fds[1]);
}

/* In the loop's next turn: what is made active inside a turn still belongs to it. */
static void hash_soon(struct runner *runner)
{
	event_add(runner->hash_event, &(struct timeval){ .tv_sec = 0 });
}

void runner_finish(struct runner *runner, const struct batch_action *action)
{
	struct place *place = &runner->places[action->slot];
	struct ending ending;
	place_unwatch_output(place);
	if (place->passed_on)
		ending_init_empty(&ending);
	else
		ending_init(&ending, place->fds);
	fill(&ending, place, &action->outcome);
	stdin_write_stop(&place->writer);
	memory_group_remove(&place->group);
	place->source->ops->ended(place->source->arg, &ending);
	take_back(place, &ending);
	if (ending_hash(&ending, HASH_AT_ONCE)) {
		complete(&ending);
	} else {
		struct ending *later = NEW(struct ending);
		*later = ending;
		list_append(&runner->endings, &later->link);
		hash_soon(runner);
	}
}

static void hash_first(struct runner *runner, uint64_t budget)
{
	struct ending *ending = list_entry(runner->endings.next, struct ending, link);
	if (!ending_hash(ending, budget))
		return;
	complete(ending);
	free(ending);
}

void runner_hash_some(struct runner *runner)
{
	if (list_empty(&runner->endings))
		return;
	hash_first(runner, HASH_AT_ONCE);
	if (!list_empty(&runner->endings))
		hash_soon(runner);
}

void runner_finish_all(struct runner *runner)
{
	while (!list_empty(&runner->endings))
		hash_first(runner, UINT64_MAX);
}
