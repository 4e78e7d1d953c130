#include "batch/pipe/stdin_blocks.h"

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

struct stdin_blocks {
	int fd;
	struct block_cutter cutter; /* the thread's */
	stdin_blocks_fn *on_block;
	void *arg;
	struct event *ready;
	int ready_fd;			 /* the thread tells the loop: a block is there */
	int want_fd;			 /* the loop tells the thread: read the next one, or stop */
	_Atomic bool stop;		 /* set before want_fd */
	struct stdin_blocks_block block; /* of the thread until it tells, then the loop's */
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

int stdin_blocks_next(int fd, struct block_cutter *cutter, struct buf *ret_block, struct err *err)
{
	return next_block(fd, -1, cutter, ret_block, err);
}

static int fetch(struct stdin_blocks *blocks)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	blocks->block = (struct stdin_blocks_block){ .fd = -1 };
	int r = next_block(blocks->fd, blocks->want_fd, &blocks->cutter, &text, &blocks->err);
	if (r <= 0)
		return r;
	AUTO(fd_close) int file = file_temporary(&blocks->err);
	if (file < 0)
		return file;
	r = fd_write_all(file, buf_data(&text), buf_len(&text));
	if (r < 0)
		return err_set(&blocks->err, -r, "write a block of standard input: %m");
	blocks->block = (struct stdin_blocks_block){ fd_take(&file), buf_len(&text) };
	return 0;
}

static void *stdin_blocks_main(void *arg)
{
	struct stdin_blocks *blocks = arg;
	for (uint64_t count; read(blocks->want_fd, &count, sizeof(count)) > 0 || errno == EINTR;) {
		if (blocks->stop)
			break;
		fetch(blocks);
		tell(blocks->ready_fd);
	}
	return NULL;
}

/* ---- the loop ---- */

static void warn_growth(struct stdin_blocks *blocks)
{
	uint64_t given = blocks->cutter.rules.size ? blocks->cutter.rules.size : BLOCK_SIZE_DEFAULT;
	if (blocks->grown || blocks->cutter.size == given || blocks->cutter.rules.records)
		return;
	blocks->grown = true;
	log_warn("a record is longer than --block=%llu: blocks are as long as records need",
		 (unsigned long long)given);
}

static void on_ready(evutil_socket_t fd, short what UNUSED, void *arg)
{
	struct stdin_blocks *blocks = arg;
	uint64_t count;
	if (read((int)fd, &count, sizeof(count)) < 0)
		return;
	warn_growth(blocks);
	struct stdin_blocks_block block = blocks->block;
	blocks->block.fd = -1;
	blocks->on_block(blocks->arg, &block, blocks->err.code ? &blocks->err : NULL);
}

int stdin_blocks_new(struct event_base *base, int fd, const struct block_rules *rules,
		     stdin_blocks_fn *on_block, void *arg, struct stdin_blocks **ret_blocks,
		     struct err *err)
{
	struct stdin_blocks *blocks = NEW(struct stdin_blocks);
	*blocks = (struct stdin_blocks){ .fd = fd,
					 .on_block = on_block,
					 .arg = arg,
					 .block.fd = -1,
					 .ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
					 .want_fd = eventfd(0, EFD_CLOEXEC) };
	int r = blocks->ready_fd < 0 || blocks->want_fd < 0 ? err_set(err, errno, "eventfd: %m")
							    : 0;
	if (r >= 0)
		r = block_cutter_init(&blocks->cutter, rules, err);
	if (r >= 0) {
		blocks->ready =
			event_new(base, blocks->ready_fd, EV_READ | EV_PERSIST, on_ready, blocks);
		r = thread_start(&blocks->thread, stdin_blocks_main, blocks);
		if (r < 0)
			err_set(err, -r, "start a thread: %m");
	}
	if (r < 0) {
		if (blocks->ready)
			event_free(blocks->ready);
		block_cutter_done(&blocks->cutter);
		fd_close(&blocks->ready_fd);
		fd_close(&blocks->want_fd);
		free(blocks);
		return r;
	}
	event_add(blocks->ready, NULL);
	*ret_blocks = blocks;
	return 0;
}

void stdin_blocks_free(struct stdin_blocks *blocks)
{
	if (!blocks)
		return;
	blocks->stop = true;
	tell(blocks->want_fd);
	pthread_join(blocks->thread, NULL);
	event_free(blocks->ready);
	fd_close(&blocks->block.fd);
	fd_close(&blocks->ready_fd);
	fd_close(&blocks->want_fd);
	block_cutter_done(&blocks->cutter);
	free(blocks);
}

void stdin_blocks_want(struct stdin_blocks *blocks)
{
	tell(blocks->want_fd);
}
