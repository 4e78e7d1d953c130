/* The job's event log: in events.jsonl of a log directory that the user named, and at --events. The
 * disk thread (sys/disk.h) writes it, so that the supervising loop never waits for a file. */
#ifndef RUN_TELL_EVENTS_H
#define RUN_TELL_EVENTS_H

#include "core/rounds/agent.h"
#include "proto/event.h"
#include "run/tell/history.h"

struct disk;
struct disk_file;

struct events {
	/* Borrowed, for as long as this is used. */
	const char *run_id;
	const struct history *history;
	const struct agent *agent;

	uint64_t sequence;
	struct disk *disk; /* NULL: events are off */
	struct disk_file *files[2];
	size_t count;
};

/* `target`: a file, "fd:N" or "-" for stdout; `log_dir`: where events.jsonl goes. Both may be
 * NULL. */
void events_open(struct events *events, const char *run_id, const struct history *history,
		 const struct agent *agent, const char *target, const char *log_dir);
void events_close(struct events *events);

void events_add(struct events *events, enum event_kind kind, const struct event_body *body);

/* An event that is not about one worker. */
#define EVENTS_ALL(...) (&(struct event_body){ .rank = EVENT_NO_RANK, __VA_ARGS__ })

#endif
