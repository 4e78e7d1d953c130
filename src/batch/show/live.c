#include "batch/show/live.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

#define PIECE ((size_t)4096)

struct watch {
	int number; /* of the kernel */
	live_fn *on_growth;
	void *arg;
};

struct live {
	int fd;
	struct event *readable;
	struct watch *watches;
	size_t count, cap;
};

static struct watch *find(struct live *live, int number)
{
	for (size_t i = 0; i < live->count; i++)
		if (live->watches[i].number == number)
			return &live->watches[i];
	return NULL;
}

static void on_readable(evutil_socket_t fd, short what UNUSED, void *arg)
{
	struct live *live = arg;
	_Alignas(struct inotify_event) char events[PIECE];
	ssize_t n = read(fd, events, sizeof(events));
	for (char *p = events; n > 0 && p < events + n;) {
		const struct inotify_event *event = (const struct inotify_event *)p;
		struct watch *watch = find(live, event->wd);
		if (watch)
			watch->on_growth(watch->arg);
		p += sizeof(*event) + event->len;
	}
}

int live_new(struct event_base *base, struct live **ret_live, struct err *err)
{
	int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (fd < 0)
		return err_set(err, errno, "cannot watch outputs: %m");
	struct live *live = NEW(struct live);
	live->fd = fd;
	live->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, live);
	event_add(live->readable, NULL);
	*ret_live = live;
	return 0;
}

void live_free(struct live *live)
{
	if (!live)
		return;
	event_free(live->readable);
	fd_close(&live->fd);
	free(live->watches);
	free(live);
}

int live_watch(struct live *live, int fd, live_fn *on_growth, void *arg)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int number = inotify_add_watch(live->fd, path, IN_MODIFY);
	if (number < 0)
		return -errno;
	live_forget(live, number);
	ARRAY_RESERVE(live->watches, live->count, live->cap);
	live->watches[live->count++] = (struct watch){ number, on_growth, arg };
	return number;
}

void live_forget(struct live *live, int number)
{
	struct watch *watch = find(live, number);
	if (watch)
		*watch = live->watches[--live->count];
}

uint64_t live_lines_end(int fd, uint64_t from)
{
	struct stat info;
	char piece[PIECE];
	if (fstat(fd, &info) < 0)
		return from;
	for (uint64_t end = (uint64_t)info.st_size; end > from;) {
		size_t want = (size_t)MIN((uint64_t)sizeof(piece), end - from);
		ssize_t n = pread(fd, piece, want, (off_t)(end - want));
		if (n != (ssize_t)want)
			return from;
		const char *newline = memrchr(piece, '\n', want);
		if (newline)
			return end - want + (uint64_t)(newline - piece) + 1;
		end -= want;
	}
	return from;
}
