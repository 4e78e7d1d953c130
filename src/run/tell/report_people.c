#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "core/worker/hang.h"
#include "run/tell/error_file.h"
#include "run/tell/hint.h"
#include "run/tell/report.h"
#include "run/tell/text.h"

#define TRACEBACK_LINES 40
#define TAIL_LINES 20
#define STACK_LINES 24
#define ATTEMPTS_SHOWN 8
#define RANKS_SHOWN 8
#define COMMAND_MAX 200 /* bytes */
#define INDENT "                  "
#define BOLD "\033[1m"
#define BOLD_RED "\033[1;31m"
#define PLAIN "\033[0m"

static const char *const phrases[] = {
	[FAILURE_EXIT] = "ended with",
	[FAILURE_SPAWN] = "could not be started",
	[FAILURE_WARDEN] = "ended unseen",
	[FAILURE_TIMER] = "was ended by its watchdog, with",
	[FAILURE_HANG] = "showed no sign of life and was ended, with",
	[FAILURE_ABORT] = "called MPI_Abort, with",
	[FAILURE_UNFINALIZED] = "ended without MPI_Finalize, with",
	[FAILURE_PMI] = "broke the protocol between MPI and its launcher",
	[FAILURE_LOST] = "was lost with its host",
	[FAILURE_LEFT] = "left with its host",
};
static_assert(ARRAY_LEN(phrases) == FAILURE_REASON_COUNT, "every reason needs a phrase");

struct printer {
	struct buf *out;
	bool colour;
	size_t checked; /* bytes of `out` that a terminal may be shown */
};

/* Whatever was written since the last call may hold a name or a path with anything in it. */
static void check_rest(struct printer *p)
{
	utf8_make_rest_printable(p->out, p->checked, "\t\n");
	p->checked = buf_len(p->out);
}

static void colour(struct printer *p, const char *code)
{
	check_rest(p);
	if (p->colour)
		buf_append_str(p->out, code);
	p->checked = buf_len(p->out);
}

static void label(struct printer *p, const char *name)
{
	buf_append_str(p->out, "  ");
	colour(p, BOLD);
	buf_printf(p->out, "%-14s", name);
	colour(p, PLAIN);
	buf_append_str(p->out, "  ");
}

static void say_end(struct buf *out, enum failure_reason reason, const struct exit_status *status)
{
	buf_append_str(out, phrases[reason]);
	if (reason == FAILURE_SPAWN || reason == FAILURE_WARDEN || reason == FAILURE_PMI ||
	    failure_reason_is_host(reason))
		return;
	buf_append_char(out, ' ');
	exit_status_describe(status, out);
}

static void say_how(struct buf *out, const struct history_failure *failure)
{
	say_end(out, failure->reason, &failure->status);
}

static void say_duration(struct buf *out, uint64_t from_ns, uint64_t to_ns)
{
	char text[CLOCK_HUMAN_MAX];
	clock_human(to_ns > from_ns ? to_ns - from_ns : 0, text);
	buf_append_str(out, text);
}

/* One that was lost before it was started has no time. */
static void say_life(struct buf *out, const struct history_failure *failure)
{
	if (!failure->started_ns)
		return;
	buf_append_str(out, " after ");
	say_duration(out, failure->started_ns, failure->ended_ns);
}

static void say_time(struct buf *out, uint64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / NS_PER_S);
	struct tm tm;
	char text[32];
	localtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	buf_append_str(out, text);
}

/* As typed, without the interpreter in front of a script, and cut to a readable length. */
static void say_command(struct buf *out, const struct entry *entry)
{
	AUTO(buf_done) struct buf line = BUF_INIT, clean = BUF_INIT;
	size_t first = entry->python ? entry->fixed : 0;
	if (first && str_eq(entry->argv.items[first - 1], "-m"))
		buf_append_str(&line, "-m ");
	for (size_t i = first; i < entry->argv.count; i++)
		buf_printf(&line, "%s%.*s", i > first ? " " : "", COMMAND_MAX,
			   entry->argv.items[i]);
	text_clean(&clean, buf_data(&line), MIN(buf_len(&line), (size_t)COMMAND_MAX));
	for (char *p = (char *)buf_str(&clean); *p; p++)
		if (*p == '\n' || *p == '\t')
			*p = ' ';
	buf_printf(out, "%s%s\n", buf_str(&clean), buf_len(&line) > COMMAND_MAX ? "..." : "");
}

static void say_failed(struct printer *p)
{
	colour(p, BOLD_RED);
	buf_append_str(p->out, "muster: job failed");
	colour(p, PLAIN);
}

/* All hosts make it of the same cause, so that it is the same everywhere. rule: one-cause */
static void say_ruled(struct buf *out, const struct cause *ruled)
{
	buf_printf(out, ": rank %d of %u on %s ", ruled->rank, ruled->world_size, ruled->name);
	say_end(out, ruled->reason, &ruled->status);
	if (ruled->reason == FAILURE_SPAWN)
		buf_printf(out, ": %s",
			   *ruled->words ? ruled->words : strerror(ruled->spawn_errno));
	else if (ruled->lived_ns) {
		buf_append_str(out, " after ");
		say_duration(out, 0, ruled->lived_ns);
	}
	buf_append_char(out, '\n');
}

/* A host that the job needs was lost, and is not back. rule: lost-host */
static void say_host(struct printer *p, const struct report *report, const struct cause *ruled)
{
	const char *name = *ruled->name ? ruled->name : "a host";
	say_failed(p);
	buf_printf(p->out, ": %s was lost: %s\n", name,
		   *ruled->words ? ruled->words : "it did not come back");
	if (ruled->wall_ns) {
		label(p, "lost");
		say_time(p->out, ruled->wall_ns);
		buf_append_char(p->out, '\n');
	}
	label(p, "try");
	buf_printf(p->out,
		   "--lost-host-timeout=TIME waits longer for another start on that host; "
		   "--nnodes=%u:%u goes on without\n",
		   MAX(report->config->max_nodes, 2) - 1, report->config->max_nodes);
}

static void say_headline(struct printer *p, const struct report *report,
			 const struct history_attempt *last, const struct history_failure *cause)
{
	say_failed(p);
	if (last->ruled && last->ruled->world_size && report->config->max_nodes > 1 &&
	    !report->config->fleet_host) {
		say_ruled(p->out, last->ruled);
		return;
	}
	buf_printf(p->out, ": rank %u", cause->rank);
	if (last->world_size)
		buf_printf(p->out, " of %u", last->world_size);
	const char *here = report->config->fleet_host;
	if (cause->elsewhere || here)
		buf_printf(p->out, " on %s", cause->elsewhere ? cause->host : here);
	buf_append_char(p->out, ' ');
	say_how(p->out, cause);
	struct err why = ERR_INIT;
	if (cause->reason == FAILURE_SPAWN && cause->elsewhere) {
		buf_printf(p->out, ": %s\n", strerror(cause->spawn_errno));
		return;
	}
	if (cause->reason == FAILURE_SPAWN) {
		entry_explain_spawn(&report->config->entry, cause->spawn_errno, &why);
		buf_printf(p->out, ": %s\n", why.msg);
		return;
	}
	say_life(p->out, cause);
	buf_append_char(p->out, '\n');
}

/* The end of its output: from error.json if that is valid, else of its stderr. `ret_source` says
 * where it comes from, or why there is none. */
static void collect_words(const struct history_failure *cause, const struct error_file *file,
			  struct buf *ret_words, struct buf *ret_source)
{
	if (file->state == ERROR_FILE_GOOD) {
		const char *text = file->traceback ? file->traceback : file->message;
		text_clean(ret_words, text, strlen(text));
		buf_printf(ret_source, "%s", cause->error_file);
		return;
	}
	if (file->state == ERROR_FILE_BAD)
		buf_printf(ret_source, "%s %s; ", cause->error_file, file->problem);
	text_clean(ret_words, buf_data(&cause->tail), buf_len(&cause->tail));
	buf_append_str(ret_source, !cause->captured	     ? "its output is above"
				   : buf_len(ret_words) == 0 ? "it wrote nothing to stderr"
							     : "the end of its stderr");
}

static void say_words(struct printer *p, const struct history_failure *cause, struct buf *words)
{
	AUTO(error_file_done) struct error_file file = ERROR_FILE_INIT;
	AUTO(buf_done) struct buf source = BUF_INIT;
	if (cause->error_file)
		error_file_read(cause->error_file, &file);
	collect_words(cause, &file, words, &source);
	bool good = file.state == ERROR_FILE_GOOD;
	label(p, good ? "traceback" : "output");
	buf_printf(p->out, "%s\n", buf_str(&source));
	const char *text = buf_str(words);
	const char *shown = text_tail(text, good ? TRACEBACK_LINES : TAIL_LINES);
	if (shown > text)
		buf_append_str(p->out, INDENT "...\n");
	text_indent(p->out, INDENT, shown);
}

static void say_words_elsewhere(struct printer *p, const struct history_failure *cause,
				const struct cause *ruled)
{
	label(p, "output");
	buf_printf(p->out, "on %s, in %s\n", cause->host,
		   *ruled->report ? ruled->report : "the report of the muster there");
	if (*ruled->words && cause->reason != FAILURE_SPAWN)
		text_indent(p->out, INDENT, ruled->words);
}

static void say_collectives(struct printer *p, const struct history_attempt *attempt)
{
	if (!attempt->collectives)
		return;
	AUTO(buf_done) struct buf clean = BUF_INIT;
	text_clean(&clean, attempt->collectives, strlen(attempt->collectives));
	const char *rest = buf_str(&clean);
	size_t len;
	const struct history_failure *cause = history_cause(attempt);
	bool of_hang = str_starts(rest, "rank ") || str_starts(rest, HANG_EVIDENCE);
	label(p, cause && failure_reason_is_mpi(cause->reason) ? "MPI"
		 : of_hang				       ? "hang"
							       : "collective");
	for (const char *line; (line = str_split(&rest, '\n', &len));)
		if (len)
			buf_printf(p->out, "%s%.*s\n", line == buf_str(&clean) ? "" : INDENT,
				   (int)len, line);
}

/* The beginning only: the odd ones come first. All are in the log and in report.json. */
static void say_stacks(struct printer *p, const struct history_attempt *attempt)
{
	if (!attempt->stacks)
		return;
	AUTO(buf_done) struct buf clean = BUF_INIT;
	text_clean(&clean, attempt->stacks, strlen(attempt->stacks));
	char *text = (char *)buf_str(&clean), *end = text;
	for (int lines = 0; *end && lines < STACK_LINES; lines++)
		end += strcspn(end, "\n") + (end[strcspn(end, "\n")] != '\0');
	bool more = *end;
	*end = '\0';
	label(p, "stacks");
	buf_append_str(p->out, "before it was ended\n");
	text_indent(p->out, INDENT, text);
	if (more)
		buf_append_str(p->out, INDENT "...\n");
}

static bool same_kind(const struct history_failure *a, const struct history_failure *b)
{
	return a->stopped == b->stopped && a->reason == b->reason &&
	       a->status.kind == b->status.kind && a->status.value == b->status.value;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

/* "rank 3", "ranks 0, 2, 5", "ranks 0, 1, 2, ...". */
static void say_ranks(struct buf *out, uint32_t *ranks, size_t count)
{
	qsort(ranks, count, sizeof(*ranks), by_value);
	buf_append_str(out, count > 1 ? "ranks " : "rank ");
	for (size_t i = 0; i < MIN(count, RANKS_SHOWN); i++)
		buf_printf(out, "%s%u", i ? ", " : "", ranks[i]);
	if (count > RANKS_SHOWN)
		buf_append_str(out, ", ...");
}

/* One line for all failures that ended like the one at `first`. */
static void say_kind(struct buf *out, const struct history_attempt *attempt,
		     const struct history_failure *cause, size_t first)
{
	AUTO_FREE uint32_t *ranks = NEW_ARRAY(uint32_t, attempt->count);
	const struct history_failure *like = &attempt->failures[first];
	size_t count = 0;
	for (size_t i = first; i < attempt->count; i++) {
		const struct history_failure *failure = &attempt->failures[i];
		if (failure != cause && same_kind(failure, like))
			ranks[count++] = failure->rank;
	}
	buf_printf(out, "%zu ", count);
	say_how(out, like);
	buf_append_str(out, like->stopped ? " when the group was stopped (" : " (");
	say_ranks(out, ranks, count);
	buf_append_str(out, ")\n");
}

static bool seen_before(const struct history_attempt *attempt, const struct history_failure *cause,
			size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (&attempt->failures[i] != cause &&
		    same_kind(&attempt->failures[i], &attempt->failures[index]))
			return true;
	return false;
}

/* One that failed at the same time had no time left to end by itself, but perhaps to say why. */
static void say_left_error(struct buf *out, const struct history_failure *failure)
{
	AUTO(error_file_done) struct error_file file = ERROR_FILE_INIT;
	AUTO(buf_done) struct buf clean = BUF_INIT;
	if (failure->error_file)
		error_file_read(failure->error_file, &file);
	if (file.state != ERROR_FILE_GOOD)
		return;
	text_clean(&clean, file.message, strcspn(file.message, "\n"));
	buf_printf(out, INDENT "rank %u left an error: %s\n", failure->rank, buf_str(&clean));
}

static void say_others(struct printer *p, const struct history_attempt *attempt,
		       const struct history_failure *cause)
{
	bool any = false;
	for (size_t i = 0; i < attempt->count; i++) {
		if (&attempt->failures[i] == cause || seen_before(attempt, cause, i))
			continue;
		if (any)
			buf_append_str(p->out, INDENT);
		else
			label(p, "other failures");
		any = true;
		say_kind(p->out, attempt, cause, i);
	}
	size_t shown = 0;
	for (size_t i = 0; i < attempt->count && shown < RANKS_SHOWN; i++)
		if (&attempt->failures[i] != cause) {
			say_left_error(p->out, &attempt->failures[i]);
			shown++;
		}
}

/* How far the workers of this host got. */
static void say_steps(struct buf *out, const struct step_progress_span *steps)
{
	if (!steps->workers)
		return;
	buf_printf(out, ", step %" PRIu64, steps->most);
	if (steps->savers)
		buf_printf(out, ", saved up to %" PRIu64, steps->saved);
}

static void say_attempt(struct buf *out, const struct history_attempt *attempt, size_t number)
{
	const struct history_failure *cause = history_cause(attempt);
	buf_printf(out, "%zu: ", number);
	say_duration(out, attempt->started_ns, attempt->ended_ns);
	say_steps(out, &attempt->steps);
	if (attempt->end == ATTEMPT_REGROUP) {
		buf_append_str(out, ", nodes came or went");
	} else if (attempt->end == ATTEMPT_RESTARTED) {
		buf_append_str(out, ", restarted on request");
	} else if (cause) {
		buf_printf(out, ", rank %u ", cause->rank);
		say_how(out, cause);
	}
	buf_append_char(out, '\n');
}

static void say_last_step(struct buf *out, const struct step_progress_span *steps)
{
	buf_printf(out, "step %" PRIu64, steps->most);
	if (steps->least < steps->most)
		buf_printf(out, ", the last one at %" PRIu64, steps->least);
	if (steps->savers)
		buf_printf(out, "; saved up to step %" PRIu64, steps->saved);
	buf_append_char(out, '\n');
}

static void say_attempts(struct printer *p, const struct report *report,
			 const struct history_failure *cause)
{
	const struct history *history = report->history;
	if (history->count > 1) {
		size_t first =
			history->count > ATTEMPTS_SHOWN ? history->count - ATTEMPTS_SHOWN : 0;
		label(p, "attempts");
		for (size_t i = first; i < history->count; i++) {
			if (i > first)
				buf_append_str(p->out, INDENT);
			size_t hidden = i < HISTORY_FIRST_MAX ? 0 : history->forgotten.count;
			say_attempt(p->out, &history->attempts[i], i + 1 + hidden);
		}
	}
	if (report->outcome && report->outcome->stalled) {
		label(p, "restart");
		buf_printf(p->out, "none: %u attempts in a row made no new step\n",
			   report->config->max_restarts + 1);
	}
	if (report->config->max_restarts &&
	    exit_set_contains(&report->config->no_restart_on, &cause->status)) {
		label(p, "restart");
		buf_append_str(p->out, "none: --no-restart-on lists ");
		exit_status_describe(&cause->status, p->out);
		buf_append_char(p->out, '\n');
	}
}

static void say_stopped(struct printer *p, const struct report *report)
{
	const struct history *history = report->history;
	const struct history_attempt *last = history_last(history);
	size_t killed = 0;
	for (size_t i = 0; last && i < last->count; i++)
		killed += last->failures[i].stopped &&
			  last->failures[i].status.kind == EXIT_SIGNAL &&
			  last->failures[i].status.value == SIGKILL;
	const char *name = str_signal_name(history->stop_signal);
	buf_printf(p->out, "muster: stopped by %s after ", name ? name : "a signal");
	say_duration(p->out, history->started_ns, history->ended_ns);
	if (killed)
		buf_printf(p->out, "; %zu worker%s had to be killed", killed,
			   killed > 1 ? "s" : "");
	buf_append_char(p->out, '\n');
}

/* One line: after which step the workers left, and who of them did not tell that it saved that. */
static void say_left(struct buf *out, const struct history_attempt *last)
{
	size_t count = last ? last->left_count : 0, savers = 0, unsaved = 0;
	for (size_t i = 0; i < count; i++) {
		savers += last->left[i].has_saved;
		unsaved += !last->left[i].has_saved || last->left[i].saved < last->left[i].step;
	}
	buf_append_str(out, "muster: the workers left together, as asked");
	if (count)
		buf_printf(out, ", after step %" PRIu64, last->left[0].step);
	if (savers && !unsaved)
		buf_printf(out, "; %zu of %zu here have saved it", savers, count);
	for (size_t i = 0, n = 0; savers && unsaved && i < count; i++)
		if (!last->left[i].has_saved || last->left[i].saved < last->left[i].step)
			buf_printf(out, "%s%u", n++ ? ", " : "; not saved by rank ",
				   last->left[i].rank);
	buf_append_str(out, ". Start the job again to go on\n");
}

void report_restart(const struct history_attempt *attempt, uint32_t restart, uint32_t max_restarts,
		    struct buf *out)
{
	const struct history_failure *cause = history_cause(attempt);
	if (attempt->end == ATTEMPT_RESTARTED) {
		buf_append_str(out, "the group starts again, as requested");
		return;
	}
	if (attempt->end == ATTEMPT_REGROUP || !cause) {
		buf_append_str(out, "nodes came or went: the group starts again");
		return;
	}
	buf_printf(out, "rank %u ", cause->rank);
	if (cause->elsewhere)
		buf_printf(out, "on %s ", cause->host);
	say_how(out, cause);
	if (cause->reason != FAILURE_SPAWN)
		say_life(out, cause);
	buf_printf(out, ": restart %u", restart);
	if (max_restarts)
		buf_printf(out, " of %u", max_restarts);
}

/* Nodes that were not fit, and how to be rid of them. */
static void say_unfit(struct printer *p, const struct node_table *nodes)
{
	AUTO(buf_done) struct buf names = BUF_INIT;
	if (node_table_unfit(nodes, &names) == 0)
		return;
	for (size_t i = 0; i < nodes->count; i++)
		if (nodes->rows[i].unfit) {
			label(p, "not fit");
			buf_printf(p->out, "%s: %s\n", nodes->rows[i].name, nodes->rows[i].why);
		}
	label(p, "without them");
	buf_printf(p->out, "sbatch --exclude=%s, or muster run --exclude-hosts=%s\n",
		   buf_str(&names), buf_str(&names));
}

void report_unfit(const struct report *report, struct buf *out)
{
	struct printer p = { out, false, buf_len(out) };
	AUTO(buf_done) struct buf names = BUF_INIT;
	if (node_table_unfit(&report->history->nodes, &names) == 0)
		return;
	buf_append_str(out, "muster: the job is done, but nodes were not fit\n");
	say_unfit(&p, &report->history->nodes);
	check_rest(&p);
}

static void say_report(struct printer *p, const struct report *report)
{
	if (!report->log_dir)
		return;
	label(p, "report");
	buf_printf(p->out, "%s/report.json\n", report->log_dir);
}

static void say_all(struct printer *p, const struct report *report)
{
	struct buf *out = p->out;
	const struct history *history = report->history;
	const struct history_attempt *last = history_last(history);
	const struct history_failure *cause = last ? history_cause(last) : NULL;
	if (report->outcome && *report->outcome->text) {
		buf_printf(out, "muster: %s\n", report->outcome->text);
		return;
	}
	if (report->outcome && report->outcome->left) {
		say_left(out, last);
		return;
	}
	if (history->stop_signal) {
		say_stopped(p, report);
		return;
	}
	if (!cause) {
		buf_append_str(out, "muster: job failed, and no worker is to blame\n");
		return;
	}
	if (failure_reason_is_host(cause->reason)) {
		say_host(p, report, last->ruled);
		say_attempts(p, report, cause);
		say_report(p, report);
		return;
	}
	say_headline(p, report, last, cause);
	if (cause->reason == FAILURE_SPAWN && history->count == 1)
		return;
	say_collectives(p, last);
	label(p, "first cause");
	buf_printf(out, "rank %u (local rank %u) on %s, pid %d, ", cause->rank, cause->local_rank,
		   cause->host, (int)cause->pid);
	bool told = last->ruled && last->ruled->wall_ns;
	say_time(out, told ? last->ruled->wall_ns : cause->ended_ns + history->wall_offset_ns);
	buf_append_char(out, '\n');
	if (last->steps.workers) {
		label(p, "progress");
		say_last_step(out, &last->steps);
	}
	label(p, "command");
	say_command(out, &report->config->entry);
	AUTO(buf_done) struct buf words = BUF_INIT;
	if (cause->elsewhere) {
		say_words_elsewhere(p, cause, last->ruled);
		buf_append_str(&words, last->ruled->words);
	} else {
		say_words(p, cause, &words);
	}
	say_stacks(p, last);
	say_others(p, last, cause);
	say_attempts(p, report, cause);
	if (report_has_steps(report)) {
		label(p, "goodput");
		report_goodput_people(report, out);
	}
	say_unfit(p, &history->nodes);
	say_report(p, report);
	char room[512];
	const char *hint = hint_for(cause, report->config, buf_str(&words), room, sizeof(room));
	if (hint) {
		label(p, "try");
		buf_printf(out, "%s\n", hint);
	}
}

void report_people(const struct report *report, bool colour, struct buf *out)
{
	struct printer p = { out, colour, buf_len(out) };
	say_all(&p, report);
	check_rest(&p);
}
