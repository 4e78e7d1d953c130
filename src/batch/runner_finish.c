/* After an attempt: its result line, its line in the job log, its output on the screen. */
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "batch/runner_private.h"
#include "core/worker/exit_code.h"

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

static char *copy(const char *text)
{
	return text ? mem_strdup(text) : NULL;
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

/* The exit value and signal that GNU parallel would write. */
static void set_log(struct ending *ending, const struct batch_outcome *outcome,
		    const struct place *place)
{
	const struct exit_status *status = &outcome->status;
	AUTO(buf_done) struct buf command = BUF_INIT;
	const struct order *order = place_order(place);
	if (place->runner->job->journal->log_fd < 0 || outcome->retry || place->order->is_canary)
		return;
	order_append_command(order, place->number + 1, &command);
	ending->log_command = buf_take_str(&command);
	ending->seq = (size_t)place->order->number + 1;
	ending->runtime_ns = outcome->timed ? outcome->end_ns - outcome->start_ns : 0;
	bool ended_by_us = outcome->reason == REASON_TIMEOUT ||
			   outcome->reason == REASON_CPU_TIMEOUT ||
			   outcome->reason == REASON_KILLED;
	ending->log_signal = status->kind == EXIT_SIGNAL ? status->value : 0;
	if (outcome->reason == REASON_SPAWN)
		ending->log_exit = EXIT_CODE_NOT_FOUND;
	else if (ended_by_us || status->kind == EXIT_UNKNOWN)
		ending->log_exit = -1;
	else
		ending->log_exit = status->kind == EXIT_CODE ? status->value : 0;
}

/* The output of runs that are repeated is of no use, unless one fails. */
static void set_screen(struct ending *ending, const struct batch_outcome *outcome,
		       const struct place *place)
{
	const struct batch_config *config = place->runner->job->config;
	bool repeated = place->order->runs > 1 || place->order->repeat || config->warmup > 0;
	ending->order = place_turn(place);
	ending->tag = copy(place_tag(place));
	ending->hidden = repeated && !config->show_output && outcome->reason == REASON_OK;
	ending->final = outcome->final;
	memcpy(ending->shown, place->shown, sizeof(ending->shown));
	/* What went wrong is on standard error, if there is anything. */
	bool said = ending->result.err_out.bytes > 0;
	if (outcome->reason != REASON_OK)
		ending->result.tail =
			failures_tail(ending->fds[said], said ? ending->result.err_out.bytes
							      : ending->result.out.bytes);
	if (config->ungroup)
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
	set_log(ending, outcome, place);
	set_screen(ending, outcome, place);
}

static void show(struct runner *runner, struct ending *ending)
{
	const uint64_t bytes[] = { ending->result.out.bytes, ending->result.err_out.bytes };
	bool kept = runner->job->config->results || ending->hidden;
	for (int i = 0; i < 2 && !kept; i++)
		outputs_add(runner->outputs, ending->order, i + 1, ending->tag, &ending->fds[i],
			    ending->shown[i], bytes[i]);
	if (ending->final)
		outputs_end(runner->outputs, ending->order);
}

/* The result is complete: write the lines, then show the output. */
static void complete(struct runner *runner, struct ending *ending)
{
	AUTO(buf_done) struct buf line = BUF_INIT;
	struct err err = ERR_INIT;
	if (runner->job->source) {
		runner->job->source->ended(runner->job->source_arg, ending);
		ending_done(ending);
		return;
	}
	if (runner->job->journal->fd >= 0)
		result_write(&ending->result, &line);
	int r = journal_append(runner->job->journal, buf_data(&line), buf_len(&line), &err);
	if (r >= 0 && ending->seq > 0) {
		buf_clear(&line);
		journal_format_log(&line, ending->seq, ":", ending->start_wall_ns,
				   ending->runtime_ns, ending->result.out.bytes, ending->log_exit,
				   ending->log_signal, ending->log_command);
		r = journal_append_log(runner->job->journal, &line, &err);
	}
	if (r < 0)
		runner_fatal(runner, &err);
	show(runner, ending);
	ending_done(ending);
}

/* Files that stayed empty serve the next order, too. */
static void take_back(struct place *place, struct ending *ending)
{
	bool named = place->runner->job->config->results && !place->runner->job->source;
	if (place->passed_on)
		return;
	if (!named && ending->result.out.bytes == 0)
		place->fds[0] = fd_take(&ending->fds[0]);
	if (!named && ending->result.err_out.bytes == 0)
		place->fds[1] = fd_take(&ending->fds[1]);
}

void runner_finish(struct runner *runner, const struct batch_action *action)
{
	struct place *place = &runner->places[action->slot];
	struct ending ending;
	/* A successful canary leaves no line. */
	bool record = !place->order->is_canary || action->outcome.reason == REASON_CANARY;
	place_unwatch_output(place);
	if (place->passed_on)
		ending_init_empty(&ending);
	else
		ending_init(&ending, place->fds);
	fill(&ending, place, &action->outcome);
	if (runner->job->source) {
		ending.from = place->order;
		ending.lease = runner->job->source->lease(runner->job->source_arg, place->order);
		ending.unrun = !action->outcome.final && !action->outcome.retry &&
			       action->outcome.reason != REASON_OK;
	} else {
		status_outcome(runner, action, place);
		status_page_ended(place, &action->outcome, &ending.result);
	}
	if (!runner->job->source && action->outcome.final && action->outcome.reason != REASON_OK)
		status_failure(runner, &action->outcome, place, &ending);
	stdin_write_stop(&place->writer);
	memory_group_remove(&place->group);
	if (runner->job->pipe && action->outcome.final)
		pipe_orders_drop(runner->job->pipe, place->order);
	take_back(place, &ending);
	if (!record) {
		ending_done(&ending);
	} else if (ending_hash(&ending, HASH_AT_ONCE)) {
		complete(runner, &ending);
	} else {
		struct ending *later = NEW(struct ending);
		*later = ending;
		list_append(&runner->endings, &later->link);
		event_active(runner->hash_event, EV_TIMEOUT, 0);
	}
}

static void hash_first(struct runner *runner, uint64_t budget)
{
	struct ending *ending = list_entry(runner->endings.next, struct ending, link);
	if (!ending_hash(ending, budget))
		return;
	complete(runner, ending);
	free(ending);
}

void runner_hash_some(struct runner *runner)
{
	if (list_empty(&runner->endings))
		return;
	hash_first(runner, HASH_AT_ONCE);
	if (!list_empty(&runner->endings))
		event_active(runner->hash_event, EV_TIMEOUT, 0);
}

void runner_finish_all(struct runner *runner)
{
	while (!list_empty(&runner->endings))
		hash_first(runner, UINT64_MAX);
}
