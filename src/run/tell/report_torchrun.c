/* The table that torchrun prints when workers fail, for programs that look for it. Its layout,
 * trailing blanks included, is torch's own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/str.h"
#include "run/tell/error_file.h"
#include "run/tell/report.h"
#include "run/tell/text.h"

#define WIDTH_MAX 60
#define NO_TRACEBACK "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"

/* torch has one number for the end of a worker: its code, or minus the signal. */
static int exit_number(const struct exit_status *status)
{
	return status->kind == EXIT_SIGNAL ? -status->value
	       : status->kind == EXIT_CODE ? status->value
					   : 1;
}

static void put_message(struct buf *out, const struct history_failure *failure,
			const struct error_file *file)
{
	const struct exit_status *status = &failure->status;
	if (file->state == ERROR_FILE_GOOD) {
		const char *text = file->traceback ? file->traceback : file->message;
		for (; *text; text++) {
			buf_append_char(out, *text);
			if (*text == '\n' && file->traceback)
				buf_append_str(out, "  ");
		}
	} else if (status->kind == EXIT_SIGNAL) {
		const char *name = str_signal_name(status->value);
		buf_printf(out, "Signal %d (%s) received by PID %d", status->value,
			   name ? name : "<N/A>", (int)failure->pid);
	} else {
		buf_append_str(out, NO_TRACEBACK);
	}
}

static void put_failure(struct buf *out, const struct history *history, size_t index,
			const struct history_failure *failure)
{
	AUTO(error_file_done) struct error_file file = ERROR_FILE_INIT;
	if (failure->error_file)
		error_file_read(failure->error_file, &file);
	bool good = file.state == ERROR_FILE_GOOD;
	time_t seconds = good ? (time_t)file.timestamp
			      : (time_t)((failure->ended_ns + history->wall_offset_ns) / NS_PER_S);
	struct tm tm;
	char when[32];
	localtime_r(&seconds, &tm);
	strftime(when, sizeof(when), "%Y-%m-%d_%H:%M:%S", &tm);
	const char *signal =
		failure->status.kind == EXIT_SIGNAL ? str_signal_name(failure->status.value) : NULL;
	buf_printf(out, "[%zu]:\n  time      : %s\n  host      : %s\n", index, when, failure->host);
	buf_printf(out, "  rank      : %u (local_rank: %u)\n", failure->rank, failure->local_rank);
	buf_printf(out, "  exitcode  : %d (pid: %d) %s%s%s\n", exit_number(&failure->status),
		   (int)failure->pid, signal ? " (" : "", signal ? signal : "", signal ? ")" : "");
	buf_printf(out, "  error_file: %s\n  traceback : ", good ? failure->error_file : "<N/A>");
	put_message(out, failure, &file);
}

static size_t longest_line(const char *text)
{
	size_t width = 0;
	while (*text) {
		size_t len = strcspn(text, "\n");
		width = MAX(width, text_width(text, len));
		text += len + (text[len] == '\n');
	}
	return width;
}

static void put_rule(struct buf *out, char c, size_t width)
{
	memset(buf_reserve(out, width), c, width);
	buf_commit(out, width);
	buf_append_char(out, '\n');
}

void report_torchrun(const struct report *report, struct buf *out)
{
	const struct history_attempt *last = history_last(report->history);
	const struct history_failure *cause = last ? history_cause(last) : NULL;
	AUTO(buf_done) struct buf title = BUF_INIT, root = BUF_INIT, others = BUF_INIT;
	buf_printf(&title, "%s FAILED", report->config->entry.title);
	for (size_t i = 0; last && i < last->count; i++) {
		bool is_root = &last->failures[i] == cause;
		put_failure(is_root ? &root : &others, report->history, i, &last->failures[i]);
		buf_append_char(is_root ? &root : &others, '\n');
	}
	size_t width = MAX(longest_line(buf_str(&title)), longest_line(buf_str(&root)));
	width = MIN(MAX(width, longest_line(buf_str(&others))), WIDTH_MAX);
	if (buf_len(&others) == 0)
		buf_append_str(&others, "  <NO_OTHER_FAILURES>\n");

	buf_append_str(out,
		       "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n");
	put_rule(out, '=', width);
	buf_printf(out, "%s\n", buf_str(&title));
	put_rule(out, '-', width);
	buf_printf(out, "Failures:\n%s", buf_str(&others));
	put_rule(out, '-', width);
	buf_printf(out, "Root Cause (first observed failure):\n%s", buf_str(&root));
	put_rule(out, '=', width);
}
