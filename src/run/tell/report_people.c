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
#include "run/tell/report.h"
#include "run/tell/make_story.h"
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

static void say_duration(struct buf *out, uint64_t from_ns, uint64_t to_ns)
{
	char text[CLOCK_HUMAN_MAX];
	clock_human(to_ns > from_ns ? to_ns - from_ns : 0, text);
	buf_append_str(out, text);
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

/* "rank 3", "ranks 0, 2, 5", "ranks 0, 1, 2, ...". */
static void say_ranks(struct buf *out, const struct story_others *others)
{
	buf_append_str(out, others->count > 1 ? "ranks " : "rank ");
	for (size_t i = 0; i < MIN(others->count, RANKS_SHOWN); i++)
		buf_printf(out, "%s%u", i ? ", " : "", others->ranks[i]);
	if (others->count > RANKS_SHOWN)
		buf_append_str(out, ", ...");
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

static void say_others(struct printer *p, const struct story *story,
		       const struct history_attempt *attempt)
{
	for (size_t i = 0; i < story->other_count; i++) {
		const struct story_others *others = &story->others[i];
		if (i == 0)
			label(p, "other failures");
		else
			buf_append_str(p->out, INDENT);
		buf_printf(p->out, "%zu %s (", others->count, others->how);
		say_ranks(p->out, others);
		buf_append_str(p->out, ")\n");
	}
	const struct history_failure *cause = history_cause(attempt);
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
		story_say_how(out, cause);
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
	story_say_how(out, cause);
	if (cause->reason != FAILURE_SPAWN)
		story_say_life(out, cause);
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

static void say_headline(struct printer *p, const char *headline)
{
	static const char failed[] = "job failed";
	bool is_failure = str_starts(headline, failed);
	if (is_failure)
		colour(p, BOLD_RED);
	buf_append_str(p->out, "muster: ");
	if (is_failure) {
		buf_append_str(p->out, failed);
		colour(p, PLAIN);
	}
	buf_printf(p->out, "%s\n", headline + (is_failure ? strlen(failed) : 0));
}

static void say_words(struct printer *p, const struct story *story)
{
	bool traceback = story->source == STORY_WORDS_TRACEBACK;
	label(p, traceback ? "traceback" : "output");
	buf_printf(p->out, "%s\n", story->where);
	const char *shown = text_tail(story->words, traceback ? TRACEBACK_LINES : TAIL_LINES);
	if (shown > story->words)
		buf_append_str(p->out, INDENT "...\n");
	text_indent(p->out, INDENT, shown);
}

/* Guesses are for programs; people have them as what to try. */
static void say_verdict(struct printer *p, const struct judgement *judgement)
{
	if (judgement->class == CLASS_UNKNOWN || judgement->certainty == CERTAINTY_GUESS)
		return;
	label(p, "verdict");
	buf_printf(p->out, "%s%s, from its %s%s%s",
		   judgement->certainty == CERTAINTY_KNOWN ? "" : "probably ",
		   failure_class_name(judgement->class), judgement->from,
		   judgement->symptom ? ": " : "", judgement->symptom ? judgement->symptom : "");
	if (judgement->advice != ADVICE_NONE)
		buf_printf(p->out, "; %s", failure_advice_name(judgement->advice));
	buf_append_char(p->out, '\n');
}

static void say_first_cause(struct printer *p, const struct story *story)
{
	label(p, "first cause");
	buf_printf(p->out, "rank %u (local rank %u) on %s, pid %d, ", story->rank,
		   story->local_rank, story->host, (int)story->pid);
	say_time(p->out, story->when_ns);
	buf_append_char(p->out, '\n');
}

static void say_report(struct printer *p, const struct report *report)
{
	if (!report->log_dir)
		return;
	label(p, "report");
	buf_printf(p->out, "%s/report.json\n", report->log_dir);
}

/* A host that the job needs was lost, and is not back. rule: lost-host */
static void say_host(struct printer *p, const struct story *story)
{
	if (story->when_ns) {
		label(p, "lost");
		say_time(p->out, story->when_ns);
		buf_append_char(p->out, '\n');
	}
	label(p, "try");
	buf_printf(p->out, "%s\n", story->hint);
}

static void say_all(struct printer *p, const struct report *report, const struct story *story)
{
	struct buf *out = p->out;
	const struct history *history = report->history;
	const struct history_attempt *last = history_last(history);
	say_headline(p, story->headline);
	if (!story->failed || (story->reason == FAILURE_SPAWN && history->count == 1))
		return;
	if (failure_reason_is_host(story->reason)) {
		say_host(p, story);
		say_attempts(p, report, history_cause(last));
		say_report(p, report);
		return;
	}
	say_collectives(p, last);
	say_first_cause(p, story);
	if (story->steps.workers) {
		label(p, "progress");
		say_last_step(out, &story->steps);
	}
	label(p, "command");
	say_command(out, &report->config->entry);
	say_words(p, story);
	say_stacks(p, last);
	say_others(p, story, last);
	say_attempts(p, report, history_cause(last));
	if (report_has_steps(report)) {
		label(p, "goodput");
		report_goodput_people(report, out);
	}
	say_unfit(p, &history->nodes);
	say_verdict(p, &story->judgement);
	say_report(p, report);
	if (story->hint) {
		label(p, "try");
		buf_printf(out, "%s\n", story->hint);
	}
}

void report_people(const struct report *report, bool colour, struct buf *out)
{
	struct printer p = { out, colour, buf_len(out) };
	AUTO(story_done) struct story story;
	story_of(report, &story);
	say_all(&p, report, &story);
	check_rest(&p);
}
