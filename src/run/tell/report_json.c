#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "proto/json.h"
#include "run/tell/error_file.h"
#include "run/tell/report.h"

#define REPORT_VERSION 1

static void put_key(struct buf *out, const char *key)
{
	if (buf_len(out) && !strchr("[{", buf_data(out)[buf_len(out) - 1]))
		buf_append_char(out, ',');
	if (key)
		buf_printf(out, "\"%s\":", key);
}

static void put_text(struct buf *out, const char *key, const char *text)
{
	put_key(out, key);
	json_quote(out, text);
}

static void put_number(struct buf *out, const char *key, int64_t value)
{
	put_key(out, key);
	buf_printf(out, "%" PRId64, value);
}

static void put_bool(struct buf *out, const char *key, bool value)
{
	put_key(out, key);
	buf_append_str(out, value ? "true" : "false");
}

static void put_time(struct buf *out, const char *key, const struct history *history,
		     uint64_t when_ns)
{
	char text[CLOCK_ISO_MAX];
	if (!when_ns)
		return;
	clock_iso(when_ns + history->wall_offset_ns, text);
	put_text(out, key, text);
}

static void put_status(struct buf *out, const struct exit_status *status)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	exit_status_describe(status, &text);
	put_text(out, "end", buf_str(&text));
	if (status->kind == EXIT_CODE)
		put_number(out, "exit_code", status->value);
	if (status->kind == EXIT_SIGNAL)
		put_number(out, "signal", status->value);
	put_bool(out, "core_dumped", status->core_dumped);
}

static void put_error_file(struct buf *out, const char *path)
{
	AUTO(error_file_done) struct error_file file = ERROR_FILE_INIT;
	error_file_read(path, &file);
	if (file.state == ERROR_FILE_ABSENT)
		return;
	put_text(out, "error_file", path);
	if (file.message)
		put_text(out, "message", file.message);
	if (file.traceback)
		put_text(out, "traceback", file.traceback);
	if (file.problem)
		put_text(out, "error_file_problem", file.problem);
}

/* A text in JSON has no NUL; what a worker wrote may. */
static void put_tail(struct buf *out, const struct buf *tail)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	for (size_t i = 0; i < buf_len(tail); i++)
		buf_append_char(&text, buf_data(tail)[i] ? (char)buf_data(tail)[i] : '?');
	put_text(out, "stderr_tail", buf_str(&text));
}

static void put_failure(struct buf *out, const struct report *report,
			const struct history_failure *failure)
{
	put_key(out, NULL);
	buf_append_char(out, '{');
	put_number(out, "rank", failure->rank);
	put_number(out, "local_rank", failure->local_rank);
	put_number(out, "group_rank", failure->group_rank);
	put_text(out, "host", failure->host);
	put_number(out, "pid", failure->pid);
	put_text(out, "reason", failure_reason_name(failure->reason));
	put_bool(out, "stopped", failure->stopped);
	put_status(out, &failure->status);
	put_time(out, "started", report->history, failure->started_ns);
	put_time(out, "ended", report->history, failure->ended_ns);
	put_number(out, "duration_ns", (int64_t)(failure->ended_ns - failure->started_ns));
	if (failure->reason == FAILURE_SPAWN) {
		struct err why = ERR_INIT;
		entry_explain_spawn(&report->config->entry, failure->spawn_errno, &why);
		put_text(out, "message", why.msg);
	}
	if (failure->error_file)
		put_error_file(out, failure->error_file);
	if (failure->captured)
		put_tail(out, &failure->tail);
	buf_append_char(out, '}');
}

static void put_attempt(struct buf *out, const struct report *report,
			const struct history_attempt *attempt)
{
	const struct history_failure *cause = history_cause(attempt);
	put_key(out, NULL);
	buf_append_char(out, '{');
	put_number(out, "restart_count", attempt->restart_count);
	put_number(out, "world_size", attempt->world_size);
	put_text(out, "end", attempt_end_name(attempt->end));
	put_time(out, "started", report->history, attempt->started_ns);
	put_number(out, "duration_ns", (int64_t)(attempt->ended_ns - attempt->started_ns));
	if (cause)
		put_number(out, "first_cause", cause - attempt->failures);
	if (attempt->stacks)
		put_text(out, "stacks", attempt->stacks);
	put_key(out, "failures");
	buf_append_char(out, '[');
	for (size_t i = 0; i < attempt->count; i++)
		put_failure(out, report, &attempt->failures[i]);
	buf_append_str(out, "]}");
}

static void put_command(struct buf *out, const struct entry *entry)
{
	put_text(out, "program", entry->path);
	put_key(out, "command");
	buf_append_char(out, '[');
	for (size_t i = 0; i < entry->argv.count; i++)
		put_text(out, NULL, entry->argv.items[i]);
	buf_append_char(out, ']');
}

void report_json(const struct report *report, int exit_code, struct buf *out)
{
	const struct history *history = report->history;
	const struct run_config *config = report->config;
	const struct history_attempt *last = history_last(history);
	buf_append_char(out, '{');
	put_text(out, "muster", "report");
	put_number(out, "v", REPORT_VERSION);
	put_text(out, "version", MUSTER_VERSION);
	put_text(out, "run_id", config->run_id);
	put_text(out, "host", history->host);
	put_text(out, "role", config->role);
	put_number(out, "nproc_per_node", config->nproc);
	put_number(out, "max_restarts", config->max_restarts);
	put_text(out, "outcome", attempt_end_name(last ? last->end : ATTEMPT_RUNNING));
	put_number(out, "exit_code", exit_code);
	if (history->stop_signal)
		put_number(out, "stop_signal", history->stop_signal);
	put_time(out, "started", history, history->started_ns);
	put_time(out, "ended", history, history->ended_ns);
	put_command(out, &config->entry);
	put_key(out, "attempts");
	buf_append_char(out, '[');
	for (size_t i = 0; i < history->count; i++)
		put_attempt(out, report, &history->attempts[i]);
	buf_append_str(out, "]}\n");
}

int report_save(const struct report *report, int exit_code, struct err *err)
{
	if (!report->log_dir)
		return 0;
	AUTO(buf_done) struct buf text = BUF_INIT;
	report_json(report, exit_code, &text);
	AUTO_FREE char *path = mem_printf("%s/report.json", report->log_dir);
	AUTO(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
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
