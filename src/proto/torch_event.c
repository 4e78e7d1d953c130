#include "proto/torch_event.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define PID_TEXT_MAX 24
#define TIME_TEXT_MAX 40

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

/* Bytes that are no text (a run id may be anything) are null as well. */
static json_t *text_if(const char *text)
{
	json_t *string = text ? json_stringn(text, strlen(text)) : NULL;
	return string ? string : json_null();
}

static json_t *number_if(bool known, int64_t value)
{
	return known ? json_integer(value) : json_null();
}

/* Torch has these as lists of one. */
static json_t *listed(bool known, int64_t value)
{
	return json_pack("[o]", number_if(known, value));
}

/* Torch has these as texts. */
static void add_timer(json_t *object, const struct torch_timer *timer)
{
	char text[TIME_TEXT_MAX];
	snprintf(text, sizeof(text), "%d", (int)timer->pid);
	json_object_set_new(object, "worker_pid", text_if(text));
	json_object_set_new(object, "scope_id", text_if(timer->scope));
	snprintf(text, sizeof(text), "%.6f", (double)timer->expiration_wall_ns / (double)NS_PER_S);
	json_object_set_new(object, "expiration_time", text_if(text));
	snprintf(text, sizeof(text), "%d", timer->signal);
	json_object_set_new(object, "signal", text_if(text));
}

static char *watchdog_metadata(const struct torch_event *event)
{
	json_t *object = json_pack("{s:s}", "watchdog_event", watchdog_names[event->watchdog]);
	if (event->timer)
		add_timer(object, event->timer);
	char *text = json_dumps(object, JSON_ENSURE_ASCII);
	json_decref(object);
	return text;
}

/* A JSON text inside a JSON string, as torch has it. */
static char *inner_metadata(const struct torch_event *event)
{
	const struct torch_worker *worker = event->worker;
	json_t *object = json_pack("{s:o,s:o}", "group_world_size",
				   number_if(event->group_world_size, event->group_world_size),
				   "entry_point", text_if(event->entry_point));
	if (worker) {
		json_object_set_new(object, "local_rank", listed(true, worker->local_rank));
		json_object_set_new(object, "role_rank", listed(true, worker->role_rank));
		json_object_set_new(object, "role_world_size",
				    listed(true, worker->role_world_size));
		json_object_set_new(object, "exit_code", listed(worker->failed, worker->exit_code));
		json_object_set_new(object, "worker_pid", listed(worker->failed, worker->pid));
	}
	char *text = json_dumps(object, JSON_ENSURE_ASCII);
	json_decref(object);
	return text;
}

static json_t *metadata(const struct torch_event *event)
{
	const struct torch_worker *worker = event->worker;
	char pid[PID_TEXT_MAX];
	snprintf(pid, sizeof(pid), "%d", worker ? (int)worker->pid : 0);
	char *inner = event->watchdog ? watchdog_metadata(event) : inner_metadata(event);
	json_t *object =
		json_pack("{s:o,s:o,s:o,s:o}", "run_id", text_if(event->run_id), "global_rank",
			  number_if(worker, worker ? worker->global_rank : 0), "group_rank",
			  number_if(event->group_world_size, event->group_rank), "worker_id",
			  text_if(worker ? pid : NULL));
	json_object_set_new(object, "role", text_if(event->role));
	json_object_set_new(object, "hostname", text_if(event->host));
	json_object_set_new(object, "state",
			    text_if(event->watchdog ? "RUNNING" : states[event->state]));
	json_object_set_new(object, "total_run_time", json_integer((json_int_t)event->run_time_s));
	json_object_set_new(object, "rdzv_backend", text_if(event->rdzv_backend));
	json_object_set_new(object, "raw_error", text_if(event->raw_error));
	json_object_set_new(object, "metadata", text_if(inner));
	json_object_set_new(object, "agent_restarts", json_integer(event->restarts));
	if (!event->watchdog)
		json_object_set_new(object, "duration_ms",
				    number_if(event->duration_ms >= 0, event->duration_ms));
	free(inner);
	return object;
}

void torch_event_line(struct buf *out, const struct torch_event *event)
{
	json_t *object =
		json_pack("{s:s+,s:s,s:I,s:o}", "name",
			  event->watchdog ? "" : "torchelastic.worker.status.",
			  event->watchdog ? watchdog_names[event->watchdog] : states[event->state],
			  "source", event->worker ? "WORKER" : "AGENT", "timestamp",
			  (json_int_t)(event->wall_ns / NS_PER_MS), "metadata", metadata(event));
	char *text = json_dumps(object, JSON_ENSURE_ASCII);
	json_decref(object);
	buf_printf(out, "%s\n", text);
	free(text);
}
