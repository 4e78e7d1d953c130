#include "batch/recorder.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "batch/printer.h"
#include "core/worker/exit_code.h"

#define COLUMNS_DEFAULT 80
#define PARALLEL_FAILED_MAX 100 /* a larger number does not fit into an exit status */

void recorder_init(struct recorder *recorder)
{
	const struct batch_config *config = recorder->config;
	bool terminal =
		isatty(STDERR_FILENO) && !str_eq(getenv("TERM") ? getenv("TERM") : "", "dumb");
	int mode = config->progress;
	if (config->quiet)
		mode = BATCH_PROGRESS_NONE;
	else if (mode == BATCH_PROGRESS_AUTO)
		mode = terminal ? BATCH_PROGRESS_BAR : BATCH_PROGRESS_PLAIN;
	recorder->bar = mode == BATCH_PROGRESS_BAR;
	recorder->plain = mode == BATCH_PROGRESS_PLAIN;
	recorder->failures = FAILURES_INIT;
	recorder->start_ns = clock_now_ns();
}

void recorder_done(struct recorder *recorder)
{
	failures_done(&recorder->failures);
}

void recorder_say(const struct recorder *recorder, struct buf *text)
{
	utf8_make_rest_printable(text, 0, "\t\n");
	buf_append_char(text, '\n');
	printer_text(recorder->printer, STDERR_FILENO, buf_data(text), buf_len(text));
}

/* ---- the words for a failure ---- */

static const char *why_missing(const struct result *result, const char *field, const char *other)
{
	const char *why = env_get(&result->missing, field);
	return why ? why : other;
}

static void describe(const struct ending *ending, struct buf *out)
{
	const struct result *result = &ending->result;
	char human[CLOCK_HUMAN_MAX];
	switch (result->reason == REASON_CANARY ? ending->canary : result->reason) {
	case REASON_SPAWN:
		buf_append_str(out, why_missing(result, "start",
						why_missing(result, "run", "cannot be started")));
		return;
	case REASON_EXIT:
	case REASON_SIGNAL:
		exit_status_describe(&result->status, out);
		break;
	case REASON_OOM:
		buf_append_str(out, "killed, out of memory");
		break;
	case REASON_TIMEOUT:
		buf_append_str(out, "timed out");
		break;
	case REASON_CPU_TIMEOUT:
		buf_append_str(out, "used up its CPU time");
		break;
	case REASON_FILES:
		buf_append_str(out, why_missing(result, "files", reason_name(REASON_FILES)));
		break;
	default:
		buf_append_str(out, reason_name(result->reason));
		break;
	}
	if (!ending->timed)
		return;
	clock_human(ending->runtime_ns, human);
	buf_printf(out, " after %s", human);
}

static void append_name(const struct ending *ending, struct buf *out)
{
	const struct order_extra *extra = ending->what->extra;
	order_append_id(ending->what, out);
	if (!extra || extra->labels.count == 0)
		return;
	buf_append_str(out, " [");
	label_format(&extra->labels, out);
	buf_append_char(out, ']');
}

static void append_host(const struct ending *ending, struct buf *out)
{
	if (ending->result.node)
		buf_printf(out, " on %s", ending->result.node);
}

static void append_attempt(const struct ending *ending, struct buf *out)
{
	char human[CLOCK_HUMAN_MAX];
	int attempt = ending->result.attempt;
	if (!ending->retry) {
		if (attempt > 1)
			buf_printf(out, ", attempt %d", attempt);
		return;
	}
	clock_human(ending->retry_in_ns, human);
	buf_printf(out, ", attempt %d of %d, again in %s", attempt, ending->attempts, human);
}

/* One line for every attempt that failed. */
static void tell_failure(const struct recorder *recorder, const struct ending *ending)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	bool canary = ending->result.reason == REASON_CANARY;
	buf_append_str(&text,
		       canary ? "muster batch: the canary failed: " : "muster batch: order ");
	if (!canary) {
		append_name(ending, &text);
		buf_append_str(&text, " failed: ");
	}
	describe(ending, &text);
	append_host(ending, &text);
	append_attempt(ending, &text);
	buf_append_str(&text, ": ");
	order_append_command(ending->what, ending->slot, &text);
	if (ending->result.err_out.path)
		buf_printf(&text, " (%s)", ending->result.err_out.path);
	recorder_say(recorder, &text);
}

/* For the end. */
static void keep_failure(struct recorder *recorder, const struct ending *ending)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	const struct exit_status *status = &ending->result.status;
	append_name(ending, &text);
	buf_append_str(&text, ": ");
	describe(ending, &text);
	append_host(ending, &text);
	buf_append_str(&text, ": ");
	order_append_command(ending->what, ending->slot, &text);
	failures_add(&recorder->failures, buf_str(&text), ending->result.tail);
	recorder->failed_code = status->kind == EXIT_CODE ? status->value
				: status->kind == EXIT_SIGNAL
					? EXIT_CODE_SIGNAL_BASE + status->value
					: EXIT_CODE_FAILED;
}

void recorder_tell(struct recorder *recorder, const struct ending *ending)
{
	enum reason reason = ending->result.reason;
	if (reason != REASON_OK && reason != REASON_KILLED && !recorder->config->quiet)
		tell_failure(recorder, ending);
	if (recorder->page) {
		AUTO(buf_done) struct buf how = BUF_INIT;
		describe(ending, &how);
		batch_page_ended(recorder->page, ending->index, &ending->result, ending->final,
				 ending->unrun, buf_str(&how));
	}
	if (ending->final && reason != REASON_OK)
		keep_failure(recorder, ending);
}

/* ---- files and the screen ---- */

/* With the exit value and signal that GNU parallel would write. */
static int write_log(struct recorder *recorder, const struct ending *ending, struct err *err)
{
	AUTO(buf_done) struct buf line = BUF_INIT, command = BUF_INIT;
	const struct result *result = &ending->result;
	const struct exit_status *status = &result->status;
	bool ended_by_us = result->reason == REASON_TIMEOUT ||
			   result->reason == REASON_CPU_TIMEOUT || result->reason == REASON_KILLED;
	int code = status->kind == EXIT_CODE ? status->value : 0;
	if (result->reason == REASON_SPAWN)
		code = EXIT_CODE_NOT_FOUND;
	else if (ended_by_us || status->kind == EXIT_UNKNOWN)
		code = -1;
	order_append_command(ending->what, ending->slot, &command);
	journal_format_log(&line, (size_t)ending->number + 1, result->node ? result->node : ":",
			   ending->start_wall_ns, ending->timed ? ending->runtime_ns : 0,
			   result->out.bytes, code, status->kind == EXIT_SIGNAL ? status->value : 0,
			   buf_str(&command));
	return journal_append_log(recorder->journal, &line, err);
}

static void show(struct recorder *recorder, struct ending *ending)
{
	const struct batch_part *part = recorder->config->part;
	bool kept = recorder->config->results || ending->hidden || part;
	if (part)
		part->on_ending(part->arg, ending);
	for (int i = 0; i < 2 && !kept; i++)
		outputs_add(recorder->outputs, ending->order, i + 1, ending->tag, &ending->fds[i],
			    ending->shown[i], ending->bytes[i]);
	if (ending->final)
		outputs_end(recorder->outputs, ending->order);
}

int recorder_write(struct recorder *recorder, struct ending *ending, struct err *err)
{
	AUTO(buf_done) struct buf line = BUF_INIT;
	if (recorder->journal->fd >= 0)
		result_write(&ending->result, &line);
	int r = journal_append(recorder->journal, buf_data(&line), buf_len(&line), err);
	if (r >= 0 && ending->logged && recorder->journal->log_fd >= 0)
		r = write_log(recorder, ending, err);
	show(recorder, ending);
	return r;
}

/* ---- how far it is ---- */

static int columns(void)
{
	struct winsize size;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return size.ws_col;
	return COLUMNS_DEFAULT;
}

static void fill(const struct recorder *recorder, const struct batch_sum *sum,
		 struct progress *progress)
{
	progress->done = sum->ok + sum->failed + sum->skipped;
	progress->failed = sum->failed;
	progress->running = sum->running;
	progress->total = sum->total;
	progress->open = sum->open;
	progress->elapsed_ns = clock_now_ns() - recorder->start_ns;
	progress->eta_ns = sum->left_ns;
}

static void append_plain(const struct batch_sum *sum, const struct progress *progress,
			 struct buf *out)
{
	buf_append_str(out, "muster batch: ");
	progress_plain(progress, out);
	if (sum->hosts)
		buf_printf(out, ", %zu host%s", sum->hosts, sum->hosts == 1 ? "" : "s");
}

void recorder_show(const struct recorder *recorder, const struct batch_sum *sum,
		   struct progress *progress)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	fill(recorder, sum, progress);
	if (recorder->bar) {
		progress_render(progress, columns(), true, &text);
		printer_status(recorder->printer, buf_str(&text));
	} else if (recorder->plain) {
		append_plain(sum, progress, &text);
		recorder_say(recorder, &text);
	}
}

void recorder_tell_progress(const struct recorder *recorder, const struct batch_sum *sum,
			    struct progress *progress)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	fill(recorder, sum, progress);
	append_plain(sum, progress, &text);
	for (size_t i = 0; i < progress->order_count; i++) {
		char human[CLOCK_HUMAN_MAX];
		clock_human(progress->orders[i].since_ns, human);
		buf_printf(&text, "\n  %s: %s", human, progress->orders[i].command);
	}
	recorder_say(recorder, &text);
}

/* ---- the end ---- */

static void append_counts(const struct recorder *recorder, const struct batch_sum *sum,
			  uint64_t left, struct buf *out)
{
	buf_printf(out, "muster batch: %llu of %llu done", (unsigned long long)sum->ok,
		   (unsigned long long)sum->total);
	if (sum->failed)
		buf_printf(out, ", %llu failed", (unsigned long long)sum->failed);
	if (sum->skipped)
		buf_printf(out, ", %llu skipped because their canary failed",
			   (unsigned long long)sum->skipped);
	if (left)
		buf_printf(out, ", %llu not run", (unsigned long long)left);
	if (sum->open)
		buf_append_str(out, ", standard input not read to its end");
	if (recorder->already_done)
		buf_printf(out, ", %zu were done before", recorder->already_done);
	if (sum->late)
		buf_printf(out, ", %llu results came too late to count",
			   (unsigned long long)sum->late);
	if (sum->hosts)
		buf_printf(out, ", on %zu host%s", sum->hosts, sum->hosts == 1 ? "" : "s");
}

void recorder_sum_up(const struct recorder *recorder, const struct batch_sum *sum)
{
	static const char *const stops[] = { [BATCH_STOP_DRAIN] = "SIGHUP",
					     [BATCH_STOP_HALT] = "--halt",
					     [BATCH_STOP_DEADLINE] = "--deadline",
					     [BATCH_STOP_INTERRUPT] = "a signal",
					     [BATCH_STOP_FATAL] = "an error" };
	uint64_t left = sum->total - sum->ok - sum->failed - sum->skipped;
	char human[CLOCK_HUMAN_MAX];
	AUTO(buf_done) struct buf text = BUF_INIT;
	if (recorder->config->quiet)
		return;
	if (sum->total > 1) /* a single one has just said so */
		failures_format(&recorder->failures, &text);
	append_counts(recorder, sum, left, &text);
	clock_human(clock_now_ns() - recorder->start_ns, human);
	buf_printf(&text, ", in %s", human);
	if (sum->stop != BATCH_GO)
		buf_printf(&text, "; stopped by %s", stops[sum->stop]);
	if ((left || sum->failed || sum->skipped) && recorder->journal->fd >= 0 &&
	    !recorder->config->args.pipe)
		buf_append_str(&text, "; --resume goes on from here");
	recorder_say(recorder, &text);
}

/* The exit status of GNU parallel: how many orders failed, 101 for more than 100; with --halt
 * now,fail=1 that of the order that failed. */
static int parallel_code(const struct recorder *recorder, const struct batch_sum *sum)
{
	const struct halt_rule *halt = &recorder->config->halt;
	bool by_failure = sum->stop == BATCH_STOP_HALT && halt->when == HALT_NOW &&
			  halt->what == HALT_FAIL && halt->count == 1;
	if (by_failure)
		return recorder->failed_code;
	return (int)MIN(sum->failed, (uint64_t)PARALLEL_FAILED_MAX + 1);
}

int recorder_exit_code(const struct recorder *recorder, const struct batch_sum *sum)
{
	const struct batch_part *part = recorder->config->part;
	if (part)
		return part->on_end(part->arg);
	if (sum->stop == BATCH_STOP_FATAL)
		return EXIT_CODE_SYSTEM;
	if (sum->stop == BATCH_STOP_INTERRUPT || sum->stop == BATCH_STOP_DRAIN)
		return EXIT_CODE_SIGNAL_BASE + sum->stop_signal;
	/* --halt success=1: the user did not want the rest. */
	if (sum->stop == BATCH_STOP_HALT && recorder->config->halt.what == HALT_SUCCESS)
		return EXIT_CODE_OK;
	if (recorder->config->exit_code == BATCH_EXIT_PARALLEL)
		return parallel_code(recorder, sum);
	return sum->ok == sum->total ? EXIT_CODE_OK : EXIT_CODE_FAILED;
}
