#include "proto/event.h"

#include "base/clock.h"
#include "proto/json_out.h"
#include "proto/story.h"

static const char *const names[] = {
	[EVENT_JOB_STARTED] = "job.started",
	[EVENT_ROUND_FORMED] = "round.formed",
	[EVENT_WORKER_STARTED] = "worker.started",
	[EVENT_WORKER_EXITED] = "worker.exited",
	[EVENT_GROUP_FAILED] = "group.failed",
	[EVENT_GROUP_DONE] = "group.done",
	[EVENT_GROUP_GONE] = "group.gone",
	[EVENT_WORKER_CONDEMNED] = "worker.condemned",
	[EVENT_STOP_REQUESTED] = "stop.requested",
	[EVENT_RESTART_REQUESTED] = "restart.requested",
	[EVENT_GROUP_RESTART] = "group.restart",
	[EVENT_TIMER_EXPIRED] = "timer.expired",
	[EVENT_TIMER_REJECTED] = "timer.rejected",
	[EVENT_HANG_EXPLAINED] = "hang.explained",
	[EVENT_NOTICE_GIVEN] = "notice.given",
	[EVENT_NOTICE_AGREED] = "notice.agreed",
	[EVENT_STRAGGLER_FOUND] = "straggler.found",
	[EVENT_STRAGGLER_GONE] = "straggler.gone",
	[EVENT_STANDSTILL_BEGAN] = "standstill.began",
	[EVENT_STANDSTILL_ENDED] = "standstill.ended",
	[EVENT_JOB_ENDED] = "job.ended",
};
static_assert(ARRAY_LEN(names) == EVENT_KIND_COUNT, "every event needs a name");

/* Numbers that no event has as 0. */
static void put_number_if(struct json_out *out, const char *name, uint64_t value)
{
	if (value)
		json_out_int(out, name, (int64_t)value);
}

static void put_text_if(struct json_out *out, const char *name, const char *text)
{
	if (text)
		json_out_text(out, name, text);
}

static void put_body(struct json_out *out, const struct event_body *body)
{
	if (body->rank != EVENT_NO_RANK) {
		json_out_int(out, "rank", body->rank);
		json_out_int(out, "local_rank", body->local_rank);
	}
	put_number_if(out, "pid", (uint64_t)body->pid);
	put_number_if(out, "world_size", body->world_size);
	put_number_if(out, "nodes", body->nodes);
	if (body->nodes)
		json_out_int(out, "group_rank", (int64_t)body->group_rank);
	put_text_if(out, "reason", body->reason);
	put_text_if(out, "detail", body->detail);
	put_text_if(out, "scope", body->scope);
	put_text_if(out, "signal", body->signal);
	json_out_text_if(out, "error_file", body->error_file);
	put_text_if(out, "status", body->status);
	if (body->exit_code)
		json_out_int(out, "exit_code", *body->exit_code);
	if (body->step)
		json_out_int(out, "step", (int64_t)*body->step);
	if (body->saved_step)
		json_out_int(out, "saved_step", (int64_t)*body->saved_step);
	if (body->kept_step)
		json_out_int(out, "kept_step", (int64_t)*body->kept_step);
	if (body->of_steps || body->of_collectives) {
		json_out_int(out, "times_last", (int64_t)body->times);
		put_number_if(out, "of_steps", body->of_steps);
		put_number_if(out, "of_collectives", body->of_collectives);
		put_text_if(out, "group", body->group);
		json_out_int(out, "lag_us", (int64_t)body->lag_us);
	}
	if (body->stopped)
		json_out_bool(out, "stopped", true);
	if (body->story) {
		story_put(body->story, out);
		story_put_verdict(body->story, out);
	}
	put_number_if(out, "still_ms", body->still_ms);
	put_number_if(out, "usual_ms", body->usual_ms);
	if (body->status) {
		json_out_int(out, "user_us", (int64_t)body->user_us);
		json_out_int(out, "system_us", (int64_t)body->system_us);
		json_out_int(out, "max_rss_kb", (int64_t)body->max_rss_kb);
	}
}

static void put_head(struct json_out *out, const struct event_head *head)
{
	char iso[CLOCK_ISO_MAX];
	clock_iso(head->wall_ns, iso);
	json_out_int(out, "seq", (int64_t)head->sequence);
	json_out_int(out, "timestamp", (int64_t)(head->wall_ns / NS_PER_MS));
	json_out_text(out, "ts", iso);
	json_out_int(out, "mono_ns", (int64_t)head->mono_ns);
	put_text_if(out, "run_id", head->run_id);
	put_text_if(out, "host", head->host);
	json_out_int(out, "round", (int64_t)head->round);
	if (head->ballot_round) {
		json_out_open(out, "ballot", '{');
		json_out_int(out, "epoch", (int64_t)head->epoch);
		json_out_int(out, "round", (int64_t)head->ballot_round);
		json_out_close(out, '}');
	}
	json_out_int(out, "restarts", (int64_t)head->restarts);
}

void event_line(struct buf *out, enum event_kind kind, const struct event_head *head,
		const struct event_body *body)
{
	struct json_out json = JSON_OUT(out, .ascii = true);
	json_out_open(&json, NULL, '{');
	json_out_text(&json, "event", names[kind]);
	put_head(&json, head);
	put_body(&json, body);
	json_out_close(&json, '}');
	buf_append_char(out, '\n');
}
