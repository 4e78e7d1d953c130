/* The page of the whole job: what it is told of this host's part and of the job's history. */
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "core/host/cpuset.h"
#include "core/worker/goodput.h"
#include "proto/dash/secret.h"
#include "proto/json_out.h"
#include "run/tell/pages_private.h"
#include "run/tell/make_story.h"
#include "web/web.h"

#define PATH_SHOWN 4096

static int64_t wall_ms(const struct history *history, uint64_t when_ns)
{
	return (int64_t)((when_ns + history->wall_offset_ns) / NS_PER_MS);
}

/* ---- the job ---- */

static void put_goodput(const struct goodput *goodput, struct json_out *out)
{
	json_out_open(out, "goodput", '{');
	json_out_int(out, "total_s", (int64_t)(goodput->total_ns / NS_PER_S));
	json_out_int(out, "steps_s", (int64_t)(goodput->steps_ns / NS_PER_S));
	json_out_int(out, "again_s", (int64_t)(goodput->again_ns / NS_PER_S));
	json_out_int(out, "start_s", (int64_t)(goodput->start_ns / NS_PER_S));
	json_out_int(out, "end_s", (int64_t)(goodput->end_ns / NS_PER_S));
	json_out_int(out, "wait_s", (int64_t)(goodput->wait_ns / NS_PER_S));
	json_out_close(out, '}');
}

/* The attempt under way counts up to now. */
static uint64_t add_attempt(const struct pages *pages, const struct history_attempt *attempt,
			    uint64_t now_ns, struct goodput *goodput)
{
	bool runs = attempt->end == ATTEMPT_RUNNING;
	struct step_progress_span span = runs ? steps_span(pages->steps) : attempt->steps;
	return goodput_add(goodput, attempt->started_ns, runs ? now_ns : attempt->ended_ns, &span);
}

static void put_goodput_so_far(const struct pages *pages, uint64_t now_ns, struct json_out *out)
{
	struct goodput goodput;
	goodput_begin(&goodput, pages->history->started_ns);
	for (size_t i = 0; i < pages->history->count; i++)
		add_attempt(pages, &pages->history->attempts[i], now_ns, &goodput);
	goodput_end(&goodput, now_ns);
	if (goodput.steps || goodput.again)
		put_goodput(&goodput, out);
}

static const char *job_state(const struct pages *pages)
{
	const struct history_attempt *last = history_last(pages->history);
	if (!pages->decided)
		return pages_state_name(pages);
	if (pages->outcome.left)
		return "left";
	return last && last->end != ATTEMPT_RUNNING ? attempt_end_name(last->end) : "ended";
}

static void put_story(const struct pages *pages, struct json_out *out)
{
	const struct report report = { pages->config, pages->history, pages->log_dir,
				       &pages->outcome };
	AUTO(story_done) struct story story;
	story_of(&report, &story);
	story_put(&story, out);
	story_put_verdict(&story, out);
}

static void put_job(const struct pages *pages, struct json_out *out)
{
	const struct worker_round *round = &pages->workers->round;
	const struct history *history = pages->history;
	const struct agent *agent = pages->agent;
	uint64_t now_ns = clock_now_ns();
	json_out_open(out, NULL, '{');
	json_out_text(out, "run_id", pages->config->run_id);
	json_out_text_if(out, "host", pages->workers->host);
	json_out_text(out, "version", MUSTER_VERSION);
	json_out_text(out, "state", job_state(pages));
	json_out_int(out, "started_ms", wall_ms(history, history->started_ns));
	json_out_int(out, "round", (int64_t)agent->memory.heard.ballot.round);
	json_out_int(out, "epoch", (int64_t)agent->memory.heard.ballot.epoch);
	json_out_int(out, "nodes", round->group_world_size);
	json_out_int(out, "min_nodes", agent->config.node.min_nodes);
	json_out_int(out, "max_nodes", agent->config.node.max_nodes);
	json_out_int(out, "world_size", round->world_size);
	json_out_int(out, "restarts", pages_restarts(pages));
	json_out_int(out, "max_restarts", pages->config->max_restarts);
	if (pages->config->restarts_by_progress)
		json_out_bool(out, "restarts_by_progress", true);
	json_out_text_if(out, "last_hang", pages_last_hang(history));
	json_out_text_if(out, "log_dir", pages->log_dir);
	put_goodput_so_far(pages, now_ns, out);
	if (pages->decided) {
		put_story(pages, out);
		json_out_int(out, "ended_ms", wall_ms(history, now_ns));
		json_out_int(out, "exit_code",
			     history_final_code(history, &pages->outcome, pages->config));
	}
	json_out_close(out, '}');
}

/* ---- its attempts ---- */

static void put_cause(const struct history_failure *cause, struct json_out *out)
{
	AUTO(buf_done) struct buf end = BUF_INIT;
	exit_status_describe(&cause->status, &end);
	json_out_open(out, "cause", '{');
	json_out_int(out, "rank", cause->rank);
	json_out_text(out, "host", cause->host);
	json_out_text(out, "reason", failure_reason_name(cause->reason));
	json_out_text(out, "end", buf_str(&end));
	if (cause->captured && buf_len(&cause->tail)) {
		size_t len = MIN(buf_len(&cause->tail), (size_t)2048);
		AUTO_FREE char *tail = mem_strndup(
			(const char *)buf_data(&cause->tail) + buf_len(&cause->tail) - len, len);
		json_out_text(out, "tail", tail);
	}
	json_out_close(out, '}');
}

static void put_attempt(const struct pages *pages, const struct history_attempt *attempt,
			struct goodput *goodput, struct json_out *out)
{
	const struct history_failure *cause = history_cause(attempt);
	bool runs = attempt->end == ATTEMPT_RUNNING;
	uint64_t lost_ns = add_attempt(pages, attempt, clock_now_ns(), goodput);
	json_out_open(out, NULL, '{');
	json_out_int(out, "restart", attempt->restart_count);
	json_out_int(out, "world_size", attempt->world_size);
	json_out_text(out, "end", attempt_end_name(attempt->end));
	json_out_int(out, "started_ms", wall_ms(pages->history, attempt->started_ns));
	if (!runs) {
		json_out_int(out, "ended_ms", wall_ms(pages->history, attempt->ended_ns));
		json_out_int(out, "lost_s", (int64_t)(lost_ns / NS_PER_S));
	}
	if (!runs && attempt->steps.workers) {
		json_out_int(out, "first_step", (int64_t)attempt->steps.first_step);
		json_out_int(out, "step", (int64_t)attempt->steps.least);
	}
	if (attempt->left_count)
		json_out_int(out, "left_step", (int64_t)attempt->left[0].step);
	if (cause)
		put_cause(cause, out);
	json_out_text_if(out, "collectives", attempt->collectives);
	json_out_close(out, '}');
}

static void put_attempts(const struct pages *pages, struct json_out *out)
{
	struct goodput goodput;
	goodput_begin(&goodput, pages->history->started_ns);
	json_out_open(out, NULL, '[');
	for (size_t i = 0; i < pages->history->count; i++)
		put_attempt(pages, &pages->history->attempts[i], &goodput, out);
	json_out_close(out, ']');
}

/* ---- what it runs ---- */

static void put_about(const struct pages *pages, struct json_out *out)
{
	const struct run_config *config = pages->config;
	AUTO(buf_done) struct buf binding = BUF_INIT;
	char cwd[PATH_SHOWN];
	json_out_open(out, NULL, '{');
	json_out_text(out, "program", config->entry.path);
	json_out_list(out, "command", &config->entry.argv);
	if (getcwd(cwd, sizeof(cwd)))
		json_out_text(out, "directory", cwd);
	json_out_text(out, "role", config->role);
	json_out_int(out, "nproc", config->nproc);
	if (config->placement.plan)
		run_placement_draw(&config->placement, &binding);
	json_out_text_if(out, "binding", buf_str(&binding));
	json_out_close(out, '}');
}

static void put_part(void *arg, enum board_part part, struct buf *text)
{
	static void (*const puts[])(const struct pages *pages, struct json_out *out) = {
		[BOARD_JOB] = put_job,
		[BOARD_ATTEMPTS] = put_attempts,
		[BOARD_ABOUT] = put_about,
	};
	static_assert(ARRAY_LEN(puts) == BOARD_PART_COUNT, "every part is told");
	struct json_out out = JSON_OUT(text, .ascii = true);
	puts[part](arg, &out);
}

/* ---- one worker ---- */

static void put_env(const struct strv *env, struct json_out *out)
{
	json_out_open(out, "environment", '[');
	for (size_t i = 0; i < env->count; i++) {
		const char *text = env->items[i];
		size_t name = strcspn(text, "=");
		AUTO_FREE char *hidden = mem_printf("%.*s=(hidden)", (int)name, text);
		json_out_text(out, NULL, text[name] && secret_is_name(text) ? hidden : text);
	}
	json_out_close(out, ']');
}

static void put_cpus(pid_t pid, struct json_out *out)
{
	cpu_set_t set;
	struct cpuset cpus = CPUSET_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	if (pid <= 0 || sched_getaffinity(pid, sizeof(set), &set) < 0)
		return;
	for (int i = 0; i < MIN(CPU_SETSIZE, CPUSET_MAX); i++)
		if (CPU_ISSET(i, &set))
			cpuset_add(&cpus, i);
	cpuset_format(&cpus, &text);
	json_out_text(out, "cpus", buf_str(&text));
}

void pages_put_detail(const struct pages *pages, size_t local_rank, struct json_out *out)
{
	AUTO(strv_done) struct strv argv = STRV_INIT, env = STRV_INIT;
	entry_argv(&pages->config->entry, (uint32_t)local_rank, &argv);
	json_out_text(out, "program", pages->config->entry.path);
	json_out_list(out, "command", &argv);
	if (workers_env(pages->workers, (uint32_t)local_rank, &env) == 0)
		put_env(&env, out);
	put_cpus(pages->workers->pids[local_rank], out);
}

/* ---- routes ---- */

static void show_file(enum web_file file, struct http_reply *reply)
{
	struct bytes text = web_text(file);
	reply->type = web_type(file);
	reply->policy = WEB_POLICY;
	buf_append(&reply->body, text.data, text.len);
}

/* Some probes ask for it, too. */
void pages_show_page(void *arg, struct http_reply *reply)
{
	reply->code = pages_is_healthy(arg) ? 200 : 503;
	show_file(WEB_PAGE, reply);
}

void pages_show_css(void *arg UNUSED, struct http_reply *reply)
{
	show_file(WEB_STYLE, reply);
}

void pages_show_script(void *arg UNUSED, struct http_reply *reply)
{
	show_file(WEB_SCRIPT, reply);
}

/* For pages to fill in and save; not to be shown from here. */
void pages_show_single(void *arg UNUSED, struct http_reply *reply)
{
	web_put_single(bytes_str(WEB_NO_DATA), &reply->body);
}

void pages_open_stream(void *arg, struct http_stream *stream)
{
	const struct pages *pages = arg;
	dash_open(pages->dash, stream);
}

void pages_open_log(void *arg, struct http_stream *stream)
{
	const struct pages *pages = arg;
	dash_open_log(pages->dash, stream);
}

void pages_take_wish(void *arg, struct http_reply *reply)
{
	const struct pages *pages = arg;
	if (pages->decided) {
		reply->code = 409;
		buf_append_str(&reply->body, "the job has ended\n");
		return;
	}
	dash_wish(pages->dash, reply);
}

/* For `muster dash`, on the private socket. */
void pages_tell_address(void *arg, struct http_reply *reply)
{
	struct pages *pages = arg;
	struct err err = ERR_INIT;
	struct addr any;
	if (!pages->listens &&
	    (http_address_parse("0", &any, &err) < 0 ||
	     http_listen_tcp(pages->server, &any, HTTP_OWN_USER, &pages->address, &err) < 0)) {
		reply->code = 503;
		buf_printf(&reply->body, "%s\n", err.msg);
		return;
	}
	pages->listens = true;
	http_page_address(pages->server, &pages->address, pages->workers->host, &reply->body);
	buf_append_char(&reply->body, '\n');
}

/* ---- beginning and end ---- */

static size_t world_size(void *arg)
{
	const struct pages *pages = arg;
	return pages->workers->round.world_size;
}

/* A host that leaves by itself does not know what becomes of the workers of others. */
static void finish(void *arg, struct board *board)
{
	const struct pages *pages = arg;
	const struct history_attempt *last = history_last(pages->history);
	const struct board_over over = {
		.first = pages->workers->round.rank_base,
		.count = pages->config->nproc,
		.everywhere = pages->outcome.kind == OUTCOME_DONE ||
			      pages->outcome.kind == OUTCOME_FAILED,
	};
	board_finish(board, &over, clock_wall_ns() / NS_PER_MS);
	for (size_t i = 0; last && i < last->count; i++)
		board_mark(board, last->failures[i].rank,
			   last->failures[i].stopped ? BOARD_STOPPED : BOARD_FAILED);
}

static void on_event(void *arg, const struct node_event *event)
{
	const struct pages *pages = arg;
	pages->on_event(pages->arg, event);
}

void pages_open_dash(struct pages *pages)
{
	const struct dash_hooks hooks = {
		.on_event = on_event,
		.put_part = put_part,
		.world_size = world_size,
		.finish = finish,
		.arg = pages,
	};
	pages->dash = dash_new(pages->base, pages->server, pages->routes, &hooks);
}

void pages_finish(struct pages *pages, const struct outcome *outcome)
{
	pages->decided = true;
	pages->outcome = *outcome;
	if (pages->dash)
		dash_finish(pages->dash);
}

void pages_complete(struct pages *pages)
{
	if (pages->dash)
		dash_complete(pages->dash);
}
