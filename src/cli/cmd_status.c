/* muster status: the running jobs of this user on this host. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/jobs.h"
#include "core/worker/exit_code.h"

extern const struct command command_status;

#define WATCH_PERIOD_S 1
#define LAST_LINE_AT 81 /* where the column with a worker's last line begins */
#define LAST_LINE_MIN 20
#define LAST_LINE_INDENT 8 /* in a line of its own */

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

/* Whether the last lines do not fit beside the other columns. */
static bool is_narrow(int width)
{
	return width && width < LAST_LINE_AT + LAST_LINE_MIN;
}

/* The beginning of `text` that has at most `max` characters, in bytes. */
static int cut(const char *text, int max)
{
	const char *at = text;
	for (int shown = 0; *at; at++) {
		bool starts = ((unsigned char)*at & 0xC0) != 0x80;
		if (starts && shown++ == max)
			break;
	}
	return (int)(at - text);
}

static void print_last_line(const char *line, int width)
{
	int at = is_narrow(width) ? LAST_LINE_INDENT : LAST_LINE_AT;
	if (*line)
		printf("%s%*s", is_narrow(width) ? "\n" : "", is_narrow(width) ? at : 2, "");
	printf("%.*s\n", width ? cut(line, width - at) : (int)strlen(line), line);
}

static void print_worker(struct json_value worker, int width)
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
	print_last_line(line ? line : "", width);
}

static void print_head(struct json_value job, int width)
{
	print_text(job, "run_id", 0);
	printf("  pid %" PRId64 "  ", job_number(job, "pid"));
	print_text(job, "state", 0);
	printf("  up");
	print_time(job, "uptime_s", 0);
	int64_t rank, nodes = job_number(job, "nodes");
	printf("%snodes %" PRId64, is_narrow(width) ? "\n  " : "  ", nodes);
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
	int width = command_width();
	print_head(job, width);
	AUTO_FREE char *log_dir = json_value_text(json_value_get(job, "log_dir"));
	if (log_dir)
		printf("  logs %s\n", log_dir);
	printf("  %5s %8s %-8s %12s %12s %8s %7s %10s%s\n", "rank", "pid", "state", "up", "cpu",
	       "MiB", "timers", "silent", is_narrow(width) ? "" : "  last line");
	for (json_value_enter(json_value_get(job, "workers"), &in); json_value_next(&in, &worker);)
		print_worker(worker, width);
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
