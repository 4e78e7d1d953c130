/* muster status: the running jobs of this user on this host. */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/jobs.h"
#include "core/worker/exit_code.h"

extern const struct command command_status;

#define WATCH_PERIOD_S 1

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
	printf("  %5lld %8lld %-8s", number_of(worker, "rank"), number_of(worker, "pid"),
	       text_of(worker, "state"));
	print_time(worker, "uptime_s", 12);
	print_time(worker, "cpu_s", 12);
	printf(" %8lld %7lld", number_of(worker, "resident_bytes") >> 20,
	       number_of(worker, "timers"));
	print_time(worker, "silent_s", 10);
	printf("  %s\n", json_object_get(worker, "last_line") ? text_of(worker, "last_line") : "");
}

static void print_job(const json_t *job)
{
	printf("%s  pid %lld  %s  up", text_of(job, "run_id"), number_of(job, "pid"),
	       text_of(job, "state"));
	print_time(job, "uptime_s", 0);
	printf("  nodes %lld", number_of(job, "nodes"));
	const json_t *rank = json_object_get(json_object_get(job, "node"), "group_rank");
	if (rank && number_of(job, "nodes") > 1)
		printf(" (this is %lld)", (long long)json_integer_value(rank));
	printf("  workers %lld  restarts %lld of %lld\n", number_of(job, "world_size"),
	       number_of(job, "restarts"), number_of(job, "max_restarts"));
	if (json_object_get(job, "log_dir"))
		printf("  logs %s\n", text_of(job, "log_dir"));
	printf("  %5s %8s %-8s %12s %12s %8s %7s %10s  %s\n", "rank", "pid", "state", "up", "cpu",
	       "MiB", "timers", "silent", "last line");
	size_t i;
	const json_t *worker;
	json_array_foreach(json_object_get(job, "workers"), i, worker) print_worker(worker);
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
	json_array_foreach(list->jobs, i, job) print_job(job);
	if (i == 0)
		puts(list->name ? "no such job is running here"
				: "no job of this user is running here");
}

struct status_options {
	bool watch, json;
};

static const struct opt status_opts[] = {
	OPT_FLAG("watch", NULL, struct status_options, watch, "show it again every second"),
	OPT_FLAG("json", NULL, struct status_options, json,
		 "for programs: an array of states as in /api/state"),
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
		jobs_find(&list, first < argc ? argv[first] : NULL);
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
