#include "run/tell/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/procfs.h"
#include "base/str.h"
#include "proto/json_out.h"
#include "proto/metrics.h"
#include "run/tell/pages_private.h"
#include "run/tell/make_story.h"
#include "run/tell/text.h"

static const char *const group_states[] = {
	[GROUP_IDLE] = "waiting",      [GROUP_ACTIVE] = "running",   [GROUP_STOPPING] = "stopping",
	[GROUP_LINGERING] = "leaving", [GROUP_KILLING] = "stopping",
};
static_assert(ARRAY_LEN(group_states) == GROUP_STATE_COUNT, "every state needs a name");

static const char *const worker_states[] = {
	[WORKER_NEW] = "starting",
	[WORKER_RUNNING] = "running",
	[WORKER_ENDED] = "ended",
};
static_assert(ARRAY_LEN(worker_states) == WORKER_STATE_COUNT, "every state needs a name");

static double seconds(uint64_t ns)
{
	return (double)ns / (double)NS_PER_S;
}

/* How long ago this turn of the loop began: the request waited that long for others. */
static uint64_t loop_latency_ns(const struct pages *pages)
{
	struct timeval turn;
	event_base_gettimeofday_cached(pages->base, &turn);
	uint64_t began_ns = (uint64_t)turn.tv_sec * NS_PER_S + (uint64_t)turn.tv_usec * NS_PER_US;
	uint64_t now_ns = clock_wall_ns();
	return now_ns > began_ns ? now_ns - began_ns : 0;
}

uint32_t pages_restarts(const struct pages *pages)
{
	const struct history_attempt *last = history_last(pages->history);
	return last ? last->restart_count : 0;
}

/* What is known of the last hang; NULL: nothing. */
const char *pages_last_hang(const struct history *history)
{
	for (size_t i = history->count; i-- > 0;)
		if (history->attempts[i].collectives)
			return history->attempts[i].collectives;
	return NULL;
}

const char *pages_state_name(const struct pages *pages)
{
	return group_states[pages->group->state];
}

static bool all_run(const struct pages *pages)
{
	const struct group *group = pages->group;
	if (!pages->workers->warden) /* the group does not know of its end yet */
		return false;
	for (size_t i = 0; i < group->count; i++)
		if (group->workers[i].state != WORKER_RUNNING)
			return false;
	return group->state == GROUP_ACTIVE && group->count > 0;
}

/* ---- probes ---- */

bool pages_is_healthy(const struct pages *pages)
{
	return pages->workers->warden && loop_latency_ns(pages) < PAGES_LATENCY_MAX_NS;
}

static void show_health(void *arg, struct http_reply *reply)
{
	const struct pages *pages = arg;
	if (!pages->workers->warden) {
		reply->code = 503;
		buf_append_str(&reply->body,
			       "unhealthy: the warden is gone, and what it left is being killed\n");
		return;
	}
	uint64_t latency_ns = loop_latency_ns(arg);
	bool healthy = latency_ns < PAGES_LATENCY_MAX_NS;
	reply->code = healthy ? 200 : 503;
	buf_printf(&reply->body, "%s: the loop answered within %.6f s\n", healthy ? "ok" : "slow",
		   seconds(latency_ns));
}

static void show_ready(void *arg, struct http_reply *reply)
{
	const struct pages *pages = arg;
	bool ready = all_run(pages);
	reply->code = ready ? 200 : 503;
	buf_printf(&reply->body, "%s: %s\n", ready ? "ready" : "not ready",
		   group_states[pages->group->state]);
}

/* ---- state ---- */

static void put_last_line(struct json_out *out, const struct pages *pages, size_t rank)
{
	AUTO(buf_done) struct buf tail = BUF_INIT, clean = BUF_INIT;
	uint64_t id = workers_id_of(pages->workers, rank);
	int r = output_tail(pages->output, id, OUTPUT_STDERR, &tail);
	if (buf_len(&tail) == 0 && output_tail(pages->output, id, OUTPUT_STDOUT, &tail) < 0 &&
	    r < 0)
		return;
	text_clean(&clean, buf_data(&tail), buf_len(&tail));
	const char *line = text_tail(buf_str(&clean), 1);
	AUTO_FREE char *whole = mem_strndup(line, strcspn(line, "\n"));
	json_out_text(out, "last_line", whole);
}

static void put_seconds(struct json_out *out, const char *key, uint64_t since_ns, uint64_t now_ns)
{
	json_out_real(out, key, seconds(now_ns - MIN(now_ns, since_ns)));
}

static void put_end(struct json_out *out, const struct worker *worker)
{
	AUTO(buf_done) struct buf end = BUF_INIT;
	exit_status_describe(&worker->status, &end);
	json_out_text(out, "end", buf_str(&end));
	if (worker->stopped)
		json_out_bool(out, "stopped", true);
	else if (!exit_status_ok(&worker->status))
		json_out_bool(out, "failed", true);
}

static void put_worker(struct json_out *out, const struct pages *pages, size_t i, bool detail,
		       uint64_t now_ns)
{
	const struct worker *worker = &pages->group->workers[i];
	struct proc_stat info = { 0 };
	pid_t pid = pages->workers->pids[i];
	bool runs = worker->state == WORKER_RUNNING && procfs_stat(pid, &info) == 0;
	json_out_open(out, NULL, '{');
	json_out_int(out, "rank", (int64_t)(pages->workers->round.rank_base + i));
	json_out_int(out, "local_rank", (int64_t)i);
	json_out_int(out, "pid", pid);
	json_out_text(out, "state", worker_states[worker->state]);
	json_out_int(out, "output_bytes",
		     (int64_t)output_bytes(pages->output, workers_id_of(pages->workers, i)));
	json_out_int(out, "heartbeats", (int64_t)guard_heartbeats(pages->guard, i));
	json_out_int(out, "timers", (int64_t)guard_timers(pages->guard, i));
	if (runs) {
		put_seconds(out, "uptime_s", worker->started_ns, now_ns);
		json_out_real(out, "cpu_s", seconds(procfs_cpu_ns(pid)));
		json_out_int(out, "resident_bytes", (int64_t)info.rss_bytes);
	}
	uint64_t alive_ns = guard_alive_ns(pages->guard, i);
	if (alive_ns)
		put_seconds(out, "silent_s", alive_ns, now_ns);
	steps_put_worker(pages->steps, i, now_ns, out);
	steps_put_straggler(pages->steps, i, out);
	if (worker->state == WORKER_ENDED)
		put_end(out, worker);
	put_last_line(out, pages, i);
	if (detail)
		pages_put_detail(pages, i, out);
	json_out_close(out, '}');
}

/* How far the coordinator's clocks are from those of this host; nothing where a job has no other.
 */
static void put_clock(struct json_out *out, const struct agent *agent, uint64_t now_ns)
{
	const struct clock_offset *clock = &agent->clock;
	if (!agent->linked || !clock->known)
		return;
	struct wall_offset wall = agent_wall_offset(agent, now_ns);
	json_out_open(out, "clock", '{');
	json_out_real(out, "offset_s", (double)clock->shift_ns / (double)NS_PER_S);
	if (wall.error_ns)
		json_out_real(out, "wall_offset_s", (double)wall.offset_ns / (double)NS_PER_S);
	json_out_real(out, "error_s", seconds(clock_offset_error_ns(clock, now_ns)));
	json_out_close(out, '}');
}

/* This host's place among the nodes, as far as it knows. */
static void put_node(struct json_out *out, const struct pages *pages, uint64_t now_ns)
{
	const struct agent *agent = pages->agent;
	const struct node_info *node = &agent->config.node;
	json_out_open(out, "node", '{');
	json_out_text(out, "state", agent_state_name(agent->state));
	json_out_int(out, "min_nodes", node->min_nodes);
	json_out_int(out, "max_nodes", node->max_nodes);
	json_out_int(out, "epoch", (int64_t)agent->memory.heard.ballot.epoch);
	json_out_int(out, "round", (int64_t)agent->memory.heard.ballot.round);
	if (agent->alive)
		json_out_int(out, "group_rank", agent->formed.group_rank);
	if (agent->linked && agent->present)
		json_out_int(out, "agents", agent->present);
	put_clock(out, agent, now_ns);
	json_out_close(out, '}');
}

/* Of the last attempt that has failed. */
static void put_last_failure(const struct pages *pages, struct json_out *out)
{
	const struct history *history = pages->history;
	const struct report report = { .config = pages->config, .history = history };
	for (size_t i = history->count; i-- > 0;) {
		if (history->attempts[i].end != ATTEMPT_FAILED)
			continue;
		AUTO(story_done) struct story story;
		story_of_attempt(&report, &history->attempts[i], &story);
		json_out_text_if(out, "last_failure", story.headline);
		story_put_verdict(&story, out);
		return;
	}
}

void pages_put_state(const struct pages *pages, const struct inquiry *detail, struct buf *ret_text)
{
	const struct worker_round *round = &pages->workers->round;
	struct json_out json = JSON_OUT(ret_text, .ascii = true), *out = &json;
	uint64_t now_ns = clock_now_ns();
	json_out_open(out, NULL, '{');
	json_out_text(out, "run_id", pages->config->run_id);
	json_out_int(out, "pid", getpid());
	json_out_text_if(out, "host", pages->workers->host);
	json_out_text(out, "version", MUSTER_VERSION);
	json_out_text(out, "state", group_states[pages->group->state]);
	json_out_text_if(out, "command", pages->config->entry.path);
	put_seconds(out, "uptime_s", pages->history->started_ns, now_ns);
	json_out_int(out, "restarts", pages_restarts(pages));
	json_out_int(out, "max_restarts", pages->config->max_restarts);
	if (pages->config->restarts_by_progress)
		json_out_bool(out, "restarts_by_progress", true);
	json_out_int(out, "nodes", round->group_world_size);
	json_out_int(out, "world_size", round->world_size);
	put_last_failure(pages, out);
	json_out_text_if(out, "last_hang", pages_last_hang(pages->history));
	json_out_text_if(out, "log_dir", pages->log_dir);
	json_out_text_if(out, "attempt_dir", pages->workers->logdir->attempt);
	steps_put_host(pages->steps, now_ns, out);
	put_node(out, pages, now_ns);
	json_out_open(out, "workers", '[');
	for (size_t i = 0; i < pages->group->count; i++)
		if (!detail || inquiry_means(detail, round->rank_base + i))
			put_worker(out, pages, i, detail, now_ns);
	json_out_close(out, ']');
	json_out_close(out, '}');
	buf_append_char(ret_text, '\n');
}

static void show_state(void *arg, struct http_reply *reply)
{
	pages_put_state(arg, NULL, &reply->body);
	reply->type = "application/json";
}

/* ---- metrics ---- */

static void one(struct buf *out, enum metric metric, double value)
{
	metrics_begin(out, metric);
	metrics_sample(out, metric, value, METRICS_NO_LABELS);
}

static double usage_seconds(const struct rusage *usage)
{
	return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
	       (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
}

static double worker_value(const struct pages *pages, enum metric metric, size_t i)
{
	const struct worker *worker = &pages->group->workers[i];
	pid_t pid = pages->workers->pids[i];
	struct proc_stat info = { 0 };
	bool runs = worker->state == WORKER_RUNNING;
	switch (metric) {
	case METRIC_WORKER_UP:
		return runs;
	case METRIC_WORKER_CPU:
		return runs ? seconds(procfs_cpu_ns(pid))
			    : usage_seconds(&pages->workers->usages[i]);
	case METRIC_WORKER_RSS:
		return runs && procfs_stat(pid, &info) == 0 ? (double)info.rss_bytes : 0;
	case METRIC_WORKER_PEAK_RSS:
		return (double)pages->workers->usages[i].ru_maxrss * 1024;
	case METRIC_WORKER_OUTPUT:
		return (double)output_bytes(pages->output, workers_id_of(pages->workers, i));
	default:
		return (double)guard_heartbeats(pages->guard, i);
	}
}

static void per_worker(const struct pages *pages, struct buf *out, enum metric metric)
{
	metrics_begin(out, metric);
	for (size_t i = 0; i < pages->group->count; i++) {
		char rank[24], local_rank[24];
		snprintf(rank, sizeof(rank), "%zu", pages->workers->round.rank_base + i);
		snprintf(local_rank, sizeof(local_rank), "%zu", i);
		metrics_sample(out, metric, worker_value(pages, metric, i),
			       METRICS_LABELS("rank", rank, "local_rank", local_rank));
	}
}

static void failures_by_reason(const struct pages *pages, struct buf *out)
{
	struct history_forgotten counts;
	history_count(pages->history, true, &counts);
	metrics_begin(out, METRIC_FAILURES);
	for (size_t i = 0; i < FAILURE_REASON_COUNT; i++)
		metrics_sample(out, METRIC_FAILURES, (double)counts.causes[i],
			       METRICS_LABELS("reason",
					      failure_reason_name((enum failure_reason)i)));
}

static void restart_metrics(const struct pages *pages, struct buf *out)
{
	struct history_forgotten counts;
	history_count(pages->history, false, &counts);
	metrics_begin(out, METRIC_RESTARTS);
	for (size_t i = 0; i < FAILURE_REASON_COUNT; i++)
		metrics_sample(out, METRIC_RESTARTS, (double)counts.causes[i],
			       METRICS_LABELS("cause",
					      failure_reason_name((enum failure_reason)i)));
	for (size_t i = 0; i < ATTEMPT_END_COUNT; i++)
		if (counts.others[i])
			metrics_sample(out, METRIC_RESTARTS, (double)counts.others[i],
				       METRICS_LABELS("cause",
						      attempt_end_name((enum attempt_end)i)));
	one(out, METRIC_RESTARTS_USED, pages_restarts(pages));
	one(out, METRIC_MAX_RESTARTS, pages->config->max_restarts);
}

static void store_metrics(const struct pages *pages, struct buf *out)
{
	uint64_t executed[C10D_QUERY_COUNT];
	size_t connections;
	round_store_usage(pages->store, executed, &connections);
	metrics_begin(out, METRIC_STORE_REQUESTS);
	for (size_t i = 0; i < C10D_QUERY_COUNT; i++)
		metrics_sample(out, METRIC_STORE_REQUESTS, (double)executed[i],
			       METRICS_LABELS("query", c10d_query_name((enum c10d_query)i)));
	one(out, METRIC_STORE_CONNECTIONS, (double)connections);
}

static void watchdog_metrics(const struct pages *pages, struct buf *out)
{
	struct watchdog_stats stats = guard_stats(pages->guard);
	one(out, METRIC_TIMERS_ARMED, (double)stats.armed);
	one(out, METRIC_TIMER_REQUESTS, (double)stats.requests);
	one(out, METRIC_TIMERS_EXPIRED, (double)stats.expired);
	metrics_begin(out, METRIC_TIMER_REJECTED);
	for (size_t i = 0; i < REJECT_COUNT; i++)
		metrics_sample(out, METRIC_TIMER_REJECTED, (double)stats.rejected[i],
			       METRICS_LABELS("reason",
					      watchdog_rejection_name((enum watchdog_rejection)i)));
}

static void show_metrics(void *arg, struct http_reply *reply)
{
	const struct pages *pages = arg;
	struct buf *out = &reply->body;
	reply->type = METRICS_TYPE;
	metrics_begin(out, METRIC_BUILD_INFO);
	metrics_sample(out, METRIC_BUILD_INFO, 1,
		       METRICS_LABELS("version", MUSTER_VERSION, "run_id", pages->config->run_id));
	one(out, METRIC_ROUND, (double)(pages->history->count + pages->history->forgotten.count));
	one(out, METRIC_BALLOT_EPOCH, (double)pages->agent->memory.heard.ballot.epoch);
	one(out, METRIC_BALLOT_ROUND, (double)pages->agent->memory.heard.ballot.round);
	one(out, METRIC_MEMBERS, pages->workers->round.group_world_size);
	one(out, METRIC_WORLD_SIZE, pages->workers->round.world_size);
	restart_metrics(pages, out);
	failures_by_reason(pages, out);
	for (enum metric metric = METRIC_WORKER_UP; metric <= METRIC_WORKER_HEARTBEATS; metric++)
		per_worker(pages, out, metric);
	steps_put_metrics(pages->steps, out);
	watchdog_metrics(pages, out);
	store_metrics(pages, out);
	one(out, METRIC_LOOP_LATENCY, seconds(loop_latency_ns(pages)));
	one(out, METRIC_UPTIME, seconds(clock_now_ns() - pages->history->started_ns));
}

/* ---- requests ---- */

static void take_stop(void *arg, struct http_reply *reply)
{
	const struct pages *pages = arg;
	pages->on_stop(pages->arg);
	buf_append_str(&reply->body, "stopping\n");
}

static void take_restart(void *arg, struct http_reply *reply)
{
	const struct pages *pages = arg;
	bool taken = pages->on_restart(pages->arg);
	reply->code = taken ? 200 : 409;
	buf_append_str(&reply->body, taken ? "restarting\n" : "no group is running just now\n");
}

static void take_notice(const struct pages *pages, enum plan_kind kind, struct http_reply *reply)
{
	bool taken = pages->on_notice(pages->arg, kind);
	reply->code = taken ? 200 : 409;
	buf_append_str(&reply->body, taken ? "asked\n" : PAGES_NO_NOTICE "\n");
}

static void take_leave(void *arg, struct http_reply *reply)
{
	take_notice(arg, PLAN_LEAVE, reply);
}

static void take_save(void *arg, struct http_reply *reply)
{
	take_notice(arg, PLAN_SAVE, reply);
}

static const struct http_route routes[] = {
	{ .path = "/", .handle = pages_show_page },
	{ .path = "/page.css", .handle = pages_show_css },
	{ .path = "/page.js", .handle = pages_show_script },
	{ .path = "/single.html", .handle = pages_show_single },
	{ .path = "/api/stream", .guarded = true, .open = pages_open_stream },
	{ .path = "/api/log", .guarded = true, .open = pages_open_log },
	{ .path = "/api/do", .post = true, .guarded = true, .handle = pages_take_wish },
	{ .path = "/api/dash", .post = true, .private = true, .handle = pages_tell_address },
	{ .path = "/healthz", .handle = show_health },
	{ .path = "/livez", .handle = show_health },
	{ .path = "/readyz", .handle = show_ready },
	{ .path = "/metrics", .scraped = true, .handle = show_metrics },
	{ .path = "/api/state", .scraped = true, .handle = show_state },
	{ .path = "/api/stop", .post = true, .private = true, .handle = take_stop },
	{ .path = "/api/restart", .post = true, .private = true, .handle = take_restart },
	{ .path = "/api/leave", .post = true, .private = true, .handle = take_leave },
	{ .path = "/api/save", .post = true, .private = true, .handle = take_save },
	{ .path = NULL },
};

int pages_open(struct pages *pages, struct err *err)
{
	pages->server = http_server_new(pages->base, routes, pages);
	pages_open_dash(pages);
	AUTO_FREE char *path = guard_file(pages->guard, PAGES_SOCKET);
	struct err trouble = ERR_INIT;
	if (path && http_listen_unix(pages->server, path, &trouble) < 0)
		log_warn("'muster status' will not see this job: %s", trouble.msg);
	if (!pages->config->http)
		return 0;
	bool required = !pages->config->http_by_torch;
	int r = http_listen_tcp(pages->server, &pages->config->http_addr, HTTP_OPEN,
				&pages->address, required ? err : &trouble);
	if (r < 0 && required)
		return err_wrap(err, "--http");
	if (r < 0) {
		log_warn("TORCHELASTIC_HEALTH_CHECK_PORT: %s; no probes are served there",
			 trouble.msg);
		return 0;
	}
	char text[ADDR_TEXT_MAX];
	pages->listens = true;
	addr_format(&pages->address, text);
	log_info("serving /healthz, /readyz, /metrics and /api/state on %s", text);
	return 0;
}

void pages_close(struct pages *pages)
{
	http_server_free(pages->server);
	pages->server = NULL;
	dash_free(pages->dash);
	pages->dash = NULL;
}
