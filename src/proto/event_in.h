/* Reads back a line of proto/event.h, as far as a program that started muster needs it. */
#ifndef PROTO_EVENT_IN_H
#define PROTO_EVENT_IN_H

#include "base/buf.h"

/* Members that the line lacks are as in EVENT_IN_INIT. */
struct event_in {
	struct buf name;
	int64_t rank, local_rank;
	int64_t pid;
	int64_t round, restarts;
	int64_t timestamp; /* wall-clock ms */
	int64_t world_size;
	int64_t exit_code;
	struct buf signal; /* a name */
	struct buf error_file;
};

#define EVENT_IN_INIT ((struct event_in){ .rank = -1, .local_rank = -1, .exit_code = -1 })

/* 0, or -EINVAL: the line is not an event. Skips members of later versions. */
int event_in_parse(const char *line, size_t len, struct event_in *ret_event);
void event_in_done(struct event_in *event);

#endif
