/* What people should know of the nodes that a coordinator leads. A note is made where the thing
 * happens, with everything that a line about it needs; who writes the line chooses the words. */
#ifndef CORE_ROUNDS_NOTE_H
#define CORE_ROUNDS_NOTE_H

#include "core/rounds/msg.h"

enum note_kind {
	NOTE_COORDINATES, /* this process has begun to coordinate the job */
	NOTE_JOINED,	  /* name: an agent has joined on a new link */
	NOTE_LOST,	  /* name, why: its link ended, or (NULL) it was silent for too long */
	NOTE_LEFT,	  /* name, leave: it said that it goes, and why */
	NOTE_REFUSED,	  /* name, refused: its JOIN was refused */
	NOTE_FORMED,	  /* round, nodes, world_size, restarts, max_restarts */
	NOTE_STOPPED,	  /* round, has_cause, cause: without a cause its members change */
	NOTE_CLOSED,	  /* ruling, has_cause, cause: the job is over */
	NOTE_SUPERSEDED,  /* another coordinates the job now */
	NOTE_KIND_COUNT,
};

struct note {
	enum note_kind kind;
	char name[MSG_NAME_MAX]; /* the agent's host, as it said itself; empty: not about one */
	const char *why;	 /* borrowed from the event that was stepped */
	enum leave_why leave;
	char refused[MSG_TEXT_MAX];
	uint64_t round;
	uint32_t nodes, world_size, restarts, max_restarts;
	enum ruling ruling;
	bool has_cause;
	struct cause cause;
};

#endif
