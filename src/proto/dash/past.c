#include "proto/dash/past.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "proto/dash/past_private.h"

struct past *past_new(const char *log_dir)
{
	struct past *past = NEW(struct past);
	past->log_dir = mem_strdup(log_dir);
	past->feed = log_feed_new();
	return past;
}

static void free_round(struct past_round *round)
{
	for (size_t i = 0; i < round->worker_count; i++)
		free(round->workers[i].status);
	free(round->workers);
	free(round->reason);
}

void past_free(struct past *past)
{
	if (!past)
		return;
	for (size_t i = 0; i < past->host_count; i++) {
		struct past_host *host = &past->hosts[i];
		for (size_t k = 0; k < host->round_count; k++)
			free_round(&host->rounds[k]);
		free(host->rounds);
		free(host->name);
		free(host->run_id);
		buf_done(&host->report);
	}
	free(past->hosts);
	free(past->log_dir);
	log_feed_free(past->feed);
	free(past);
}

static struct past_host *last_host(const struct past *past)
{
	return &past->hosts[past->host_count - 1];
}

int past_add_host(struct past *past)
{
	if (past->host_count == PAST_HOSTS_MAX)
		return -E2BIG;
	ARRAY_RESERVE(past->hosts, past->host_count, past->host_cap);
	past->hosts[past->host_count++] =
		(struct past_host){ .group_rank = -1, .report = BUF_INIT };
	return 0;
}

const char *past_run_id(const struct past *past)
{
	return last_host(past)->run_id;
}

int64_t past_int(struct json_value object, const char *key, int64_t otherwise)
{
	int64_t number;
	return json_value_int(json_value_get(object, key), &number) ? number : otherwise;
}

/* ---- events ---- */

static struct past_round *last_round(struct past_host *host)
{
	return host->round_count ? &host->rounds[host->round_count - 1] : NULL;
}

static void set_text(char **field, struct json_value value)
{
	char *text = json_value_text(value);
	if (!text)
		return;
	free(*field);
	*field = text;
}

static void form_round(struct past_host *host, struct json_value event, int64_t when_ms)
{
	if (host->round_count == PAST_ROUNDS_MAX)
		return;
	ARRAY_RESERVE(host->rounds, host->round_count, host->round_cap);
	host->group_rank = past_int(event, "group_rank", -1);
	host->rounds[host->round_count++] = (struct past_round){
		.number = past_int(event, "round", 0),
		.restarts = past_int(event, "restarts", 0),
		.world_size = past_int(event, "world_size", 0),
		.nodes = past_int(event, "nodes", 1),
		.started_ms = when_ms,
		.failed_rank = -1,
	};
}

static struct past_worker *find_worker(struct past_round *round, int64_t rank)
{
	for (size_t i = round->worker_count; i > 0; i--)
		if (round->workers[i - 1].rank == rank)
			return &round->workers[i - 1];
	return NULL;
}

static void start_worker(struct past_host *host, struct json_value event)
{
	struct past_round *round = last_round(host);
	if (host->worker_count == PAST_WORKERS_MAX)
		return;
	host->worker_count++;
	ARRAY_RESERVE(round->workers, round->worker_count, round->worker_cap);
	round->workers[round->worker_count++] = (struct past_worker){
		.rank = past_int(event, "rank", -1),
		.local_rank = past_int(event, "local_rank", -1),
		.pid = past_int(event, "pid", 0),
		.step = -1,
	};
}

static void end_worker(struct past_host *host, struct json_value event)
{
	struct past_worker *worker = find_worker(last_round(host), past_int(event, "rank", -1));
	if (!worker)
		return;
	worker->ended = true;
	worker->code = past_int(event, "exit_code", -1);
	worker->rss_kb = past_int(event, "max_rss_kb", 0);
	worker->step = past_int(event, "step", -1);
	worker->stopped = json_value_is_true(json_value_get(event, "stopped"));
	set_text(&worker->status, json_value_get(event, "status"));
}

static void fail_round(struct past_round *round, struct json_value event, int64_t when_ms)
{
	if (round->failed)
		return;
	round->failed = true;
	round->failed_ms = when_ms;
	round->failed_rank = past_int(event, "rank", -1);
	set_text(&round->reason, json_value_get(event, "reason"));
}

static void take_event(struct past_host *host, const char *name, struct json_value event)
{
	int64_t when_ms = past_int(event, "timestamp", 0);
	struct past_round *round = last_round(host);
	host->seen_ms = MAX(host->seen_ms, when_ms);
	if (str_eq(name, "job.started")) {
		host->started_ms = when_ms;
		host->pid = past_int(event, "pid", 0);
	} else if (str_eq(name, "job.ended")) {
		host->ended = true;
	} else if (str_eq(name, "round.formed")) {
		form_round(host, event, when_ms);
	} else if (!round) {
		return;
	} else if (str_eq(name, "worker.started")) {
		start_worker(host, event);
	} else if (str_eq(name, "worker.exited")) {
		end_worker(host, event);
	} else if (str_eq(name, "group.failed")) {
		fail_round(round, event, when_ms);
	} else if (str_eq(name, "group.done")) {
		round->done = true;
	} else if (str_eq(name, "group.gone")) {
		round->ended_ms = when_ms;
	}
}

int past_take_event(struct past *past, struct bytes line)
{
	struct past_host *host = last_host(past);
	struct json_value event;
	if (json_value_parse((const char *)line.data, line.len, &event) < 0 ||
	    event.kind != JSON_OBJECT)
		return -EINVAL;
	AUTO_FREE char *name = json_value_text(json_value_get(event, "event"));
	if (!name)
		return -EINVAL;
	if (!host->run_id)
		set_text(&host->run_id, json_value_get(event, "run_id"));
	if (!host->name)
		set_text(&host->name, json_value_get(event, "host"));
	take_event(host, name, event);
	return 0;
}

int past_take_report(struct past *past, struct bytes text)
{
	struct past_host *host = last_host(past);
	struct json_value report;
	buf_clear(&host->report);
	buf_append(&host->report, text.data, text.len);
	if (json_value_parse((const char *)buf_data(&host->report), text.len, &report) < 0 ||
	    report.kind != JSON_OBJECT) {
		buf_clear(&host->report);
		return -EINVAL;
	}
	if (!host->run_id)
		set_text(&host->run_id, json_value_get(report, "run_id"));
	if (!host->name)
		set_text(&host->name, json_value_get(report, "host"));
	return 0;
}

/* ---- logs ---- */

/* Without events the place of a worker on its host has to do. */
static int64_t rank_of(const struct past_host *host, size_t attempt, int64_t local_rank)
{
	const struct past_round *round =
		attempt < host->round_count ? &host->rounds[attempt] : NULL;
	for (size_t i = 0; round && i < round->worker_count; i++)
		if (round->workers[i].local_rank == local_rank)
			return round->workers[i].rank;
	return local_rank;
}

void past_take_log(struct past *past, size_t host, size_t attempt, int64_t local_rank,
		   enum log_stream stream, struct bytes bytes)
{
	int64_t rank = rank_of(&past->hosts[host], attempt, local_rank);
	AUTO(buf_done) struct buf head = BUF_INIT;
	if (rank < 0 || rank > UINT32_MAX)
		return;
	for (size_t len; bytes.len > 0; bytes = bytes_of(bytes.data + len, bytes.len - len)) {
		len = MIN(bytes.len, LOG_BLOCK_MAX);
		buf_clear(&head);
		log_block_head(&head, stream, (uint32_t)rank, len);
		log_feed_take(past->feed, 0, bytes_of(buf_data(&head), buf_len(&head)), false, 0);
		log_feed_take(past->feed, 0, bytes_of(bytes.data, len), false, 0);
	}
	log_feed_end(past->feed, 0);
}

void past_end_attempt(struct past *past, size_t attempt)
{
	int64_t when_ms = 0;
	for (size_t i = 0; i < past->host_count; i++) {
		const struct past_host *host = &past->hosts[i];
		if (attempt < host->round_count)
			when_ms = MAX(when_ms, MAX(host->rounds[attempt].started_ms,
						   host->rounds[attempt].ended_ms));
	}
	log_feed_collect(past->feed, NS_NEVER, (uint64_t)when_ms);
}
