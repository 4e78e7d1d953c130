#include "batch/pipe/feed.h"

#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "sys/thread.h"

struct feed {
	int fd;
	struct block_cutter cutter; /* the thread's */
	feed_fn *on_block;
	void *arg;
	struct event *ready;
	int ready_fd;		 /* the thread tells the loop: a block is there */
	int want_fd;		 /* the loop tells the thread: read the next one, or stop */
	_Atomic bool stop;	 /* set before want_fd */
	struct feed_block block; /* of the thread until it tells, then the loop's */
	struct err err;
	bool grown; /* told that a record is longer than a block */
	pthread_t thread;
};

/* ---- the thread ---- */

static void tell(int event_fd)
{
	ssize_t ignored UNUSED = write(event_fd, &(uint64_t){ 1 }, sizeof(uint64_t));
}

/* Waits for input: false if `stop_fd` comes first. Files are always ready. */
static bool wait_for_input(int fd, int stop_fd)
{
	struct pollfd fds[] = { { .fd = fd, .events = POLLIN },
				{ .fd = stop_fd, .events = POLLIN } };
	while (poll(fds, ARRAY_LEN(fds), -1) < 0 && errno == EINTR)
		;
	return !fds[1].revents;
}

/* Reads what the cutter wants, all of it unless the input ends: the places where blocks end must
 * not depend on how the input comes. They do not where records are counted: then what is there now
 * is enough. `stop_fd` -1: never stops. */
static int fill(int fd, int stop_fd, struct block_cutter *cutter, struct err *err)
{
	for (size_t left = block_cutter_wants(cutter); left > 0;) {
		if (stop_fd >= 0 && !wait_for_input(fd, stop_fd))
			return -ECANCELED;
		ssize_t n = read(fd, buf_reserve(&cutter->in, left), left);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return err_set(err, errno, "standard input: %m");
		if (n == 0) {
			block_cutter_end(cutter);
			return 0;
		}
		buf_commit(&cutter->in, (size_t)n);
		left -= cutter->rules.records ? left : (size_t)n;
	}
	return 0;
}

static int next_block(int fd, int stop_fd, struct block_cutter *cutter, struct buf *ret_block,
		      struct err *err)
{
	for (;;) {
		int r = block_cutter_next(cutter, ret_block, err);
		if (r != 0 || block_cutter_over(cutter))
			return r;
		r = fill(fd, stop_fd, cutter, err);
		if (r < 0)
			return r;
	}
}

int feed_next(int fd, struct block_cutter *cutter, struct buf *ret_block, struct err *err)
{
	return next_block(fd, -1, cutter, ret_block, err);
}

static int fetch(struct feed *feed)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	feed->block = (struct feed_block){ .fd = -1 };
	int r = next_block(feed->fd, feed->want_fd, &feed->cutter, &text, &feed->err);
	if (r <= 0)
		return r;
	AUTO(fd_close) int file = file_temporary(&feed->err);
	if (file < 0)
		return file;
	r = fd_write_all(file, buf_data(&text), buf_len(&text));
	if (r < 0)
		return err_set(&feed->err, -r, "write a block of standard input: %m");
	feed->block = (struct feed_block){ fd_take(&file), buf_len(&text) };
	return 0;
}

static void *feed_main(void *arg)
{
	struct feed *feed = arg;
	for (uint64_t count; read(feed->want_fd, &count, sizeof(count)) > 0 || errno == EINTR;) {
		if (feed->stop)
			break;
		fetch(feed);
		tell(feed->ready_fd);
	}
	return NULL;
}

/* ---- the loop ---- */

static void warn_growth(struct feed *feed)
{
	uint64_t given = feed->cutter.rules.size ? feed->cutter.rules.size : BLOCK_SIZE_DEFAULT;
	if (feed->grown || feed->cutter.size == given || feed->cutter.rules.records)
		return;
	feed->grown = true;
	log_warn("a record is longer than --block=%llu: blocks are as long as records need",
		 (unsigned long long)given);
}

static void on_ready(evutil_socket_t fd, short what UNUSED, void *arg)
{
	struct feed *feed = arg;
	uint64_t count;
	if (read((int)fd, &count, sizeof(count)) < 0)
		return;
	warn_growth(feed);
	struct feed_block block = feed->block;
	feed->block.fd = -1;
	feed->on_block(feed->arg, &block, feed->err.code ? &feed->err : NULL);
}

int feed_new(struct event_base *base, int fd, const struct block_rules *rules, feed_fn *on_block,
	     void *arg, struct feed **ret_feed, struct err *err)
{
	struct feed *feed = NEW(struct feed);
	*feed = (struct feed){ .fd = fd,
			       .on_block = on_block,
			       .arg = arg,
			       .block.fd = -1,
			       .ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
			       .want_fd = eventfd(0, EFD_CLOEXEC) };
	int r = feed->ready_fd < 0 || feed->want_fd < 0 ? err_set(err, errno, "eventfd: %m") : 0;
	if (r >= 0)
		r = block_cutter_init(&feed->cutter, rules, err);
	if (r >= 0) {
		feed->ready = event_new(base, feed->ready_fd, EV_READ | EV_PERSIST, on_ready, feed);
		r = thread_start(&feed->thread, feed_main, feed);
		if (r < 0)
			err_set(err, -r, "start a thread: %m");
	}
	if (r < 0) {
		if (feed->ready)
			event_free(feed->ready);
		block_cutter_done(&feed->cutter);
		fd_close(&feed->ready_fd);
		fd_close(&feed->want_fd);
		free(feed);
		return r;
	}
	event_add(feed->ready, NULL);
	*ret_feed = feed;
	return 0;
}

void feed_free(struct feed *feed)
{
	if (!feed)
		return;
	feed->stop = true;
	tell(feed->want_fd);
	pthread_join(feed->thread, NULL);
	event_free(feed->ready);
	fd_close(&feed->block.fd);
	fd_close(&feed->ready_fd);
	fd_close(&feed->want_fd);
	block_cutter_done(&feed->cutter);
	free(feed);
}

void feed_want(struct feed *feed)
{
	tell(feed->want_fd);
}
