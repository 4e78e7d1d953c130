/* muster status: the running jobs of this user on this host, with all their hosts. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/jobs/asker.h"
#include "core/worker/exit_code.h"
#include "core/worker/step_progress.h"

extern const struct command command_status;

#define WATCH_PERIOD_S 1
#define LAST_LINE_AT 81 /* where the column with a worker's last line begins */
#define LAST_LINE_MIN 20
#define LAST_LINE_INDENT 8 /* in a line of its own */

static void print_text(struct json_value object, const char *name, int width)
{
	AUTO_FREE char *text = json_value_text(json_value_get(object, name));
	command_print("%-*s", width, text ? text : "-");
}

static void print_time(struct json_value object, const char *name, int width)
{
	struct json_value value = json_value_get(object, name);
	char text[CLOCK_HUMAN_MAX] = "-";
	if (value.kind != JSON_NONE)
		clock_human((uint64_t)(json_value_real(value) * (double)NS_PER_S), text);
	command_print(" %*s", width, text);
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
		command_print("%s%*s", is_narrow(width) ? "\n" : "", is_narrow(width) ? at : 2, "");
	command_print("%.*s\n", width ? cut(line, width - at) : (int)strlen(line), line);
}

static double number_or(struct json_value object, const char *name, double otherwise)
{
	struct json_value value = json_value_get(object, name);
	return value.kind == JSON_NONE ? otherwise : json_value_real(value);
}

static uint64_t time_of(struct json_value object, const char *name)
{
	return (uint64_t)(number_or(object, name, 0) * (double)NS_PER_S);
}

static bool is_running(struct json_value worker)
{
	AUTO_FREE char *state = json_value_text(json_value_get(worker, "state"));
	return state && str_eq(state, "running");
}

/* Adds what the workers of one host say about their steps. */
static void add_steps(struct json_value host, struct step_progress_sum *sum)
{
	struct json_value worker;
	struct json_in in;
	int64_t step;
	for (json_value_enter(json_value_get(host, "workers"), &in);
	     json_value_next(&in, &worker);) {
		if (!json_value_int(json_value_get(worker, "step"), &step))
			continue;
		step_progress_add(sum, &(struct step_progress_rank){
					       .rank = job_number(worker, "rank"),
					       .step = (uint64_t)step,
					       .total = (uint64_t)job_number(worker, "total_steps"),
					       .rate = number_or(worker, "steps_per_s", 0),
					       .left_s = number_or(worker, "left_s", -1),
					       .ended = !is_running(worker),
					       .still_ns = time_of(worker, "still_s"),
					       .usual_ns = time_of(worker, "usual_step_s"),
				       });
	}
}

static void print_standstill(const struct step_progress_sum *sum, const char *run_id)
{
	char lasted[CLOCK_HUMAN_MAX], usual[CLOCK_HUMAN_MAX];
	if (!sum->still_ns)
		return;
	clock_human(sum->still_ns, lasted);
	clock_human(sum->usual_ns, usual);
	command_print(
		"  no step for %s (usually %s): 'muster stacks %s' shows where the workers are, "
		"'muster collectives %s' who is missing\n",
		lasted, usual, run_id, run_id);
}

/* "step 120 of 1000, 3.2 a second, 4m 35s left; rank 3 is behind, at 118". */
static void print_steps(const struct step_progress_sum *sum, struct json_value job)
{
	if (sum->count == 0)
		return;
	command_print("  step %" PRIu64, sum->most);
	if (sum->total)
		command_print(" of %" PRIu64, sum->total);
	if (sum->rate > 0 && !sum->still_ns)
		command_print(", %.3g a second", sum->rate);
	if (sum->left_s >= 0) {
		char left[CLOCK_HUMAN_MAX];
		clock_human((uint64_t)(sum->left_s * (double)NS_PER_S), left);
		command_print(", %s left", left);
	}
	if (sum->least < sum->most)
		command_print("; rank %" PRId64 " is behind, at %" PRIu64, sum->behind, sum->least);
	putchar('\n');
	AUTO_FREE char *run_id = json_value_text(json_value_get(job, "run_id"));
	print_standstill(sum, run_id ? run_id : "JOB");
}

/* "  rank 3 holds the others up: they waited for it at 60 of 64 looks, 6.1 ms a step; …" or "it
 * came last to 60 of 64 collectives of group 'dp', 6.1 ms after the others; …" */
static void print_stragglers(struct json_value host)
{
	struct json_value worker;
	struct json_in in;
	for (json_value_enter(json_value_get(host, "workers"), &in);
	     json_value_next(&in, &worker);) {
		struct json_value late = json_value_get(worker, "straggler");
		if (late.kind == JSON_NONE)
			continue;
		AUTO_FREE char *why = json_value_text(json_value_get(late, "why"));
		AUTO_FREE char *group = json_value_text(json_value_get(late, "group"));
		bool arrives = json_value_get(late, "of_collectives").kind != JSON_NONE;
		command_print("  rank %" PRId64 " holds the others up: ",
			      job_number(worker, "rank"));
		if (arrives)
			command_print(
				"it came last to %" PRId64 " of %" PRId64 " collectives%s%s%s",
				job_number(late, "times_last"), job_number(late, "of_collectives"),
				group ? " of group '" : "", group ? group : "", group ? "'" : "");
		else
			command_print("they waited for it at %" PRId64 " of %" PRId64 " looks",
				      job_number(late, "times_last"), job_number(late, "of_steps"));
		command_print(", %.1f ms %s%s%s\n", 1e3 * number_or(late, "lag_s", 0),
			      arrives ? "after the others" : "a step", why ? "; " : "",
			      why ? why : "");
	}
}

static void print_worker(struct json_value worker, int width)
{
	command_print("  %5" PRId64 " %8" PRId64 " ", job_number(worker, "rank"),
		      job_number(worker, "pid"));
	print_text(worker, "state", 8);
	print_time(worker, "uptime_s", 12);
	print_time(worker, "cpu_s", 12);
	command_print(" %8" PRId64 " %7" PRId64, job_number(worker, "resident_bytes") >> 20,
		      job_number(worker, "timers"));
	print_time(worker, "silent_s", 10);
	AUTO_FREE char *line = json_value_text(json_value_get(worker, "last_line"));
	print_last_line(line ? line : "", width);
}

static void print_nodes(struct json_value job, int width)
{
	command_print("%snodes %" PRId64, is_narrow(width) ? "\n  " : "  ",
		      job_number(job, "nodes"));
}

static void print_sizes(struct json_value job)
{
	bool by_progress = json_value_get(job, "restarts_by_progress").kind != JSON_NONE;
	command_print("  workers %" PRId64 "  restarts %" PRId64 "%s %" PRId64 "%s\n",
		      job_number(job, "world_size"), job_number(job, "restarts"),
		      by_progress ? ", at most" : " of", job_number(job, "max_restarts"),
		      by_progress ? " in a row without progress" : "");
}

static void print_head(struct json_value job, int width)
{
	int64_t rank;
	print_text(job, "run_id", 0);
	command_print("  pid %" PRId64 "  ", job_number(job, "pid"));
	print_text(job, "state", 0);
	command_print("  up");
	print_time(job, "uptime_s", 0);
	print_nodes(job, width);
	if (job_number(job, "nodes") > 1 &&
	    json_value_int(json_value_get(json_value_get(job, "node"), "group_rank"), &rank))
		command_print(" (this is %" PRId64 ")", rank);
	print_sizes(job);
}

/* What all hosts of a job agree on. */
static void print_wide_head(struct json_value job, int width)
{
	print_text(job, "run_id", 0);
	print_nodes(job, width);
	print_sizes(job);
}

static void print_workers(struct json_value job, const struct msg_ask *ask, int width)
{
	struct json_value worker;
	struct json_in in;
	for (json_value_enter(json_value_get(job, "workers"), &in); json_value_next(&in, &worker);)
		if (inquiry_means(&ask->ask, (uint64_t)job_number(worker, "rank")))
			print_worker(worker, width);
}

static void print_log_dir(struct json_value job)
{
	AUTO_FREE char *log_dir = json_value_text(json_value_get(job, "log_dir"));
	if (log_dir)
		command_print("  logs %s\n", log_dir);
}

/* The first line: it has the cause. */
static void print_hang(struct json_value job)
{
	AUTO_FREE char *text = json_value_text(json_value_get(job, "last_hang"));
	if (text)
		command_print("  last hang: %.*s\n", (int)strcspn(text, "\n"), text);
}

static void print_titles(int width)
{
	command_print("  %5s %8s %-8s %12s %12s %8s %7s %10s%s\n", "rank", "pid", "state", "up",
		      "cpu", "MiB", "timers", "silent", is_narrow(width) ? "" : "  last line");
}

static void print_job(struct json_value job, const struct msg_ask *ask)
{
	int width = command_width();
	struct step_progress_sum steps = STEP_PROGRESS_SUM_INIT;
	add_steps(job, &steps);
	print_head(job, width);
	print_steps(&steps, job);
	print_stragglers(job);
	print_log_dir(job);
	print_hang(job);
	print_titles(width);
	print_workers(job, ask, width);
}

/* One of several hosts of a job. */
static void print_host(struct json_value state, const struct msg_ask *ask, int width)
{
	int64_t rank;
	command_print("  ");
	print_text(state, "host", 0);
	if (json_value_int(json_value_get(json_value_get(state, "node"), "group_rank"), &rank))
		command_print("  node %" PRId64, rank);
	else
		command_print("  not in the round");
	command_print("  pid %" PRId64 "  ", job_number(state, "pid"));
	print_text(state, "state", 0);
	command_print("  up");
	print_time(state, "uptime_s", 0);
	putchar('\n');
	print_stragglers(state);
	print_log_dir(state);
	print_workers(state, ask, width);
}

struct view {
	struct msg_ask ask; /* what is shown */
	bool here;
	struct json_out *json; /* instead of text; NULL: text */
};

static void show_state(struct json_value state, bool wide, const struct view *view)
{
	if (view->json)
		json_out_value(view->json, NULL, state);
	else if (wide)
		print_host(state, &view->ask, command_width());
	else
		print_job(state, &view->ask);
}

static void add_answer(struct host_answer *answer, struct step_progress_sum *sum)
{
	struct json_value state;
	const char *text = buf_str(&answer->text);
	if (json_value_parse(text, strlen(text), &state) == 0)
		add_steps(state, sum);
}

static void show_host(struct host_answer *answer, bool first, const struct step_progress_sum *steps,
		      const struct view *view)
{
	struct json_value state;
	const char *text = buf_str(&answer->text);
	if (json_value_parse(text, strlen(text), &state) < 0)
		return;
	if (first && !view->json) {
		print_wide_head(state, command_width());
		print_steps(steps, state);
		print_hang(state);
		print_titles(command_width());
	}
	show_state(state, true, view);
}

static int show_job(const struct command *self, const struct job_state *job, struct view *view)
{
	bool narrow = *view->ask.host || view->ask.ask.rank_count;
	if ((view->here && job->dir) || (!narrow && !job_is_wide(job))) {
		show_state(job->json, false, view);
		return EXIT_CODE_OK;
	}
	AUTO(host_answers_done) struct host_answers answers;
	int status = asker_collect(self, job, &view->ask, &answers);
	struct step_progress_sum steps = STEP_PROGRESS_SUM_INIT;
	for (size_t i = 0; i < answers.count; i++)
		add_answer(&answers.items[i], &steps);
	for (size_t i = 0; i < answers.count; i++)
		show_host(&answers.items[i], i == 0, &steps, view);
	return status;
}

static int show_jobs(const struct command *self, const struct job_list *list, struct view *view)
{
	int status = list->count == 0 && list->name ? EXIT_CODE_FAILED : EXIT_CODE_OK;
	for (size_t i = 0; i < list->count; i++) {
		int of_job = show_job(self, &list->jobs[i], view);
		status = of_job ? of_job : status;
	}
	if (list->count == 0 && list->name)
		command_complain(self,
				 "no such job is running here: %s; 'muster status' lists those "
				 "that are",
				 list->name);
	else if (list->count == 0 && !view->json)
		puts("no job of this user is running here");
	return status;
}

static int show_json(const struct command *self, const struct job_list *list, struct view *view)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct json_out out = JSON_OUT(&text, .indent = 2);
	view->json = &out;
	json_out_open(&out, NULL, '[');
	int status = show_jobs(self, list, view);
	json_out_close(&out, ']');
	puts(buf_str(&text));
	return status;
}

struct status_options {
	bool watch, json;
	struct asker_options narrow;
	uint64_t timeout_ns;
};

static const struct opt status_opts[] = {
	OPT_FLAG("watch", NULL, struct status_options, watch, "show it again every second"),
	OPT_FLAG("json", NULL, struct status_options, json,
		 "for programs: an array of states as in /api/state, one for each host"),
	ASKER_OPTS(struct status_options, narrow),
	OPT_DURATION("timeout", NULL, struct status_options, timeout_ns, "TIME",
		     "how long to wait for the answers of other hosts (default 10s)"),
	OPT_END,
};

static int status_main(const struct command *self, int argc, char **argv)
{
	struct status_options o = { .timeout_ns = ASKER_DEFAULT_NS };
	const char *name;
	int status;
	if (!jobs_parse_any(self, &o, &o.narrow.place, argc, argv, &name, &status))
		return status;
	struct view view = { .ask.ask = { .kind = ASK_STATE, .timeout_ns = o.timeout_ns },
			     .here = o.narrow.here };
	if (!asker_narrow(self, &o.narrow, &view.ask, &status))
		return status;
	for (;;) {
		AUTO(job_list_done) struct job_list list;
		jobs_find_at(&list, name, &o.narrow.place);
		if (o.watch && isatty(STDOUT_FILENO))
			fputs("\033[H\033[J", stdout);
		status = o.json ? show_json(self, &list, &view) : show_jobs(self, &list, &view);
		fflush(stdout);
		if (!o.watch || ferror(stdout))
			return status;
		sleep(WATCH_PERIOD_S);
	}
}

const struct command command_status = {
	.name = "status",
	.synopsis = "[--watch] [--json] [--host NAME] [--rank N,...] [JOB]",
	.summary = "show the running jobs of this user on this host, with all their hosts",
	.opts = status_opts,
	.mode = OPT_PERMUTE,
	.main = status_main,
};
