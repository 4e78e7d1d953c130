#include "watch/fifo.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "proto/timer_line.h"

#define READ_SIZE 65536
/* Then the rest of the loop gets its turn. */
#define READS_PER_TURN (FIFO_PIPE_SIZE / READ_SIZE)

struct fifo {
	struct watchdog *watchdog;
	struct watchdog_channel channel;
	char *path;
	ino_t inode;
	int fd;
	struct event *readable; /* not while resting */
	struct event *rest;
	struct event *torn;
	uint64_t read_ns;  /* when it was last readable */
	uint64_t received; /* bytes, ever */
	struct timer_splitter splitter;
	struct timer_line line;
	bool told[TIMER_FAULT_COUNT];
	bool told_nan;
};

/* ---- requests ---- */

static void reject_line(struct fifo *fifo, enum timer_fault fault)
{
	watchdog_reject(fifo->watchdog, REJECT_LINE,
			fifo->told[fault] ? NULL : timer_fault_text(fault));
	fifo->told[fault] = true;
}

static void obey(struct fifo *fifo, struct timer_line *line)
{
	const char *scope = buf_str(&line->scope);
	if (isnan(line->expiration_s)) {
		watchdog_reject(fifo->watchdog, REJECT_DEADLINE,
				fifo->told_nan ? NULL : "expiration_time is NaN");
		fifo->told_nan = true;
		return;
	}
	if (line->expiration_s < 0) {
		watchdog_release(fifo->watchdog, line->pid, false, scope);
		return;
	}
	/* No kernel has a signal above SIGRTMAX; such a request still means that the worker must
	 * end. */
	int signal = line->signal > SIGRTMAX ? SIGKILL : line->signal < 0 ? 0 : (int)line->signal;
	watchdog_acquire(fifo->watchdog, line->pid, false, scope, DEADLINE_RENEW, signal,
			 timer_line_deadline_ns(line->expiration_s, clock_wall_ns(),
						clock_now_ns()));
}

static void take_lines(struct fifo *fifo)
{
	const char *text;
	size_t len;
	for (enum timer_split what; (what = timer_splitter_next(&fifo->splitter, &text, &len));) {
		enum timer_fault fault = what == TIMER_SPLIT_LINE
						 ? timer_line_parse(text, len, &fifo->line)
						 : TIMER_FAULT_TOO_LONG;
		if (fault)
			reject_line(fifo, fault);
		else
			obey(fifo, &fifo->line);
	}
}

/* Reads what has been written so far, at most what the pipe holds: a writer that never pauses must
 * not keep the loop here. */
static void read_waiting(struct fifo *fifo)
{
	char data[READ_SIZE];
	for (int turn = 0; turn < READS_PER_TURN; turn++) {
		ssize_t n = read(fifo->fd, data, sizeof(data));
		if (n <= 0)
			return;
		fifo->received += (uint64_t)n;
		timer_splitter_feed(&fifo->splitter, data, (size_t)n);
		take_lines(fifo);
		if ((size_t)n < sizeof(data))
			return;
	}
}

static void watch_torn_line(struct fifo *fifo)
{
	static const struct timeval patience = { .tv_sec = FIFO_TORN_NS / NS_PER_S };
	if (timer_splitter_partial(&fifo->splitter))
		event_add(fifo->torn, &patience);
	else
		event_del(fifo->torn);
}

static void take_rest(struct fifo *fifo)
{
	static const struct timeval rest = { .tv_usec = FIFO_REST_NS / NS_PER_US };
	event_add(fifo->rest, &rest);
}

/* Waking up for every line costs more than the line: in a burst, read only once in a while. */
static void on_readable(UNUSED evutil_socket_t fd, UNUSED short what, void *arg)
{
	struct fifo *fifo = arg;
	uint64_t now_ns = clock_now_ns();
	read_waiting(fifo);
	watch_torn_line(fifo);
	if (now_ns - fifo->read_ns < FIFO_REST_NS) {
		event_del(fifo->readable);
		take_rest(fifo);
	}
	fifo->read_ns = now_ns;
}

static void on_rested(UNUSED evutil_socket_t fd, UNUSED short what, void *arg)
{
	struct fifo *fifo = arg;
	uint64_t before = fifo->received;
	read_waiting(fifo);
	watch_torn_line(fifo);
	if (fifo->received > before)
		take_rest(fifo);
	else
		event_add(fifo->readable, NULL);
}

static void on_torn(UNUSED evutil_socket_t fd, UNUSED short what, void *arg)
{
	struct fifo *fifo = arg;
	timer_splitter_drop(&fifo->splitter);
	reject_line(fifo, TIMER_FAULT_TORN);
}

static void drain(struct watchdog_channel *channel)
{
	struct fifo *fifo = container_of(channel, struct fifo, channel);
	read_waiting(fifo);
	watch_torn_line(fifo);
}

static void set_listening(struct watchdog_channel *channel, bool on)
{
	struct fifo *fifo = container_of(channel, struct fifo, channel);
	event_del(fifo->rest);
	if (on)
		event_add(fifo->readable, NULL);
	else
		event_del(fifo->readable);
}

/* ---- life cycle ---- */

static int remove_old(const char *path, struct err *err)
{
	struct stat st;
	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : err_set(err, errno, "%s: %m", path);
	if (!S_ISFIFO(st.st_mode) || st.st_uid != geteuid())
		return err_set(err, EEXIST,
			       "%s exists and is not a FIFO of this user; not replaced", path);
	return unlink(path) < 0 ? err_set(err, errno, "unlink %s: %m", path) : 0;
}

static int make(struct fifo *fifo, const char *path, struct err *err)
{
	int r = remove_old(path, err);
	if (r < 0)
		return r;
	if (mkfifo(path, 0600) < 0)
		return err_set(err, errno, "mkfifo %s: %m", path);
	fifo->path = mem_strdup(path);
	fifo->fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	if (fifo->fd < 0 || fstat(fifo->fd, &st) < 0)
		return err_set(err, errno, "open %s: %m", path);
	if (!S_ISFIFO(st.st_mode) || st.st_uid != geteuid())
		return err_set(err, EPERM, "%s was replaced while it was made", path);
	fifo->inode = st.st_ino;
	if (fchmod(fifo->fd, 0600) < 0)
		return err_set(err, errno, "chmod %s: %m", path);
	/* Fails where users share a small budget for pipes; then it stays at 64 KiB. */
	fcntl(fifo->fd, F_SETPIPE_SZ, FIFO_PIPE_SIZE);
	return 0;
}

int fifo_new(struct event_base *base, struct watchdog *watchdog, const char *path,
	     struct fifo **ret, struct err *err)
{
	struct fifo *fifo = NEW(struct fifo);
	fifo->watchdog = watchdog;
	fifo->fd = -1;
	fifo->splitter = TIMER_SPLITTER_INIT;
	fifo->line = TIMER_LINE_INIT;
	list_init(&fifo->channel.link);
	int r = make(fifo, path, err);
	if (r < 0) {
		fifo_free(fifo);
		return r;
	}
	fifo->readable = event_new(base, fifo->fd, EV_READ | EV_PERSIST, on_readable, fifo);
	fifo->rest = evtimer_new(base, on_rested, fifo);
	fifo->torn = evtimer_new(base, on_torn, fifo);
	event_add(fifo->readable, NULL);
	fifo->channel.drain = drain;
	fifo->channel.listen = set_listening;
	watchdog_add_channel(watchdog, &fifo->channel);
	*ret = fifo;
	return 0;
}

static void remove_own(const struct fifo *fifo)
{
	struct stat st;
	if (fifo->path && lstat(fifo->path, &st) == 0 && st.st_ino == fifo->inode)
		unlink(fifo->path);
}

void fifo_free(struct fifo *fifo)
{
	if (!fifo)
		return;
	watchdog_remove_channel(&fifo->channel);
	if (fifo->readable)
		event_free(fifo->readable);
	if (fifo->rest)
		event_free(fifo->rest);
	if (fifo->torn)
		event_free(fifo->torn);
	remove_own(fifo);
	fd_close(&fifo->fd);
	timer_splitter_done(&fifo->splitter);
	timer_line_done(&fifo->line);
	free(fifo->path);
	free(fifo);
}
