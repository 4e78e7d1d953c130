#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/worker/exit_code.h"
#include "proto/dash/board.h"
#include "proto/dash/past_private.h"

#define TAIL_SHOWN ((size_t)2048)

static struct json_value report_of(const struct past_host *host)
{
	struct json_value root;
	if (buf_len(&host->report) == 0 || json_value_parse((const char *)buf_data(&host->report),
							    buf_len(&host->report), &root) < 0)
		return JSON_ABSENT;
	return root;
}

/* The attempt of the report for the host's round: both end with the last one. */
static struct json_value attempt_of(const struct past_host *host, size_t round)
{
	struct json_value attempts = json_value_get(report_of(host), "attempts"), item;
	size_t count = json_value_count(attempts), from_end = host->round_count - round, i = 0;
	struct json_in in;
	if (count < from_end)
		return JSON_ABSENT;
	for (json_value_enter(attempts, &in); json_value_next(&in, &item); i++)
		if (i == count - from_end)
			return item;
	return JSON_ABSENT;
}

/* ---- rounds of all hosts together ---- */

/* One round of the job. */
struct joint {
	int64_t number, restarts, world_size, nodes, started_ms, ended_ms;
	size_t hosts, done, failed;
	const struct past_host *cause_host; /* where it failed first */
	const struct past_round *cause;
	bool last;
};

static int compare(const void *a, const void *b)
{
	const struct joint *x = a, *y = b;
	return (x->number > y->number) - (x->number < y->number);
}

static struct joint *joint_of(struct joint *joints, size_t *count, int64_t number)
{
	for (size_t i = *count; i > 0; i--)
		if (joints[i - 1].number == number)
			return &joints[i - 1];
	if (*count == PAST_ROUNDS_MAX)
		return NULL;
	joints[*count] = (struct joint){ .number = number };
	return &joints[(*count)++];
}

static void join_round(struct joint *joint, const struct past_host *host,
		       const struct past_round *round)
{
	joint->restarts = MAX(joint->restarts, round->restarts);
	joint->world_size = MAX(joint->world_size, round->world_size);
	joint->nodes = MAX(joint->nodes, round->nodes);
	joint->started_ms =
		joint->hosts ? MIN(joint->started_ms, round->started_ms) : round->started_ms;
	joint->ended_ms = MAX(joint->ended_ms, round->ended_ms);
	joint->hosts++;
	joint->done += round->done;
	joint->failed += round->failed;
	if (round->failed && (!joint->cause || round->failed_ms < joint->cause->failed_ms)) {
		joint->cause = round;
		joint->cause_host = host;
	}
}

static size_t join_all(const struct past *past, struct joint *joints)
{
	size_t count = 0;
	for (size_t i = 0; i < past->host_count; i++)
		for (size_t k = 0; k < past->hosts[i].round_count; k++) {
			const struct past_round *round = &past->hosts[i].rounds[k];
			struct joint *joint = joint_of(joints, &count, round->number);
			if (joint)
				join_round(joint, &past->hosts[i], round);
		}
	qsort(joints, count, sizeof(*joints), compare);
	if (count)
		joints[count - 1].last = true;
	return count;
}

/* What a report says of this round, preferably that of the host where it failed. */
static struct json_value told_of(const struct past *past, const struct joint *joint)
{
	struct json_value found = JSON_ABSENT;
	for (size_t i = 0; i < past->host_count; i++) {
		const struct past_host *host = &past->hosts[i];
		for (size_t k = 0; k < host->round_count; k++) {
			if (host->rounds[k].number != joint->number)
				continue;
			struct json_value told = attempt_of(host, k);
			if (told.kind == JSON_OBJECT &&
			    (found.kind != JSON_OBJECT || host == joint->cause_host))
				found = told;
		}
	}
	return found;
}

static char *end_of(struct json_value told, const struct joint *joint)
{
	char *end = json_value_text(json_value_get(told, "end"));
	if (end)
		return end;
	return mem_strdup(joint->failed			? "failed"
			  : joint->done == joint->hosts ? "done"
			  : joint->last			? "stopped"
							: "regroup");
}

/* ---- attempts ---- */

static struct json_value first_cause(struct json_value told)
{
	int64_t index = past_int(told, "first_cause", -1), i = 0;
	struct json_value item;
	struct json_in in;
	for (json_value_enter(json_value_get(told, "failures"), &in); json_value_next(&in, &item);
	     i++)
		if (i == index)
			return item;
	return JSON_ABSENT;
}

/* The step after which the ranks left as agreed. */
static bool left_after(struct json_value told, int64_t *ret_step)
{
	struct json_value first = json_value_first(json_value_get(told, "left"));
	return json_value_int(json_value_get(first, "step"), ret_step);
}

static void put_tail(struct json_value failure, struct json_out *out)
{
	AUTO_FREE char *tail = json_value_text(json_value_get(failure, "stderr_tail"));
	if (!tail || !*tail)
		return;
	json_out_text(out, "tail", tail + (strlen(tail) - MIN(strlen(tail), TAIL_SHOWN)));
}

static const char *status_of(const struct past_round *round, int64_t rank)
{
	for (size_t i = 0; i < round->worker_count; i++)
		if (round->workers[i].rank == rank && round->workers[i].status)
			return round->workers[i].status;
	return "unknown";
}

static void put_if(struct json_value from, const char *key, struct json_out *out)
{
	struct json_value value = json_value_get(from, key);
	if (value.kind != JSON_NONE)
		json_out_value(out, key, value);
}

static void put_cause(const struct joint *joint, struct json_value failure, struct json_out *out)
{
	static const char *const names[] = { "rank", "host", "reason", "end" };
	if (failure.kind != JSON_OBJECT && !joint->cause)
		return;
	json_out_open(out, "cause", '{');
	if (failure.kind == JSON_OBJECT) {
		for (size_t i = 0; i < ARRAY_LEN(names); i++)
			put_if(failure, names[i], out);
		put_tail(failure, out);
	} else {
		const char *host = joint->cause_host->name, *reason = joint->cause->reason;
		json_out_int(out, "rank", joint->cause->failed_rank);
		json_out_text(out, "host", host ? host : "?");
		json_out_text(out, "reason", reason ? reason : "unknown");
		json_out_text(out, "end", status_of(joint->cause, joint->cause->failed_rank));
	}
	json_out_close(out, '}');
}

static void put_attempt(const struct past *past, const struct joint *joint, struct json_out *out)
{
	struct json_value told = told_of(past, joint);
	AUTO_FREE char *end = end_of(told, joint);
	int64_t left_step;
	json_out_open(out, NULL, '{');
	json_out_int(out, "restart", joint->restarts);
	json_out_int(out, "world_size", joint->world_size);
	json_out_text(out, "end", end);
	json_out_int(out, "started_ms", joint->started_ms);
	if (joint->ended_ms)
		json_out_int(out, "ended_ms", joint->ended_ms);
	put_if(told, "first_step", out);
	put_if(told, "step", out);
	if (left_after(told, &left_step))
		json_out_int(out, "left_step", left_step);
	put_cause(joint, first_cause(told), out);
	put_if(told, "collectives", out);
	json_out_close(out, '}');
}

/* ---- the whole job ---- */

static bool happened_there(struct json_value report)
{
	struct json_value cause = json_value_get(json_value_get(report, "story"), "first_cause");
	AUTO_FREE char *host = json_value_text(json_value_get(report, "host"));
	AUTO_FREE char *there = json_value_text(json_value_get(cause, "host"));
	return host && there && str_eq(host, there);
}

/* The report that says most of the job: that of the host where it failed first; absent: it ended
 * well, or its reports are gone. */
static struct json_value any_report(const struct past *past)
{
	struct json_value found = JSON_ABSENT;
	for (size_t i = 0; i < past->host_count; i++) {
		struct json_value report = report_of(&past->hosts[i]);
		if (report.kind != JSON_OBJECT)
			continue;
		if (happened_there(report))
			return report;
		if (found.kind != JSON_OBJECT)
			found = report;
	}
	return found;
}

static const char *last_stacks(const struct past *past, struct joint *joint, char **ret_owned)
{
	*ret_owned = joint ? json_value_text(json_value_get(told_of(past, joint), "stacks")) : NULL;
	return *ret_owned;
}

static void put_job(const struct past *past, struct joint *joints, size_t count,
		    struct json_out *out)
{
	struct json_value report = any_report(past);
	struct joint *last = count ? &joints[count - 1] : NULL;
	AUTO_FREE char *outcome = json_value_text(json_value_get(report, "outcome"));
	AUTO_FREE char *reason = json_value_text(json_value_get(report, "exit_reason"));
	AUTO_FREE char *owned = NULL;
	const char *stacks = last_stacks(past, last, &owned);
	int64_t started_ms = 0, ended_ms = 0;
	bool ended = true;
	for (size_t i = 0; i < past->host_count; i++) {
		const struct past_host *host = &past->hosts[i];
		if (host->started_ms && (!started_ms || host->started_ms < started_ms))
			started_ms = host->started_ms;
		ended_ms = MAX(ended_ms, host->seen_ms);
		ended &= host->ended;
	}
	bool done = last && last->done == last->hosts && ended;
	json_out_open(out, NULL, '{');
	json_out_text(out, "run_id", past->hosts[0].run_id ? past->hosts[0].run_id : "job");
	put_if(report, "version", out);
	bool left = reason && str_eq(reason, exit_rows[EXIT_REASON_SAVED].name);
	json_out_text(out, "state", left ? "left" : outcome ? outcome : done ? "done" : "ended");
	json_out_int(out, "started_ms", started_ms);
	json_out_int(out, "ended_ms", ended_ms);
	if (last) {
		json_out_int(out, "round", last->number);
		json_out_int(out, "nodes", last->nodes);
		json_out_int(out, "min_nodes", last->nodes);
		json_out_int(out, "max_nodes", last->nodes);
		json_out_int(out, "world_size", last->world_size);
		json_out_int(out, "restarts", last->restarts);
	}
	put_if(report, "max_restarts", out);
	put_if(report, "story", out);
	put_if(report, "verdict", out);
	if (report.kind == JSON_OBJECT)
		put_if(report, "exit_code", out);
	else if (done)
		json_out_int(out, "exit_code", 0);
	json_out_text(out, "log_dir", past->log_dir);
	json_out_text_if(out, "last_hang", stacks);
	json_out_close(out, '}');
}

static void put_about(const struct past *past, struct json_out *out)
{
	struct json_value report = any_report(past),
			  nproc = json_value_get(report, "nproc_per_node");
	json_out_open(out, NULL, '{');
	put_if(report, "program", out);
	put_if(report, "command", out);
	put_if(report, "role", out);
	if (nproc.kind != JSON_NONE)
		json_out_value(out, "nproc", nproc);
	json_out_close(out, '}');
}

/* ---- ranks ---- */

/* As /api/state of the host would have told it when the round began, or at its end. */
static void put_state(const struct past_host *host, const struct past_round *round, bool over,
		      struct buf *text)
{
	struct json_out json = JSON_OUT(text, .ascii = true), *out = &json;
	json_out_open(out, NULL, '{');
	json_out_text(out, "state", !host->ended && over ? "unknown" : "ended");
	json_out_int(out, "pid", host->pid);
	json_out_open(out, "workers", '[');
	for (size_t i = 0; round && i < round->worker_count; i++) {
		const struct past_worker *worker = &round->workers[i];
		bool ended = over && worker->ended;
		json_out_open(out, NULL, '{');
		json_out_int(out, "rank", worker->rank);
		json_out_int(out, "pid", worker->pid);
		json_out_text(out, "state", ended ? "ended" : over ? "unknown" : "running");
		bool first = worker->rank == round->failed_rank;
		if (ended && worker->stopped && !first)
			json_out_bool(out, "stopped", true);
		else
			json_out_bool(out, "failed", ended && (worker->code != 0 || first));
		if (over && worker->step >= 0)
			json_out_int(out, "step", worker->step);
		if (worker->rss_kb > 0 && worker->rss_kb < INT32_MAX)
			json_out_int(out, "resident_bytes", worker->rss_kb * 1024);
		json_out_close(out, '}');
	}
	json_out_close(out, ']');
	json_out_close(out, '}');
}

static const struct past_round *round_of(const struct past_host *host, int64_t number)
{
	for (size_t i = 0; i < host->round_count; i++)
		if (host->rounds[i].number == number)
			return &host->rounds[i];
	return NULL;
}

/* The charts and the grid see the job as somebody who looked at each beginning and end. */
static void look(const struct past *past, struct board *board, const struct joint *joint, bool over)
{
	int64_t when_ms = over && joint->ended_ms ? joint->ended_ms : joint->started_ms;
	board_begin(board, (size_t)MAX(joint->world_size, (int64_t)0), NS_PER_S,
		    (uint64_t)MAX(when_ms, (int64_t)0));
	for (size_t i = 0; i < past->host_count; i++) {
		const struct past_host *host = &past->hosts[i];
		AUTO(buf_done) struct buf state = BUF_INIT;
		put_state(host, round_of(host, joint->number), over, &state);
		board_take(board, host->name ? host->name : "?", host->group_rank, false,
			   bytes_of(buf_data(&state), buf_len(&state)));
	}
	board_end(board);
}

static void set_parts(const struct past *past, struct board *board, struct joint *joints,
		      size_t count)
{
	AUTO(buf_done) struct buf job = BUF_INIT, attempts = BUF_INIT, about = BUF_INIT;
	struct json_out out = JSON_OUT(&job, .ascii = true);
	put_job(past, joints, count, &out);
	board_set_part(board, BOARD_JOB, &job);
	out = JSON_OUT(&attempts, .ascii = true);
	json_out_open(&out, NULL, '[');
	for (size_t i = 0; i < count; i++)
		put_attempt(past, &joints[i], &out);
	json_out_close(&out, ']');
	board_set_part(board, BOARD_ATTEMPTS, &attempts);
	out = JSON_OUT(&about, .ascii = true);
	put_about(past, &out);
	board_set_part(board, BOARD_ABOUT, &about);
}

void past_put(struct past *past, struct buf *text)
{
	AUTO_FREE struct joint *joints = NEW_ARRAY(struct joint, PAST_ROUNDS_MAX);
	AUTO(buf_done) struct buf all = BUF_INIT, lines = BUF_INIT;
	size_t count = past->host_count ? join_all(past, joints) : 0;
	struct board *board = board_new();
	uint64_t at = 0;
	for (size_t i = 0; i < count; i++) {
		look(past, board, &joints[i], false);
		look(past, board, &joints[i], true);
	}
	if (past->host_count)
		set_parts(past, board, joints, count);
	board_put_all(board, &all);
	board_free(board);
	struct json_out out = JSON_OUT(text);
	json_out_open(&out, NULL, '{');
	json_out_text(&out, "kind", "job");
	json_out_raw(&out, "board", (const char *)buf_data(&all), buf_len(&all));
	if (log_feed_put(past->feed, &at, SIZE_MAX, &lines))
		json_out_raw(&out, "log", (const char *)buf_data(&lines), buf_len(&lines));
	json_out_close(&out, '}');
}
