#include "run/tell/events.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "sys/disk.h"

static void on_trouble(void *arg UNUSED, const char *text)
{
	log_warn("events: %s", text);
}

/* The descriptor that "-" or "fd:N" names; -1: the target is a file. */
static int descriptor_of(const char *target)
{
	uint64_t fd;
	if (str_eq(target, "-"))
		return STDOUT_FILENO;
	if (str_starts(target, "fd:") && str_to_u64(target + strlen("fd:"), &fd) == 0)
		return (int)MIN(fd, (uint64_t)INT_MAX);
	return -1;
}

/* Other processes share an open descriptor: write to it as it is. */
static struct disk_file *open_target(struct disk *disk, const char *target)
{
	int fd = descriptor_of(target);
	if (fd < 0)
		return disk_open(disk, target);
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		log_warn("events: cannot write to %s: %m", target);
	return copy < 0 ? NULL : disk_adopt(disk, target, copy);
}

static void add_target(struct events *events, const char *target)
{
	if (!events->disk)
		events->disk = disk_new(0, DISK_HANG_NS, on_trouble, NULL);
	struct disk_file *file = open_target(events->disk, target);
	if (file)
		events->files[events->count++] = file;
}

void events_open(struct events *events, const char *run_id, const struct history *history,
		 const struct agent *agent, const char *target, const char *log_dir)
{
	*events = (struct events){ .run_id = run_id, .history = history, .agent = agent };
	AUTO_FREE char *log = log_dir ? mem_printf("%s/events.jsonl", log_dir) : NULL;
	if (target)
		add_target(events, target);
	if (log)
		add_target(events, log);
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
		.round = history->count + history->forgotten.count,
		.epoch = events->agent->memory.heard.ballot.epoch,
		.ballot_round = events->agent->memory.heard.ballot.round,
		.restarts = last ? last->restart_count : 0,
	};
	AUTO(buf_done) struct buf line = BUF_INIT;
	event_line(&line, kind, &head, body);
	for (size_t i = 0; i < events->count; i++)
		disk_write(events->disk, events->files[i], buf_data(&line), buf_len(&line));
}
