/* --event-log-handler=console: prints the job's events on stderr in the form of torch's agent, at
 * any log level. They go through the output, so a terminal that does not read blocks nothing. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "proto/json_out.h"
#include "proto/torch_event.h"
#include "run/tell/error_file.h"
#include "run/tell/happening.h"

static struct torch_event make_event(const struct telling *telling, enum torch_state state)
{
	const struct workers *workers = telling->workers;
	const struct history *history = telling->history;
	const struct history_attempt *last = history_last(history);
	const char *path = workers->config->entry.path;
	const char *slash = strrchr(path, '/');
	return (struct torch_event){
		.state = state,
		.wall_ns = clock_wall_ns(),
		.run_id = workers->config->run_id,
		.role = workers->config->role,
		.host = history->host,
		.rdzv_backend = workers->config->rdzv.backend,
		.entry_point = slash ? slash + 1 : path,
		.group_rank = workers->round.group_rank,
		.group_world_size = last ? workers->round.group_world_size : 0,
		.run_time_s = (clock_now_ns() - history->started_ns) / NS_PER_S,
		.restarts = last ? last->restart_count : 0,
		.duration_ms = -1,
	};
}

static void tell(const struct telling *telling, const struct torch_event *event)
{
	AUTO(buf_done) struct buf line = BUF_INIT;
	torch_event_line(&line, event);
	output_print(telling->output, buf_str(&line), buf_len(&line));
}

static struct torch_worker describe(const struct workers *workers, size_t local_rank)
{
	return (struct torch_worker){
		.global_rank = workers->round.rank_base + (uint32_t)local_rank,
		.local_rank = (uint32_t)local_rank,
		.role_rank = workers->round.role_rank_base + (uint32_t)local_rank,
		.role_world_size = workers->round.role_world_size,
		.pid = workers->pids[local_rank],
	};
}

/* The watchdog of a round begins or ends, where torch's timers are served. */
static void tell_watchdog(const struct telling *telling, enum torch_watchdog what)
{
	if (!telling->config->guard.file_timer)
		return;
	struct torch_event event = make_event(telling, TORCH_STATE_COUNT);
	event.watchdog = what;
	tell(telling, &event);
}

static void on_formed(struct telling *telling, const struct happening *happening)
{
	const struct history *history = telling->history;
	uint64_t since_ns = history->count > 1 ? history->attempts[history->count - 2].ended_ns
					       : history->started_ns;
	struct torch_event event = make_event(telling, TORCH_RENDEZVOUS);
	event.duration_ms = (int64_t)((happening->when_ns - since_ns) / NS_PER_MS);
	tell(telling, &event);
	event.state = TORCH_ASSIGN_WORKER_RANKS;
	event.duration_ms = 0; /* the ranks come with the round */
	tell(telling, &event);
	tell_watchdog(telling, TORCH_WATCHDOG_STARTED);
}

static void on_started(struct telling *telling, const struct happening *happening)
{
	struct torch_worker worker = describe(telling->workers, happening->rank);
	struct torch_event event = make_event(telling, TORCH_START);
	event.worker = &worker;
	tell(telling, &event);
}

static void on_gone(struct telling *telling, const struct happening *happening UNUSED)
{
	tell_watchdog(telling, TORCH_WATCHDOG_STOPPED);
}

static void on_expired(struct telling *telling, const struct happening *happening)
{
	const struct watchdog_expiry *expiry = happening->expiry;
	struct torch_timer timer = {
		.pid = expiry->pid,
		.scope = expiry->scope,
		.expiration_wall_ns = clock_wall_ns() - expiry->late_ns,
		.signal = expiry->signal,
	};
	struct torch_event event = make_event(telling, TORCH_STATE_COUNT);
	event.timer = &timer;
	event.watchdog = TORCH_TIMER_EXPIRED;
	tell(telling, &event);
	event.watchdog = TORCH_KILL_WORKER;
	if (expiry->signal > 0)
		tell(telling, &event);
}

/* What the worker wrote about its error, else how it ended, in the form of torch's error file. */
static char *raw_error(const struct history_failure *failure)
{
	AUTO(error_file_done) struct error_file file = ERROR_FILE_INIT;
	AUTO(buf_done) struct buf status = BUF_INIT;
	if (failure->error_file)
		error_file_read(failure->error_file, &file);
	exit_status_describe(&failure->status, &status);
	const char *message = file.message ? file.message : buf_str(&status);
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct json_out json = JSON_OUT(&text, .ascii = true, .spaced = true), *out = &json;
	json_out_open(out, NULL, '{');
	if (file.traceback) {
		json_out_open(out, "message", '{');
		json_out_text(out, "message", message);
		json_out_open(out, "extraInfo", '{');
		json_out_text(out, "py_callstack", file.traceback);
		json_out_int(out, "timestamp", file.timestamp);
		json_out_close(out, '}');
		json_out_close(out, '}');
	} else {
		json_out_text(out, "message", message);
	}
	json_out_close(out, '}');
	return buf_take_str(&text);
}

static const struct history_failure *failure_of(const struct history_attempt *attempt,
						size_t local_rank)
{
	for (size_t i = 0; i < attempt->count; i++)
		if (attempt->failures[i].local_rank == local_rank && !attempt->failures[i].stopped)
			return &attempt->failures[i];
	return NULL;
}

static void tell_worker_end(const struct telling *telling, size_t local_rank)
{
	const struct history_attempt *last = history_last(telling->history);
	const struct history_failure *failure = failure_of(last, local_rank);
	enum torch_state state = failure		     ? TORCH_FAILED
				 : last->end == ATTEMPT_DONE ? TORCH_SUCCEEDED
							     : TORCH_TERMINATED;
	struct torch_worker worker = describe(telling->workers, local_rank);
	struct torch_event event = make_event(telling, state);
	AUTO_FREE char *error = failure ? raw_error(failure) : NULL;
	if (failure) {
		const struct exit_status *status = &failure->status;
		worker.failed = true;
		worker.exit_code = status->kind == EXIT_SIGNAL ? -status->value : status->value;
	}
	event.worker = &worker;
	event.raw_error = error;
	tell(telling, &event);
}

/* The end of every worker of the last attempt, and of the job. */
static void on_decided(struct telling *telling, const struct happening *happening UNUSED)
{
	const struct history_attempt *last = history_last(telling->history);
	for (size_t i = 0; last && i < telling->config->nproc; i++)
		tell_worker_end(telling, i);
	bool done = last && last->end == ATTEMPT_DONE;
	struct torch_event event = make_event(telling, done ? TORCH_SUCCEEDED : TORCH_FAILED);
	const struct history_failure *cause = last ? history_cause(last) : NULL;
	AUTO_FREE char *error = cause ? raw_error(cause) : NULL;
	event.raw_error = error;
	tell(telling, &event);
}

static bool is_wanted(const struct run_config *config)
{
	return config->console_events;
}

const struct listener listen_torch_events = {
	.is_wanted = is_wanted,
	.on = {
		[HAPPENED_ROUND_FORMED] = on_formed,
		[HAPPENED_WORKER_STARTED] = on_started,
		[HAPPENED_TIMER_EXPIRED] = on_expired,
		[HAPPENED_GROUP_GONE] = on_gone,
		[HAPPENED_JOB_DECIDED] = on_decided,
	},
};
