#include "proto/event.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static const char *const names[] = {
	[EVENT_JOB_STARTED] = "job.started",	   [EVENT_ROUND_FORMED] = "round.formed",
	[EVENT_WORKER_STARTED] = "worker.started", [EVENT_WORKER_EXITED] = "worker.exited",
	[EVENT_GROUP_FAILED] = "group.failed",	   [EVENT_GROUP_DONE] = "group.done",
	[EVENT_GROUP_GONE] = "group.gone",	   [EVENT_WORKER_CONDEMNED] = "worker.condemned",
	[EVENT_STOP_REQUESTED] = "stop.requested", [EVENT_RESTART_REQUESTED] = "restart.requested",
	[EVENT_GROUP_RESTART] = "group.restart",   [EVENT_TIMER_EXPIRED] = "timer.expired",
	[EVENT_TIMER_REJECTED] = "timer.rejected", [EVENT_JOB_ENDED] = "job.ended",
};
static_assert(ARRAY_LEN(names) == EVENT_KIND_COUNT, "every event needs a name");

const char *event_name(enum event_kind kind)
{
	return names[kind];
}

static void set_number(json_t *object, const char *name, uint64_t value)
{
	json_object_set_new(object, name, json_integer((json_int_t)value));
}

/* Not jansson's json_string(): proto/json.h has a function of that name, which the linker
 * prefers. */
static void set_text(json_t *object, const char *name, const char *value)
{
	if (value)
		json_object_set_new(object, name, json_stringn(value, strlen(value)));
}

static void add_body(json_t *object, const struct event_body *body)
{
	if (body->rank != EVENT_NO_RANK) {
		json_object_set_new(object, "rank", json_integer(body->rank));
		json_object_set_new(object, "local_rank", json_integer(body->local_rank));
	}
	if (body->pid)
		json_object_set_new(object, "pid", json_integer(body->pid));
	if (body->world_size)
		set_number(object, "world_size", body->world_size);
	if (body->nodes) {
		set_number(object, "nodes", body->nodes);
		set_number(object, "group_rank", body->group_rank);
	}
	set_text(object, "reason", body->reason);
	set_text(object, "detail", body->detail);
	set_text(object, "scope", body->scope);
	set_text(object, "signal", body->signal);
	if (body->error_file && *body->error_file)
		set_text(object, "error_file", body->error_file);
	set_text(object, "status", body->status);
	if (body->exit_code)
		json_object_set_new(object, "exit_code", json_integer(*body->exit_code));
	if (body->metrics) {
		json_t *metrics = json_object();
		for (size_t i = 0; i < body->metric_count; i++)
			json_object_set_new(metrics, body->metrics[i].name,
					    json_integer(body->metrics[i].value));
		json_object_set_new(object, "metrics", metrics);
	}
	if (body->status) {
		set_number(object, "user_us", body->user_us);
		set_number(object, "system_us", body->system_us);
		set_number(object, "max_rss_kb", body->max_rss_kb);
	}
}

void event_line(struct buf *out, enum event_kind kind, const struct event_head *head,
		const struct event_body *body)
{
	char iso[CLOCK_ISO_MAX];
	clock_iso(head->wall_ns, iso);
	json_t *object = json_object();
	set_text(object, "event", names[kind]);
	set_number(object, "seq", head->sequence);
	set_number(object, "timestamp", head->wall_ns / NS_PER_MS);
	set_text(object, "ts", iso);
	set_number(object, "mono_ns", head->mono_ns);
	set_text(object, "run_id", head->run_id);
	set_text(object, "host", head->host);
	set_number(object, "round", head->round);
	if (head->ballot_round)
		json_object_set_new(object, "ballot",
				    json_pack("{s:I,s:I}", "epoch", (json_int_t)head->epoch,
					      "round", (json_int_t)head->ballot_round));
	set_number(object, "restarts", head->restarts);
	add_body(object, body);
	char *text = json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII);
	json_decref(object);
	buf_printf(out, "%s\n", text);
	free(text);
}
