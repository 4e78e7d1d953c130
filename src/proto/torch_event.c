#include "proto/torch_event.h"

#include <stdio.h>

#include "base/clock.h"
#include "proto/json_out.h"

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

void torch_event_line(struct buf *line, const struct torch_event *event)
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
