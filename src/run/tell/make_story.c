#include "run/tell/make_story.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "run/tell/error_file.h"
#include "run/tell/text.h"

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

static void say_end(struct buf *out, enum failure_reason reason, const struct exit_status *status)
{
	buf_append_str(out, phrases[reason]);
	if (reason == FAILURE_SPAWN || reason == FAILURE_WARDEN || reason == FAILURE_PMI ||
	    failure_reason_is_host(reason))
		return;
	buf_append_char(out, ' ');
	exit_status_describe(status, out);
}

void story_say_how(struct buf *out, const struct history_failure *failure)
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
void story_say_life(struct buf *out, const struct history_failure *failure)
{
	if (!failure->started_ns)
		return;
	buf_append_str(out, " after ");
	say_duration(out, failure->started_ns, failure->ended_ns);
}

/* ---- the headline ---- */

/* The worker that failed first may only have waited for another, until its time was over. */
static void say_culprit(struct buf *out, const struct cause *ruled)
{
	buf_append_str(out, "job failed: ");
	if (ruled && ruled->blame.named && (int64_t)ruled->blame.rank != ruled->rank)
		buf_printf(out, "rank %u held the others up: ", ruled->blame.rank);
}

/* All hosts make it of the same cause, so that it is the same everywhere. rule: one-cause */
static void say_ruled(struct buf *out, const struct cause *ruled)
{
	say_culprit(out, ruled);
	buf_printf(out, "rank %d of %u on %s ", ruled->rank, ruled->world_size, ruled->name);
	say_end(out, ruled->reason, &ruled->status);
	if (ruled->reason == FAILURE_SPAWN) {
		buf_printf(out, ": %s",
			   *ruled->words ? ruled->words : strerror(ruled->spawn_errno));
	} else if (ruled->lived_ns) {
		buf_append_str(out, " after ");
		say_duration(out, 0, ruled->lived_ns);
	}
}

/* A host that the job needs was lost, and is not back. rule: lost-host */
static void say_host(struct buf *out, const struct cause *ruled)
{
	buf_printf(out, "job failed: %s was lost: %s",
		   ruled && *ruled->name ? ruled->name : "a host",
		   ruled && *ruled->words ? ruled->words : "it did not come back");
}

static void say_failed(struct buf *out, const struct report *report,
		       const struct history_attempt *last, const struct history_failure *cause)
{
	const char *here = report->config->fleet_host;
	if (failure_reason_is_host(cause->reason)) {
		say_host(out, last->ruled);
		return;
	}
	if (last->ruled && last->ruled->world_size && report->config->max_nodes > 1 && !here) {
		say_ruled(out, last->ruled);
		return;
	}
	say_culprit(out, last->ruled);
	buf_printf(out, "rank %u", cause->rank);
	if (last->world_size)
		buf_printf(out, " of %u", last->world_size);
	if (cause->elsewhere || here)
		buf_printf(out, " on %s", cause->elsewhere ? cause->host : here);
	buf_append_char(out, ' ');
	story_say_how(out, cause);
	struct err why = ERR_INIT;
	if (cause->reason == FAILURE_SPAWN && cause->elsewhere) {
		buf_printf(out, ": %s", strerror(cause->spawn_errno));
	} else if (cause->reason == FAILURE_SPAWN) {
		entry_explain_spawn(&report->config->entry, cause->spawn_errno, &why);
		buf_printf(out, ": %s", why.msg);
	} else {
		story_say_life(out, cause);
	}
}

static void say_stopped(struct buf *out, const struct history *history)
{
	const struct history_attempt *last = history_last(history);
	size_t killed = 0;
	for (size_t i = 0; last && i < last->count; i++)
		killed += last->failures[i].stopped &&
			  last->failures[i].status.kind == EXIT_SIGNAL &&
			  last->failures[i].status.value == SIGKILL;
	const char *name = str_signal_name(history->stop_signal);
	buf_printf(out, "stopped by %s after ", name ? name : "a signal");
	say_duration(out, history->started_ns,
		     history->ended_ns ? history->ended_ns : clock_now_ns());
	if (killed)
		buf_printf(out, "; %zu worker%s had to be killed", killed, killed > 1 ? "s" : "");
}

/* After which step the workers left, and who of them did not tell that it saved that. */
static void say_left(struct buf *out, const struct history_attempt *last)
{
	size_t count = last ? last->left_count : 0, savers = 0, unsaved = 0;
	for (size_t i = 0; i < count; i++) {
		savers += last->left[i].has_saved;
		unsaved += !last->left[i].has_saved || last->left[i].saved < last->left[i].step;
	}
	buf_append_str(out, "the workers left together, as asked");
	if (count)
		buf_printf(out, ", after step %" PRIu64, last->left[0].step);
	if (savers && !unsaved)
		buf_printf(out, "; %zu of %zu here have saved it", savers, count);
	for (size_t i = 0, n = 0; savers && unsaved && i < count; i++)
		if (!last->left[i].has_saved || last->left[i].saved < last->left[i].step)
			buf_printf(out, "%s%u", n++ ? ", " : "; not saved by rank ",
				   last->left[i].rank);
	buf_append_str(out, ". Start the job again to go on");
}

/* True: the first cause of the last attempt is what the job ended with. */
static bool say_headline(struct buf *out, const struct report *report,
			 const struct history_attempt *last, const struct history_failure *cause)
{
	const struct outcome *outcome = report->outcome;
	if (outcome && *outcome->text)
		buf_append_str(out, outcome->text);
	else if (outcome && outcome->left)
		say_left(out, last);
	else if (report->history->stop_signal)
		say_stopped(out, report->history);
	else if (last && last->end == ATTEMPT_DONE)
		buf_append_str(out, "job done");
	else if (!cause)
		buf_append_str(out, "job failed, and no worker is to blame");
	else {
		say_failed(out, report, last, cause);
		return true;
	}
	return false;
}

/* ---- the first cause ---- */

/* The end of its output: from error.json if that is valid, else of its stderr. */
static void take_words(const struct history_failure *cause, const struct cause *ruled,
		       const struct error_file *file, struct story *story)
{
	AUTO(buf_done) struct buf words = BUF_INIT, where = BUF_INIT;
	bool good = file->state == ERROR_FILE_GOOD;
	if (cause->elsewhere) {
		story->source = STORY_WORDS_ELSEWHERE;
		buf_printf(&where, "on %s, in %s", cause->host,
			   ruled && *ruled->report ? ruled->report
						   : "the report of the muster there");
		if (ruled && cause->reason != FAILURE_SPAWN)
			buf_append_str(&words, ruled->words);
	} else if (good) {
		const char *text = file->traceback ? file->traceback : file->message;
		story->source = STORY_WORDS_TRACEBACK;
		text_clean(&words, text, strlen(text));
		buf_append_str(&where, cause->error_file);
	} else {
		story->source = cause->captured ? STORY_WORDS_STDERR : STORY_WORDS_NONE;
		if (file->state == ERROR_FILE_BAD)
			buf_printf(&where, "%s %s; ", cause->error_file, file->problem);
		text_clean(&words, buf_data(&cause->tail), buf_len(&cause->tail));
		buf_append_str(&where, !cause->captured	      ? "its output is above"
				       : buf_len(&words) == 0 ? "it wrote nothing to stderr"
							      : "the end of its stderr");
	}
	story->words = mem_strdup(buf_str(&words));
	story->where = mem_strdup(buf_str(&where));
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

static bool seen_before(const struct history_attempt *attempt, const struct history_failure *cause,
			size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (&attempt->failures[i] != cause &&
		    same_kind(&attempt->failures[i], &attempt->failures[index]))
			return true;
	return false;
}

/* All failures that ended like the one at `first`. */
static void take_kind(const struct history_attempt *attempt, const struct history_failure *cause,
		      size_t first, struct story_others *ret)
{
	const struct history_failure *like = &attempt->failures[first];
	AUTO(buf_done) struct buf how = BUF_INIT;
	*ret = (struct story_others){ .stopped = like->stopped,
				      .ranks = NEW_ARRAY(uint32_t, attempt->count) };
	for (size_t i = first; i < attempt->count; i++)
		if (&attempt->failures[i] != cause && same_kind(&attempt->failures[i], like))
			ret->ranks[ret->count++] = attempt->failures[i].rank;
	qsort(ret->ranks, ret->count, sizeof(*ret->ranks), by_value);
	story_say_how(&how, like);
	if (like->stopped)
		buf_append_str(&how, " when the group was stopped");
	ret->how = buf_take_str(&how);
}

static void take_others(const struct history_attempt *attempt, const struct history_failure *cause,
			struct story *story)
{
	story->others = NEW_ARRAY(struct story_others, MAX(attempt->count, (size_t)1));
	for (size_t i = 0; i < attempt->count; i++)
		if (&attempt->failures[i] != cause && !seen_before(attempt, cause, i))
			take_kind(attempt, cause, i, &story->others[story->other_count++]);
}

/* As argparse, click, getopt and others say it. */
static bool refuses_option(const char *text)
{
	static const char *const words[] = { "unrecognized argument", "unrecognized option",
					     "unrecognised",	      "no such option",
					     "No such option",	      "unknown option",
					     "invalid option" };
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strstr(text, words[i]))
			return true;
	return false;
}

/* What to try where the options of this job say more than the symptom; NULL: they do not. */
static char *hint_of_options(const struct run_config *config, const char *words)
{
	if (config->misplaced && refuses_option(words))
		return mem_printf("%.*s is also an option of muster run: put it before %.100s",
				  (int)strcspn(config->misplaced, "="), config->misplaced,
				  config->entry.title);
	if (!config->master_port &&
	    (strstr(words, "Address already in use") || strstr(words, "EADDRINUSE")))
		return mem_strdup("another program has a port that the worker itself asks for");
	return NULL;
}

static void judge(const struct report *report, const struct history_attempt *attempt,
		  const struct history_failure *cause, struct story *story)
{
	const struct evidence evidence = {
		.reason = cause->reason,
		.status = cause->status,
		.pid = cause->pid,
		.oom_kill = attempt->oom_kill && !cause->elsewhere,
		.kernel = cause->elsewhere ? NULL : attempt->kernel,
		.words = story->words,
	};
	const struct entry *entry = &report->config->entry;
	judge_failure(&evidence, &story->judgement);
	const char *hint = story->judgement.hint;
	if (cause->reason == FAILURE_EXIT &&
	    (story->hint = hint_of_options(report->config, story->words)))
		return;
	if (failure_reason_is_host(cause->reason)) {
		uint32_t nodes = MAX(report->config->max_nodes, 2u);
		story->hint =
			mem_printf("--lost-host-timeout=TIME waits longer for another start on "
				   "that host; --nnodes=%u:%u goes on without",
				   nodes - 1, report->config->max_nodes);
		return;
	}
	bool watched = cause->reason == FAILURE_TIMER || cause->reason == FAILURE_HANG;
	if (watched && cause->elsewhere)
		hint = "its stack is in the report of its host";
	if (hint && strstr(hint, "%s"))
		hint = entry->python ? hint : NULL;
	else if (!hint && !*story->words && entry->python && cause->reason == FAILURE_EXIT)
		hint = "decorate the main function with "
		       "torch.distributed.elastic.multiprocessing.errors.record to see "
		       "its traceback here, or use --capture=always";
	const char *place = hint ? strstr(hint, "%s") : NULL;
	story->hint = place  ? mem_printf("%.*s%s%s", (int)(place - hint), hint, entry->path,
					  place + strlen("%s"))
		      : hint ? mem_strdup(hint)
			     : NULL;
}

static void take_cause(const struct report *report, const struct history_attempt *attempt,
		       const struct history_failure *cause, bool read_file, struct story *story)
{
	AUTO(error_file_done) struct error_file file = ERROR_FILE_INIT;
	const struct cause *ruled = attempt->ruled;
	if (cause->error_file && read_file)
		error_file_read(cause->error_file, &file);
	story->failed = true;
	story->rank = cause->rank;
	story->local_rank = cause->local_rank;
	story->world_size = attempt->world_size;
	story->host = mem_strdup(cause->host);
	story->pid = cause->pid;
	story->reason = cause->reason;
	story->status = cause->status;
	story->when_ns = ruled && ruled->wall_ns ? ruled->wall_ns
			 : cause->ended_ns	 ? cause->ended_ns + report->history->wall_offset_ns
						 : 0;
	story->lived_ns = ruled && ruled->world_size ? ruled->lived_ns
			  : cause->started_ns	     ? cause->ended_ns - cause->started_ns
						     : 0;
	story->steps = attempt->steps;
	take_words(cause, ruled, &file, story);
	take_others(attempt, cause, story);
	judge(report, attempt, cause, story);
}

void story_of(const struct report *report, struct story *ret)
{
	const struct history_attempt *last = history_last(report->history);
	const struct history_failure *cause = last ? history_cause(last) : NULL;
	AUTO(buf_done) struct buf headline = BUF_INIT;
	*ret = STORY_INIT;
	if (say_headline(&headline, report, last, cause))
		take_cause(report, last, cause, true, ret);
	ret->headline = buf_take_str(&headline);
}

void story_of_attempt(const struct report *report, const struct history_attempt *attempt,
		      struct story *ret)
{
	const struct history_failure *cause = history_cause(attempt);
	AUTO(buf_done) struct buf headline = BUF_INIT;
	*ret = STORY_INIT;
	if (!cause)
		return;
	buf_printf(&headline, "rank %u on %s ", cause->rank, cause->host);
	story_say_how(&headline, cause);
	story_say_life(&headline, cause);
	take_cause(report, attempt, cause, false, ret);
	ret->headline = buf_take_str(&headline);
}
