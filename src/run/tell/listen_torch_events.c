/* --event-log-handler=console: prints the job's events on stderr in the form of torch's agent, at
 * any log level. They go through the output, so a terminal that does not read blocks nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "proto/json_out.h"
#include "run/tell/error_file.h"
#include "run/tell/happening.h"

/* The events of torch's elastic agent, as its `console` handler prints them: for programs that read
 * torchrun's. The members and their order are torch's; the timestamp, always 0 there, is real. */

enum torch_state {
	TORCH_RENDEZVOUS,
	TORCH_ASSIGN_WORKER_RANKS,
	TORCH_START,
	TORCH_SUCCEEDED,
	TORCH_FAILED,
	TORCH_TERMINATED,
	TORCH_STATE_COUNT,
};

struct torch_worker {
	uint32_t global_rank, local_rank, role_rank, role_world_size;
	pid_t pid;
	bool failed;
	int exit_code; /* if it failed; a negative signal number if a signal ended it */
};

/* The events of torch's watchdog: they come from the agent, which is RUNNING. */
enum torch_watchdog {
	TORCH_NOT_WATCHDOG,
	TORCH_WATCHDOG_STARTED,
	TORCH_WATCHDOG_STOPPED,
	TORCH_TIMER_EXPIRED,
	TORCH_KILL_WORKER,
	TORCH_WATCHDOG_COUNT,
};

struct torch_timer {
	pid_t pid;
	const char *scope;
	uint64_t expiration_wall_ns;
	int signal;
};

struct torch_event {
	enum torch_state state;
	enum torch_watchdog watchdog;	   /* instead of `state` */
	const struct torch_timer *timer;   /* of the last two of them */
	const struct torch_worker *worker; /* NULL: the event is the agent's own */
	uint64_t wall_ns;
	const char *run_id, *role, *host, *rdzv_backend;
	const char *entry_point;	       /* without its directory */
	uint32_t group_rank, group_world_size; /* size 0: before the first round */
	uint64_t run_time_s;
	uint32_t restarts;
	int64_t duration_ms;   /* -1: none */
	const char *raw_error; /* JSON text, which becomes a JSON string; NULL: none */
};

#define NUMBER_TEXT_MAX 40
#define NAME_MAX_BYTES 64

static const char *const states[] = {
	[TORCH_RENDEZVOUS] = "RENDEZVOUS", [TORCH_ASSIGN_WORKER_RANKS] = "ASSIGN_WORKER_RANKS",
	[TORCH_START] = "START",	   [TORCH_SUCCEEDED] = "SUCCEEDED",
	[TORCH_FAILED] = "FAILED",	   [TORCH_TERMINATED] = "TERMINATED",
};
static_assert(ARRAY_LEN(states) == TORCH_STATE_COUNT, "every state needs a name");

static const char *const watchdog_names[] = {
	[TORCH_NOT_WATCHDOG] = "",
	[TORCH_WATCHDOG_STARTED] = "watchdog started",
	[TORCH_WATCHDOG_STOPPED] = "watchdog stopped",
	[TORCH_TIMER_EXPIRED] = "timer expired",
	[TORCH_KILL_WORKER] = "kill worker process",
};
static_assert(ARRAY_LEN(watchdog_names) == TORCH_WATCHDOG_COUNT, "every event needs a name");

static void put_number_if(struct json_out *out, const char *key, bool known, int64_t value)
{
	if (known)
		json_out_int(out, key, value);
	else
		json_out_null(out, key);
}

/* Torch has these as lists of one. */
static void put_listed(struct json_out *out, const char *key, bool known, int64_t value)
{
	json_out_open(out, key, '[');
	put_number_if(out, NULL, known, value);
	json_out_close(out, ']');
}

/* Torch has these as texts. */
static void put_timer(struct json_out *out, const struct torch_timer *timer)
{
	char text[NUMBER_TEXT_MAX];
	snprintf(text, sizeof(text), "%d", (int)timer->pid);
	json_out_text(out, "worker_pid", text);
	json_out_text(out, "scope_id", timer->scope);
	snprintf(text, sizeof(text), "%.6f", (double)timer->expiration_wall_ns / (double)NS_PER_S);
	json_out_text(out, "expiration_time", text);
	snprintf(text, sizeof(text), "%d", timer->signal);
	json_out_text(out, "signal", text);
}

static void put_worker(struct json_out *out, const struct torch_worker *worker)
{
	put_listed(out, "local_rank", true, worker->local_rank);
	put_listed(out, "role_rank", true, worker->role_rank);
	put_listed(out, "role_world_size", true, worker->role_world_size);
	put_listed(out, "exit_code", worker->failed, worker->exit_code);
	put_listed(out, "worker_pid", worker->failed, worker->pid);
}

/* A JSON text inside a JSON string, as torch has it. */
static void put_inner_metadata(struct json_out *outer, const struct torch_event *event)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct json_out json = JSON_OUT(&text, .ascii = true, .spaced = true), *out = &json;
	json_out_open(out, NULL, '{');
	if (event->watchdog) {
		json_out_text(out, "watchdog_event", watchdog_names[event->watchdog]);
		if (event->timer)
			put_timer(out, event->timer);
	} else {
		put_number_if(out, "group_world_size", event->group_world_size,
			      event->group_world_size);
		json_out_text(out, "entry_point", event->entry_point);
		if (event->worker)
			put_worker(out, event->worker);
	}
	json_out_close(out, '}');
	json_out_text(outer, "metadata", buf_str(&text));
}

static void put_metadata(struct json_out *out, const struct torch_event *event)
{
	const struct torch_worker *worker = event->worker;
	char pid[NUMBER_TEXT_MAX];
	snprintf(pid, sizeof(pid), "%d", worker ? (int)worker->pid : 0);
	json_out_open(out, "metadata", '{');
	json_out_text(out, "run_id", event->run_id);
	put_number_if(out, "global_rank", worker, worker ? worker->global_rank : 0);
	put_number_if(out, "group_rank", event->group_world_size, event->group_rank);
	json_out_text(out, "worker_id", worker ? pid : NULL);
	json_out_text(out, "role", event->role);
	json_out_text(out, "hostname", event->host);
	json_out_text(out, "state", event->watchdog ? "RUNNING" : states[event->state]);
	json_out_int(out, "total_run_time", (int64_t)event->run_time_s);
	json_out_text(out, "rdzv_backend", event->rdzv_backend);
	json_out_text(out, "raw_error", event->raw_error);
	put_inner_metadata(out, event);
	json_out_int(out, "agent_restarts", event->restarts);
	if (!event->watchdog)
		put_number_if(out, "duration_ms", event->duration_ms >= 0, event->duration_ms);
	json_out_close(out, '}');
}

/* Appends the line with its newline. */
static void torch_event_line(struct buf *line, const struct torch_event *event)
{
	struct json_out json = JSON_OUT(line, .ascii = true, .spaced = true), *out = &json;
	char name[NAME_MAX_BYTES];
	snprintf(name, sizeof(name), "%s%s", event->watchdog ? "" : "torchelastic.worker.status.",
		 event->watchdog ? watchdog_names[event->watchdog] : states[event->state]);
	json_out_open(out, NULL, '{');
	json_out_text(out, "name", name);
	json_out_text(out, "source", event->worker ? "WORKER" : "AGENT");
	json_out_int(out, "timestamp", (int64_t)(event->wall_ns / NS_PER_MS));
	put_metadata(out, event);
	json_out_close(out, '}');
	buf_append_char(line, '\n');
}

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
