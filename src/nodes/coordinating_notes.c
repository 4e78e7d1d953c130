#include "nodes/coordinating_notes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

struct notes_before notes_look(const struct coordinator *machine)
{
	return (struct notes_before){ machine->state, machine->roster.heard.ballot };
}

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
	case FAILURE_REASON_COUNT:
		return;
	}
}

void notes_cause(const struct cause *cause, char *text, size_t size)
{
	AUTO(buf_done) struct buf end = BUF_INIT;
	describe_end(cause, &end);
	snprintf(text, size, "rank %d (local rank %d on %s): %s", cause->rank, cause->local_rank,
		 cause->name, buf_str(&end));
	str_make_printable(text);
}

static enum coordinating_note note_formed(const struct coordinator *machine, char *text)
{
	snprintf(text, NOTES_TEXT_MAX,
		 "round %" PRIu64 ": %u nodes, %u workers, %u of %u restarts used",
		 machine->roster.heard.ballot.round, machine->roster.heard.nodes,
		 machine->world_size, machine->restarts, machine->max_restarts);
	return TOLD_FORMED;
}

static enum coordinating_note note_stopped(const struct coordinator *machine, char *text)
{
	char cause[NOTES_TEXT_MAX / 2] = "its members change";
	if (machine->has_cause)
		notes_cause(&machine->cause, cause, sizeof(cause));
	snprintf(text, NOTES_TEXT_MAX, "round %" PRIu64 ": %s", machine->roster.heard.ballot.round,
		 cause);
	return TOLD_STOPPED;
}

static enum coordinating_note note_closed(const struct coordinator *machine, char *text)
{
	char cause[NOTES_TEXT_MAX / 2] = "";
	if (machine->ruling != RULING_DONE && machine->has_cause)
		notes_cause(&machine->cause, cause, sizeof(cause));
	snprintf(text, NOTES_TEXT_MAX, "%s%s%s",
		 machine->ruling == RULING_DONE ? "all workers are done" : "failed",
		 *cause ? ": " : "", cause);
	return TOLD_CLOSED;
}

enum coordinating_note notes_compare(const struct notes_before *before,
				     const struct coordinator *machine, char text[NOTES_TEXT_MAX])
{
	text[0] = '\0';
	if (machine->own && !ballot_eq(before->ballot, machine->roster.heard.ballot))
		return note_formed(machine, text);
	if (before->state == machine->state)
		return TOLD_COUNT;
	if (machine->state == COORDINATOR_DEPOSED)
		return TOLD_SUPERSEDED;
	if (machine->state == COORDINATOR_CLOSED)
		return note_closed(machine, text);
	if (before->state == COORDINATOR_RUNNING && machine->state != COORDINATOR_CLOSING)
		return note_stopped(machine, text);
	return TOLD_COUNT;
}

const char *notes_leave(enum leave_why why)
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
