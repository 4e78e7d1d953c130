#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dir.h"
#include "base/fd.h"
#include "base/mem.h"
#include "core/rounds/job_exit.h"
#include "proto/json_out.h"
#include "run/tell/error_file.h"
#include "run/tell/report.h"
#include "run/tell/make_story.h"

#define REPORT_VERSION 1

static void put_time(struct json_out *out, const char *key, const struct history *history,
		     uint64_t when_ns)
{
	char text[CLOCK_ISO_MAX];
	if (!when_ns)
		return;
	clock_iso(when_ns + history->wall_offset_ns, text);
	json_out_text(out, key, text);
}

static void put_status(struct json_out *out, const struct exit_status *status)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	exit_status_describe(status, &text);
	json_out_text(out, "end", buf_str(&text));
	if (status->kind == EXIT_CODE)
		json_out_int(out, "exit_code", status->value);
	if (status->kind == EXIT_SIGNAL)
		json_out_int(out, "signal", status->value);
	json_out_bool(out, "core_dumped", status->core_dumped);
}

static void put_error_file(struct json_out *out, const char *path)
{
	AUTO(error_file_done) struct error_file file = ERROR_FILE_INIT;
	error_file_read(path, &file);
	if (file.state == ERROR_FILE_ABSENT)
		return;
	json_out_text(out, "error_file", path);
	if (file.message)
		json_out_text(out, "message", file.message);
	if (file.traceback)
		json_out_text(out, "traceback", file.traceback);
	if (file.problem)
		json_out_text(out, "error_file_problem", file.problem);
}

/* A text in JSON has no NUL; the output of a worker may. */
static void put_tail(struct json_out *out, const struct buf *tail)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	for (size_t i = 0; i < buf_len(tail); i++)
		buf_append_char(&text, buf_data(tail)[i] ? (char)buf_data(tail)[i] : '?');
	json_out_text(out, "stderr_tail", buf_str(&text));
}

static void put_failure(struct json_out *out, const struct report *report,
			const struct history_failure *failure)
{
	json_out_open(out, NULL, '{');
	json_out_int(out, "rank", failure->rank);
	json_out_int(out, "local_rank", failure->local_rank);
	json_out_int(out, "group_rank", failure->group_rank);
	json_out_text(out, "host", failure->host);
	json_out_int(out, "pid", failure->pid);
	json_out_text(out, "reason", failure_reason_name(failure->reason));
	json_out_bool(out, "stopped", failure->stopped);
	put_status(out, &failure->status);
	if (failure->started_ns)
		put_time(out, "started", report->history, failure->started_ns);
	put_time(out, "ended", report->history, failure->ended_ns);
	if (failure->started_ns)
		json_out_int(out, "duration_ns",
			     (int64_t)(failure->ended_ns - failure->started_ns));
	if (failure->reason == FAILURE_SPAWN) {
		struct err why = ERR_INIT;
		entry_explain_spawn(&report->config->entry, failure->spawn_errno, &why);
		json_out_text(out, "message", why.msg);
	}
	if (failure->error_file)
		put_error_file(out, failure->error_file);
	if (failure->captured)
		put_tail(out, &failure->tail);
	json_out_close(out, '}');
}

/* How far the workers of this host got. */
static void put_steps(struct json_out *out, const struct step_progress_span *steps)
{
	if (steps->workers) {
		json_out_int(out, "first_step", (int64_t)steps->first_step);
		json_out_int(out, "step", (int64_t)steps->least);
		json_out_int(out, "most_step", (int64_t)steps->most);
	}
	if (steps->savers)
		json_out_int(out, "saved_step", (int64_t)steps->saved);
}

/* Which workers of this host left as agreed, and what they have saved. */
static void put_left(struct json_out *out, const struct history_attempt *attempt)
{
	if (attempt->left_count == 0)
		return;
	json_out_open(out, "left", '[');
	for (size_t i = 0; i < attempt->left_count; i++) {
		const struct history_left *left = &attempt->left[i];
		json_out_open(out, NULL, '{');
		json_out_int(out, "rank", left->rank);
		json_out_int(out, "step", (int64_t)left->step);
		if (left->has_saved)
			json_out_int(out, "saved_step", (int64_t)left->saved);
		json_out_close(out, '}');
	}
	json_out_close(out, ']');
}

/* The cause that all hosts agree on, the same in the reports of all. rule: one-cause */
static void put_ruled(struct json_out *out, const struct cause *ruled)
{
	char when[CLOCK_ISO_MAX];
	json_out_open(out, "first_cause", '{');
	json_out_int(out, "rank", ruled->rank);
	json_out_int(out, "local_rank", ruled->local_rank);
	json_out_int(out, "group_rank", ruled->group_rank);
	json_out_int(out, "world_size", ruled->world_size);
	json_out_text(out, "host", ruled->name);
	json_out_int(out, "pid", ruled->pid);
	json_out_text(out, "reason", failure_reason_name(ruled->reason));
	put_status(out, &ruled->status);
	if (ruled->wall_ns) {
		clock_iso(ruled->wall_ns, when);
		json_out_text(out, "ended", when);
	}
	if (ruled->lived_ns)
		json_out_int(out, "duration_ns", (int64_t)ruled->lived_ns);
	json_out_bool(out, "no_restart", ruled->no_restart);
	if (*ruled->words)
		json_out_text(out, "words", ruled->words);
	if (*ruled->blame.text)
		json_out_text(out, "collectives", ruled->blame.text);
	if (*ruled->report)
		json_out_text(out, "report", ruled->report);
	json_out_close(out, '}');
}

static void put_attempt(struct json_out *out, const struct report *report,
			const struct history_attempt *attempt)
{
	const struct history_failure *cause = history_cause(attempt);
	json_out_open(out, NULL, '{');
	json_out_int(out, "restart_count", attempt->restart_count);
	json_out_int(out, "world_size", attempt->world_size);
	json_out_text(out, "end", attempt_end_name(attempt->end));
	put_time(out, "started", report->history, attempt->started_ns);
	json_out_int(out, "duration_ns", (int64_t)(attempt->ended_ns - attempt->started_ns));
	if (cause)
		json_out_int(out, "first_cause", cause - attempt->failures);
	put_steps(out, &attempt->steps);
	put_left(out, attempt);
	json_out_text_if(out, "collectives", attempt->collectives);
	json_out_text_if(out, "stacks", attempt->stacks);
	json_out_open(out, "failures", '[');
	for (size_t i = 0; i < attempt->count; i++)
		put_failure(out, report, &attempt->failures[i]);
	json_out_close(out, ']');
	json_out_close(out, '}');
}

static const struct exit_row *exit_reason_of(const struct report *report)
{
	return &exit_rows[job_exit_reason(report->outcome, report->history->stop_signal)];
}

void report_json(const struct report *report, int exit_code, struct buf *text)
{
	struct json_out json = JSON_OUT(text), *out = &json;
	const struct history *history = report->history;
	const struct run_config *config = report->config;
	const struct history_attempt *last = history_last(history);
	json_out_open(out, NULL, '{');
	json_out_text(out, "muster", "report");
	json_out_int(out, "v", REPORT_VERSION);
	json_out_text(out, "version", MUSTER_VERSION);
	json_out_text(out, "run_id", config->run_id);
	json_out_text(out, "host", history->host);
	json_out_text(out, "role", config->role);
	json_out_int(out, "nproc_per_node", config->nproc);
	json_out_int(out, "max_restarts", config->max_restarts);
	json_out_text(out, "outcome", attempt_end_name(last ? last->end : ATTEMPT_RUNNING));
	json_out_int(out, "exit_code", exit_code);
	if (report->outcome)
		json_out_text(out, "exit_reason", exit_reason_of(report)->name);
	if (history->stop_signal)
		json_out_int(out, "stop_signal", history->stop_signal);
	put_time(out, "started", history, history->started_ns);
	put_time(out, "ended", history, history->ended_ns);
	if (report->outcome && report->outcome->has_cause)
		put_ruled(out, &report->outcome->cause);
	json_out_text(out, "program", config->entry.path);
	json_out_list(out, "command", &config->entry.argv);
	if (history->forgotten.count)
		json_out_int(out, "attempts_forgotten", (int64_t)history->forgotten.count);
	AUTO(story_done) struct story story;
	story_of(report, &story);
	story_put(&story, out);
	story_put_verdict(&story, out);
	report_goodput_json(report, out);
	node_table_json(&history->nodes, out);
	json_out_open(out, "attempts", '[');
	for (size_t i = 0; i < history->count; i++)
		put_attempt(out, report, &history->attempts[i]);
	json_out_close(out, ']');
	json_out_close(out, '}');
	buf_append_char(text, '\n');
}

int report_save(const struct report *report, int exit_code, struct err *err)
{
	if (!report->log_dir)
		return 0;
	AUTO(buf_done) struct buf text = BUF_INIT;
	report_json(report, exit_code, &text);
	AUTO_FREE char *path = mem_printf("%s/report.json", report->log_dir);
	AUTO(fd_close) int fd = dir_open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int r = fd < 0 ? -errno : fd_write_all(fd, buf_data(&text), buf_len(&text));
	return r < 0 ? err_set(err, -r, "%s: %m", path) : 0;
}

int report_pass_up(const struct report *report, struct err *err)
{
	const char *to = getenv("TORCHELASTIC_ERROR_FILE");
	const struct history_attempt *last = history_last(report->history);
	const struct history_failure *cause = last ? history_cause(last) : NULL;
	if (!to || !*to || !cause || !cause->error_file)
		return 0;
	const struct exit_status *status = &cause->status;
	return error_file_pass_up(cause->error_file, to,
				  status->kind == EXIT_SIGNAL ? -status->value : status->value,
				  err);
}
