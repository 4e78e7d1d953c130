#include "cli/jobs.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/worker/exit_code.h"
#include "net/http.h"
#include "run/tell/pages.h"
#include "watch/jobdir.h"

static bool is_named(const char *name, const char *run_id, pid_t pid)
{
	char number[16];
	snprintf(number, sizeof(number), "%d", (int)pid);
	return !name || str_eq(name, number) || (run_id && str_eq(name, run_id));
}

static void on_job(void *arg, const char *path, pid_t pid)
{
	struct job_list *list = arg;
	AUTO(buf_done) struct buf body = BUF_INIT;
	AUTO_FREE char *socket = mem_printf("%s/" PAGES_SOCKET, path);
	if (http_ask_unix(socket, "GET", "/api/state", &body, NULL) != 200)
		return; /* it has just ended, or does not answer */
	struct job_state job = { .text = buf_take_str(&body) };
	if (json_value_parse(job.text, strlen(job.text), &job.json) == 0) {
		AUTO_FREE char *run_id = json_value_text(json_value_get(job.json, "run_id"));
		if (is_named(list->name, run_id, pid)) {
			ARRAY_RESERVE(list->jobs, list->count, list->cap);
			list->jobs[list->count++] = job;
			free(list->socket);
			list->socket = mem_strdup(socket);
			return;
		}
	}
	free(job.text);
}

int64_t job_number(struct json_value object, const char *name)
{
	int64_t number;
	return json_value_int(json_value_get(object, name), &number) ? number : 0;
}

void jobs_find(struct job_list *list, const char *name)
{
	*list = (struct job_list){ .name = name };
	jobdir_foreach(on_job, list);
}

void job_list_done(struct job_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->jobs[i].text);
	free(list->jobs);
	free(list->socket);
	*list = (struct job_list){ .jobs = NULL };
}

bool jobs_parse_one(const struct command *self, void *options, int argc, char **argv,
		    struct job_list *list, int *ret_status)
{
	int first;
	*list = (struct job_list){ .jobs = NULL };
	if (!command_parse(self, options, argc, argv, NULL, &first, ret_status))
		return false;
	if (argc - first != 1) {
		*ret_status = command_usage_error(
			self, "name one job, by its run id or the pid of its muster run");
		return false;
	}
	jobs_find(list, argv[first]);
	if (list->count == 1)
		return true;
	fprintf(stderr, "%s: %s\n", command_title(self),
		list->count ? "several jobs have this name; use the pid"
			    : "no such job is running here");
	*ret_status = EXIT_CODE_FAILED;
	return false;
}

int jobs_post(const struct command *self, const struct job_list *list, const char *path)
{
	AUTO(buf_done) struct buf body = BUF_INIT;
	struct err err = ERR_INIT;
	int code = http_ask_unix(list->socket, "POST", path, &body, &err);
	if (code == 200)
		return EXIT_CODE_OK;
	const char *why = code < 0 ? err.msg : buf_str(&body);
	fprintf(stderr, "%s: %.*s\n", command_title(self), (int)strcspn(why, "\n"), why);
	return EXIT_CODE_SYSTEM;
}
