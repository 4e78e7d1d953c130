#include "run/tell/events.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "sys/disk.h"

static void on_trouble(void *arg UNUSED, const char *text)
{
	log_warn("events: %s", text);
}

/* A descriptor of ours is a file by another name. */
static char *path_of(const char *target)
{
	if (str_eq(target, "-"))
		return mem_strdup("/dev/fd/1");
	if (str_starts(target, "fd:"))
		return mem_printf("/dev/fd/%s", target + strlen("fd:"));
	return mem_strdup(target);
}

static void add_file(struct events *events, const char *path)
{
	if (!events->disk)
		events->disk = disk_new(0, DISK_HANG_NS, on_trouble, NULL);
	events->files[events->count++] = disk_open(events->disk, path);
}

void events_open(struct events *events, const char *run_id, const struct history *history,
		 const struct agent *agent, const char *target, const char *log_dir)
{
	*events = (struct events){ .run_id = run_id, .history = history, .agent = agent };
	AUTO_FREE char *path = target ? path_of(target) : NULL;
	AUTO_FREE char *log = log_dir ? mem_printf("%s/events.jsonl", log_dir) : NULL;
	if (path)
		add_file(events, path);
	if (log)
		add_file(events, log);
}

void events_close(struct events *events)
{
	if (!events->disk)
		return;
	for (size_t i = 0; i < events->count; i++)
		disk_close(events->disk, events->files[i]);
	disk_flush(events->disk);
	disk_free(events->disk);
	events->disk = NULL;
}

void events_add(struct events *events, enum event_kind kind, const struct event_body *body)
{
	if (!events->disk)
		return;
	const struct history *history = events->history;
	const struct history_attempt *last = history_last(history);
	struct event_head head = {
		.run_id = events->run_id,
		.host = history->host,
		.sequence = events->sequence++,
		.wall_ns = clock_wall_ns(),
		.mono_ns = clock_now_ns() - history->started_ns,
		.round = history->count,
		.epoch = events->agent->memory.heard.ballot.epoch,
		.ballot_round = events->agent->memory.heard.ballot.round,
		.restarts = last ? last->restart_count : 0,
	};
	AUTO(buf_done) struct buf line = BUF_INIT;
	event_line(&line, kind, &head, body);
	for (size_t i = 0; i < events->count; i++)
		disk_write(events->disk, events->files[i], buf_data(&line), buf_len(&line));
}
