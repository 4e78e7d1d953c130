/* muster status: the running jobs of this user on this host. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/jobs.h"
#include "core/worker/exit_code.h"

extern const struct command command_status;

#define WATCH_PERIOD_S 1

static void print_text(struct json_value object, const char *name, int width)
{
	AUTO_FREE char *text = json_value_text(json_value_get(object, name));
	printf("%-*s", width, text ? text : "-");
}

static void print_time(struct json_value object, const char *name, int width)
{
	struct json_value value = json_value_get(object, name);
	char text[CLOCK_HUMAN_MAX] = "-";
	if (value.kind != JSON_NONE)
		clock_human((uint64_t)(json_value_real(value) * (double)NS_PER_S), text);
	printf(" %*s", width, text);
}

static void print_worker(struct json_value worker)
{
	printf("  %5" PRId64 " %8" PRId64 " ", job_number(worker, "rank"),
	       job_number(worker, "pid"));
	print_text(worker, "state", 8);
	print_time(worker, "uptime_s", 12);
	print_time(worker, "cpu_s", 12);
	printf(" %8" PRId64 " %7" PRId64, job_number(worker, "resident_bytes") >> 20,
	       job_number(worker, "timers"));
	print_time(worker, "silent_s", 10);
	AUTO_FREE char *line = json_value_text(json_value_get(worker, "last_line"));
	printf("  %s\n", line ? line : "");
}

static void print_head(struct json_value job)
{
	print_text(job, "run_id", 0);
	printf("  pid %" PRId64 "  ", job_number(job, "pid"));
	print_text(job, "state", 0);
	printf("  up");
	print_time(job, "uptime_s", 0);
	int64_t rank, nodes = job_number(job, "nodes");
	printf("  nodes %" PRId64, nodes);
	if (nodes > 1 &&
	    json_value_int(json_value_get(json_value_get(job, "node"), "group_rank"), &rank))
		printf(" (this is %" PRId64 ")", rank);
	printf("  workers %" PRId64 "  restarts %" PRId64 " of %" PRId64 "\n",
	       job_number(job, "world_size"), job_number(job, "restarts"),
	       job_number(job, "max_restarts"));
}

static void print_job(struct json_value job)
{
	struct json_value worker;
	struct json_in in;
	print_head(job);
	AUTO_FREE char *log_dir = json_value_text(json_value_get(job, "log_dir"));
	if (log_dir)
		printf("  logs %s\n", log_dir);
	printf("  %5s %8s %-8s %12s %12s %8s %7s %10s  %s\n", "rank", "pid", "state", "up", "cpu",
	       "MiB", "timers", "silent", "last line");
	for (json_value_enter(json_value_get(job, "workers"), &in); json_value_next(&in, &worker);)
		print_worker(worker);
}

static void print_json(const struct job_list *list)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct json_out out = JSON_OUT(&text, .indent = 2);
	json_out_open(&out, NULL, '[');
	for (size_t i = 0; i < list->count; i++)
		json_out_value(&out, NULL, list->jobs[i].json);
	json_out_close(&out, ']');
	puts(buf_str(&text));
}

static void print_jobs(const struct job_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		print_job(list->jobs[i].json);
	if (list->count == 0 && list->name)
		fprintf(stderr, "muster status: no such job is running here: %s\n", list->name);
	else if (list->count == 0)
		puts("no job of this user is running here");
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
		if (o.json)
			print_json(&list);
		else
			print_jobs(&list);
		fflush(stdout);
		bool found = list.count > 0;
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
