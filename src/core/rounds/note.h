/* Notes for users about the nodes that a coordinator leads. The machine makes a note where
 * something happens, with all the data for a line about it; the shell chooses the words. */
#ifndef CORE_ROUNDS_NOTE_H
#define CORE_ROUNDS_NOTE_H

#include "core/rounds/msg.h"

enum note_kind {
	NOTE_COORDINATES, /* this process has begun to coordinate the job */
	NOTE_JOINED,	  /* name: an agent has joined on a new link */
	NOTE_LOST,	  /* name, why: its link ended, or (NULL) it was silent for too long */
	NOTE_LEFT,	  /* name, leave: it sent LEAVE, and why */
	NOTE_REFUSED,	  /* name, refused: its JOIN was refused */
	NOTE_FORMED,	  /* round, nodes, world_size, restarts, max_restarts */
	NOTE_STOPPED,	  /* round, has_cause, cause: without a cause its members change */
	NOTE_EXCLUDED,	  /* name: one of its workers holds the others up. rule: culprit */
	NOTE_UNFIT,	  /* name, refused: why it is of last resort from now on. rule: fitness */
	NOTE_FIT,	  /* name: it no longer is */
	NOTE_NEEDED,	  /* name: it is in the round although it is not fit */
	NOTE_DIFFERENT,	  /* refused: a fact that no majority of the nodes agrees on */
	NOTE_CLOCK,	  /* name, refused: its wall clock is wrong, by how much. rule: clocks */
	NOTE_LEASE,	  /* refused: the arbiter's lease holds a round back. rule: fence */
	NOTE_LATE,	  /* name, late: one of its workers holds the others up */
	NOTE_IN_STEP,	  /* name, late: it no longer does */
	NOTE_WAITS,	  /* nodes, missing, left_ns, has_cause, cause: for lost hosts */
	NOTE_CLOSED,	  /* ruling, has_cause, cause: the job is over */
	NOTE_STAYS,	  /* nodes: it was stopped, but so many that leave, too, have workers */
	NOTE_SUPERSEDED,  /* another process coordinates the job now */
	NOTE_KIND_COUNT,
};

struct note {
	enum note_kind kind;
	/* the agent's host name, from its JOIN; empty: not about one agent */
	char name[MSG_NAME_MAX];
	const char *why; /* borrowed from the event that was stepped */
	enum leave_why leave;
	char refused[MSG_TEXT_MAX]; /* the reason */
	uint64_t round;
	uint32_t nodes, world_size, restarts, max_restarts;
	uint32_t missing;
	uint64_t left_ns;
	struct straggler_news late;
	enum ruling ruling;
	bool has_cause;
	struct cause cause;
};

#endif
