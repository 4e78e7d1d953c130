#include "nodes/notes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"

static void describe_end(const struct cause *cause, struct buf *out)
{
	switch (cause->reason) {
	case FAILURE_EXIT:
		exit_status_describe(&cause->status, out);
		return;
	case FAILURE_SPAWN:
		buf_printf(out, "could not be started: %s", strerror(cause->spawn_errno));
		return;
	case FAILURE_WARDEN:
		buf_append_str(out, "nobody saw how it ended");
		return;
	case FAILURE_TIMER:
		buf_append_str(out, "its timer expired");
		return;
	case FAILURE_HANG:
		buf_append_str(out, "no sign of life");
		return;
	case FAILURE_ABORT:
		buf_append_str(out, "MPI_Abort, ");
		exit_status_describe(&cause->status, out);
		return;
	case FAILURE_UNFINALIZED:
		buf_append_str(out, "no MPI_Finalize, ");
		exit_status_describe(&cause->status, out);
		return;
	case FAILURE_PMI:
		buf_append_str(out, "it broke the protocol between MPI and its launcher");
		return;
	case FAILURE_LOST:
	case FAILURE_LEFT:
		buf_append_str(out, cause->words);
		return;
	case FAILURE_REASON_COUNT:
		return;
	}
}

/* "rank 11 (local rank 3 on node2): exit code 1" */
static void describe_cause(const struct cause *cause, struct buf *out)
{
	if (failure_reason_is_host(cause->reason)) {
		buf_printf(out, "%s: %s", *cause->name ? cause->name : "a node", cause->words);
		return;
	}
	buf_printf(out, "rank %d (local rank %d on %s): ", cause->rank, cause->local_rank,
		   cause->name);
	describe_end(cause, out);
}

static const char *leave_text(enum leave_why why)
{
	static const char *const texts[] = {
		[LEAVE_SIGNAL] = "it was stopped by its user",
		[LEAVE_TIMEOUT] = "it has waited long enough",
		[LEAVE_CLOSED] = "it knows that the job is over",
		[LEAVE_STUCK] = "it has a worker that cannot be killed",
		[LEAVE_LEASE] = "it got no answers and looks elsewhere",
		[LEAVE_SUPERSEDED] = "it knows a newer coordinator",
	};
	static_assert(ARRAY_LEN(texts) == LEAVE_WHY_COUNT, "every reason needs a text");
	return texts[why];
}

static void describe_stop(const struct note *note, struct buf *out)
{
	buf_printf(out, "round %" PRIu64 ": ", note->round);
	if (note->has_cause)
		describe_cause(&note->cause, out);
	else
		buf_append_str(out, "its members change");
}

static void describe_close(const struct note *note, struct buf *out)
{
	buf_append_str(out, note->ruling == RULING_DONE ? "all workers are done" : "failed");
	if (!note->has_cause)
		return;
	buf_append_str(out, ": ");
	describe_cause(&note->cause, out);
}

/* "the others waited for rank 3 at 50 of 64 looks, 6.1 ms a step"; "rank 3 came last to 50 of 64
 * collectives, 6.1 ms after the others" */
static void describe_late(const struct straggler_news *late, struct buf *out)
{
	buf_printf(out,
		   late->group ? "rank %u came last to %u of %u collectives"
			       : "the others waited for rank %u at %u of %u looks",
		   late->rank, late->times, late->of);
	if (late->times)
		buf_printf(out, late->group ? ", %.1f ms after the others" : ", %.1f ms a step",
			   (double)late->lag_ns / 1e6);
}

static void describe_wait(const struct note *note, struct buf *out)
{
	char left[CLOCK_HUMAN_MAX];
	clock_human(note->left_ns, left);
	buf_printf(out, "the job needs %u more node%s and waits for %s (--lost-host-timeout)",
		   note->missing, note->missing == 1 ? "" : "s", left);
	if (!note->has_cause)
		return;
	buf_append_str(out, "; lost: ");
	describe_cause(&note->cause, out);
}

static void describe(const struct note *note, struct buf *out)
{
	switch (note->kind) {
	case NOTE_LOST:
		buf_append_str(out, note->why ? note->why : "it has been silent for too long");
		return;
	case NOTE_LEFT:
		buf_append_str(out, leave_text(note->leave));
		return;
	case NOTE_REFUSED:
	case NOTE_UNFIT:
	case NOTE_DIFFERENT:
	case NOTE_CLOCK:
	case NOTE_LEASE:
		buf_append_str(out, note->refused);
		return;
	case NOTE_LATE:
	case NOTE_IN_STEP:
		describe_late(&note->late, out);
		return;
	case NOTE_FORMED:
		buf_printf(out, "round %" PRIu64 ": %u nodes, %u workers, %u of %u restarts used",
			   note->round, note->nodes, note->world_size, note->restarts,
			   note->max_restarts);
		return;
	case NOTE_STOPPED:
		describe_stop(note, out);
		return;
	case NOTE_WAITS:
		describe_wait(note, out);
		return;
	case NOTE_CLOSED:
		describe_close(note, out);
		return;
	case NOTE_STAYS:
		buf_printf(out,
			   "this node coordinates the job, so it stays until the workers of %u "
			   "other node%s have ended; a second signal ends it at once",
			   note->nodes, note->nodes == 1 ? "" : "s");
		return;
	case NOTE_COORDINATES:
	case NOTE_JOINED:
	case NOTE_EXCLUDED:
	case NOTE_FIT:
	case NOTE_NEEDED:
	case NOTE_SUPERSEDED:
	case NOTE_KIND_COUNT:
		return;
	}
}

void notes_describe(const struct note *note, char text[NOTES_TEXT_MAX])
{
	AUTO(buf_done) struct buf out = BUF_INIT;
	describe(note, &out);
	snprintf(text, NOTES_TEXT_MAX, "%s", buf_str(&out));
	str_make_printable(text);
}
