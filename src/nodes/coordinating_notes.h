/* What a step of a coordinator means to people: found by looking at the machine before and
 * after. */
#ifndef NODES_COORDINATING_NOTES_H
#define NODES_COORDINATING_NOTES_H

#include "nodes/coordinating.h"

#define NOTES_TEXT_MAX 512

struct notes_before {
	enum coordinator_state state;
	struct ballot ballot;
};

struct notes_before notes_look(const struct coordinator *machine);

/* TOLD_COUNT if nothing is worth a line; otherwise TOLD_FORMED, _STOPPED, _CLOSED or
 * _SUPERSEDED. */
enum coordinating_note notes_compare(const struct notes_before *before,
				     const struct coordinator *machine, char text[NOTES_TEXT_MAX]);

const char *notes_leave(enum leave_why why);

/* "worker 3 (rank 11) on node2: exit code 1" */
void notes_cause(const struct cause *cause, char *text, size_t size);

#endif
