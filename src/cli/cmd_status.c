/* muster status, and muster stop: the running jobs of this user on this host. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/command.h"
#include "core/exit_code.h"
#include "net/http.h"
#include "run/pages.h"
#include "watch/jobdir.h"

extern const struct command command_status;
extern const struct command command_stop;

#define WATCH_PERIOD_S 1

struct job_list {
	json_t *jobs;	 /* array of states */
	const char *name; /* run id or pid; NULL: all */
	char *socket;	 /* of the last one found */
};

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
		return; /* it ended just now, or stands still */
	json_t *state = json_loads(buf_str(&body), 0, NULL);
	if (state && is_named(list->name, json_string_value(json_object_get(state, "run_id")), pid)) {
		json_array_append(list->jobs, state);
		free(list->socket);
		list->socket = mem_strdup(socket);
	}
	json_decref(state);
}

static void find_jobs(struct job_list *list, const char *name)
{
	*list = (struct job_list){ .jobs = json_array(), .name = name };
	jobdir_foreach(on_job, list);
}

static void job_list_done(struct job_list *list)
{
	json_decref(list->jobs);
	free(list->socket);
}

/* -- for people --------------------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	return text ? text : "-";
}

static long long number_of(const json_t *object, const char *name)
{
	return (long long)json_integer_value(json_object_get(object, name));
}

static void print_time(const json_t *object, const char *name, int width)
{
	const json_t *value = json_object_get(object, name);
	char text[CLOCK_HUMAN_MAX] = "-";
	if (value)
		clock_human((uint64_t)(json_number_value(value) * (double)NS_PER_S), text);
	printf(" %*s", width, text);
}

static void print_worker(const json_t *worker)
{
	printf("  %5lld %8lld %-8s", number_of(worker, "rank"), number_of(worker, "pid"), text_of(worker, "state"));
	print_time(worker, "uptime_s", 12);
	print_time(worker, "cpu_s", 12);
	printf(" %8lld %7lld", number_of(worker, "resident_bytes") >> 20, number_of(worker, "timers"));
	print_time(worker, "silent_s", 10);
	printf("  %s\n", json_object_get(worker, "last_line") ? text_of(worker, "last_line") : "");
}

static void print_job(const json_t *job)
{
	printf("%s  pid %lld  %s  up", text_of(job, "run_id"), number_of(job, "pid"), text_of(job, "state"));
	print_time(job, "uptime_s", 0);
	printf("  nodes %lld  workers %lld  restarts %lld of %lld\n", number_of(job, "nodes"),
	       number_of(job, "world_size"), number_of(job, "restarts"), number_of(job, "max_restarts"));
	if (json_object_get(job, "log_dir"))
		printf("  logs %s\n", text_of(job, "log_dir"));
	printf("  %5s %8s %-8s %12s %12s %8s %7s %10s  %s\n", "rank", "pid", "state", "up", "cpu", "MiB", "timers",
	       "silent", "last line");
	size_t i;
	const json_t *worker;
	json_array_foreach(json_object_get(job, "workers"), i, worker)
		print_worker(worker);
}

static void print_jobs(const struct job_list *list, bool as_json)
{
	if (as_json) {
		json_dumpf(list->jobs, stdout, JSON_INDENT(2));
		putchar('\n');
		return;
	}
	size_t i;
	const json_t *job;
	json_array_foreach(list->jobs, i, job)
		print_job(job);
	if (i == 0)
		puts(list->name ? "no such job is running here" : "no job of this user is running here");
}

struct status_options {
	bool watch, json;
};

static const struct opt status_opts[] = {
	OPT_FLAG("watch", NULL, struct status_options, watch, "show it again every second"),
	OPT_FLAG("json", NULL, struct status_options, json, "for programs: an array of states as in /api/state"),
	OPT_END,
};

static int status_main(const struct command *self, int argc, char **argv)
{
	struct status_options o = { 0 };
	int first, status;
	if (!command_parse(self, &o, argc, argv, NULL, &first, &status))
		return status;
	if (argc - first > 1)
		return command_usage_error(self, "only one job can be named");
	for (;;) {
		AUTO(job_list_done) struct job_list list;
		find_jobs(&list, first < argc ? argv[first] : NULL);
		if (o.watch && isatty(STDOUT_FILENO))
			fputs("\033[H\033[J", stdout);
		print_jobs(&list, o.json);
		fflush(stdout);
		bool found = json_array_size(list.jobs) > 0;
		if (!o.watch || ferror(stdout))
			return found || !list.name ? EXIT_CODE_OK : EXIT_CODE_FAILED;
		sleep(WATCH_PERIOD_S);
	}
}

const struct command command_status = {
	.name = "status",
	.synopsis = "[--watch] [--json] [JOB]",
	.summary = "show the running jobs of this user on this host",
	.opts = status_opts,
	.mode = OPT_PERMUTE,
	.main = status_main,
};

/* -- stop --------------------------------------------------------------------------------------- */

static const struct opt stop_opts[] = { OPT_END };

static int stop_main(const struct command *self, int argc, char **argv)
{
	int first, status;
	if (!command_parse(self, NULL, argc, argv, NULL, &first, &status))
		return status;
	if (argc - first != 1)
		return command_usage_error(self, "name one job, by its run id or the pid of its muster run");
	AUTO(job_list_done) struct job_list list;
	find_jobs(&list, argv[first]);
	size_t count = json_array_size(list.jobs);
	if (count != 1) {
		fprintf(stderr, "muster stop: %s\n",
			count ? "several jobs have this name; use the pid" : "no such job is running here");
		return EXIT_CODE_FAILED;
	}
	AUTO(buf_done) struct buf body = BUF_INIT;
	struct err err = ERR_INIT;
	int code = http_ask_unix(list.socket, "POST", "/api/stop", &body, &err);
	if (code == 200)
		return EXIT_CODE_OK;
	fprintf(stderr, "muster stop: %s\n", code < 0 ? err.msg : buf_str(&body));
	return EXIT_CODE_SYSTEM;
}

const struct command command_stop = {
	.name = "stop",
	.synopsis = "JOB",
	.summary = "ask a running job to end, as SIGTERM would",
	.opts = stop_opts,
	.mode = OPT_PERMUTE,
	.main = stop_main,
};
