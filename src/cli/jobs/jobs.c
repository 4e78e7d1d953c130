#include "cli/jobs/jobs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/worker/exit_code.h"
#include "net/http.h"
#include "proto/json_out.h"
#include "run/tell/pages.h"
#include "watch/jobdir.h"

static bool is_named(const char *name, const char *run_id, pid_t pid)
{
	char number[16];
	snprintf(number, sizeof(number), "%d", (int)pid);
	return !name || str_eq(name, number) || (run_id && str_eq(name, run_id));
}

bool job_is_wide(const struct job_state *job)
{
	return !job->dir || job_number(json_value_get(job->json, "node"), "max_nodes") > 1;
}

static bool is_listed(const struct job_list *list, const struct job_state *job, const char *run_id)
{
	for (size_t i = 0; run_id && job_is_wide(job) && i < list->count; i++) {
		const struct job_state *other = &list->jobs[i];
		AUTO_FREE char *id = json_value_text(json_value_get(other->json, "run_id"));
		if (id && str_eq(id, run_id) && job_is_wide(other))
			return true;
	}
	return false;
}

/* A job that has just been started has its socket a moment before it listens on it. */
static int ask_state(const char *socket, struct buf *ret_body)
{
	const struct timespec moment = { .tv_nsec = 5 * NS_PER_MS };
	uint64_t end_ns = clock_now_ns() + HTTP_PATIENCE_S * NS_PER_S;
	for (;;) {
		int r = http_ask_unix(socket, "GET", "/api/state", ret_body, NULL);
		if (r != -ECONNREFUSED || clock_now_ns() > end_ns)
			return r;
		nanosleep(&moment, NULL);
	}
}

static void on_job(void *arg, const char *path, pid_t pid)
{
	struct job_list *list = arg;
	AUTO(buf_done) struct buf body = BUF_INIT;
	AUTO_FREE char *socket = mem_printf("%s/" PAGES_SOCKET, path);
	int code = ask_state(socket, &body);
	if (code == -ETIMEDOUT)
		log_warn("a job gives no answer: process %d is stopped ('kill -CONT %d' lets it go "
			 "on) or very busy",
			 (int)pid, (int)pid);
	if (code != 200)
		return; /* it has just ended, or does not answer */
	struct job_state job = { .text = buf_take_str(&body), .dir = mem_strdup(path) };
	if (json_value_parse(job.text, strlen(job.text), &job.json) == 0) {
		AUTO_FREE char *run_id = json_value_text(json_value_get(job.json, "run_id"));
		if (is_named(list->name, run_id, pid) && !is_listed(list, &job, run_id)) {
			ARRAY_RESERVE(list->jobs, list->count, list->cap);
			list->jobs[list->count++] = job;
			return;
		}
	}
	free(job.text);
	free(job.dir);
}

int64_t job_number(struct json_value object, const char *name)
{
	int64_t number;
	return json_value_int(json_value_get(object, name), &number) ? number : 0;
}

struct stacks_worker *jobs_running_workers(struct json_value job, size_t *ret_count)
{
	struct json_value all = json_value_get(job, "workers"), worker;
	struct stacks_worker *running = NEW_ARRAY(struct stacks_worker, json_value_count(all) + 1);
	struct json_in in;
	*ret_count = 0;
	for (json_value_enter(all, &in); json_value_next(&in, &worker);) {
		AUTO_FREE char *state = json_value_text(json_value_get(worker, "state"));
		if (state && str_eq(state, "running"))
			running[(*ret_count)++] = (struct stacks_worker){
				.rank = (size_t)job_number(worker, "rank"),
				.pid = (pid_t)job_number(worker, "pid"),
			};
	}
	return running;
}

void jobs_find(struct job_list *list, const char *name)
{
	*list = (struct job_list){ .name = name };
	jobdir_foreach(on_job, list);
}

void job_list_done(struct job_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->jobs[i].text);
		free(list->jobs[i].dir);
	}
	free(list->jobs);
	*list = (struct job_list){ .jobs = NULL };
}

static void find_elsewhere(struct job_list *list, const char *name, const struct job_place *place)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct json_out out = JSON_OUT(&text, .ascii = true);
	json_out_open(&out, NULL, '{');
	json_out_text(&out, "run_id", name);
	json_out_close(&out, '}');
	struct job_state job = { .place = *place, .text = buf_take_str(&text) };
	json_value_parse(job.text, strlen(job.text), &job.json);
	*list = (struct job_list){ .name = name };
	ARRAY_RESERVE(list->jobs, list->count, list->cap);
	list->jobs[list->count++] = job;
}

void jobs_find_at(struct job_list *list, const char *name, const struct job_place *place)
{
	if (place && place->endpoint)
		find_elsewhere(list, name, place);
	else
		jobs_find(list, name);
}

bool jobs_parse_any(const struct command *self, void *options, const struct job_place *place,
		    int argc, char **argv, const char **ret_name, int *ret_status)
{
	int first;
	if (!command_parse(self, options, argc, argv, NULL, &first, ret_status))
		return false;
	if (argc - first > 1) {
		*ret_status = command_usage_error(self, "only one job can be named");
		return false;
	}
	if (place->endpoint && first == argc) {
		*ret_status = command_usage_error(self, "--rdzv-endpoint: name the job");
		return false;
	}
	*ret_name = first < argc ? argv[first] : NULL;
	return true;
}

bool jobs_parse_one(const struct command *self, void *options, const struct job_place *place,
		    int argc, char **argv, struct job_list *list, int *ret_status)
{
	int first;
	*list = (struct job_list){ .jobs = NULL };
	return command_parse(self, options, argc, argv, NULL, &first, ret_status) &&
	       jobs_pick_one(self, place, argc - first, argv + first, list, ret_status);
}

bool jobs_pick_one(const struct command *self, const struct job_place *place, int count,
		   char **words, struct job_list *list, int *ret_status)
{
	*list = (struct job_list){ .jobs = NULL };
	if (count != 1) {
		*ret_status = command_usage_error(
			self, "name one job, by its run id or the pid of its muster run; "
			      "'muster status' lists those of this host");
		return false;
	}
	jobs_find_at(list, words[0], place);
	if (list->count == 1)
		return true;
	command_complain(
		self, "%s",
		list->count ? "several jobs have this name; use the pid"
			    : "no such job is running here; 'muster status' lists those that are");
	*ret_status = EXIT_CODE_FAILED;
	return false;
}

int jobs_post(const struct command *self, const struct job_list *list, const char *path,
	      struct buf *ret_answer)
{
	AUTO(buf_done) struct buf body = BUF_INIT;
	struct err err = ERR_INIT;
	AUTO_FREE char *socket = mem_printf("%s/" PAGES_SOCKET, list->jobs[0].dir);
	int code = http_ask_unix(socket, "POST", path, &body, &err);
	if (code == 200) {
		if (ret_answer)
			buf_append(ret_answer, buf_data(&body), buf_len(&body));
		return EXIT_CODE_OK;
	}
	const char *why = code < 0 ? err.msg : buf_str(&body);
	command_complain(self, "%.*s", (int)strcspn(why, "\n"), why);
	return EXIT_CODE_SYSTEM;
}
