#include "batch/printer.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/list.h"
#include "base/mem.h"

#define CHUNK 4096 /* a pipe that polls as writable takes at least this */
#define ERASE "\r\033[K"

struct block {
	struct list link;
	struct buf text;
	int fd; /* of a file, or -1 */
	uint64_t offset, len;
	char *prefix;	  /* of every line of the file; NULL: none */
	bool inside_line; /* the prefix of this line is written */
};

struct sink {
	struct printer *printer;
	int fd;
	bool own;    /* the descriptor is a non-blocking one of our own */
	bool waits;  /* the event is pending */
	bool broken; /* a write failed: nothing more goes there */
	struct list blocks;
	struct event *writable;
};

struct printer {
	struct sink sinks[2]; /* stdout, stderr */
	bool status_shown;
};

static void block_free(struct block *block)
{
	list_unlink(&block->link);
	buf_done(&block->text);
	fd_close(&block->fd);
	free(block->prefix);
	free(block);
}

static void add_lines(struct buf *out, const char *prefix, bool *inside_line, const char *text,
		      size_t len)
{
	for (const char *end = text + len; text < end;) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *stop = newline ? newline + 1 : end;
		if (prefix && !*inside_line)
			buf_append_str(out, prefix);
		buf_append(out, text, (size_t)(stop - text));
		*inside_line = !newline;
		text = stop;
	}
}

/* The next piece of a block into `text`; false at its end. */
static bool fill(struct block *block)
{
	if (buf_len(&block->text) > 0)
		return true;
	if (block->fd < 0 || block->offset >= block->len)
		return false;
	size_t want = (size_t)MIN((uint64_t)CHUNK, block->len - block->offset);
	char piece[CHUNK];
	ssize_t n = pread(block->fd, piece, want, (off_t)block->offset);
	if (n <= 0)
		return false;
	add_lines(&block->text, block->prefix, &block->inside_line, piece, (size_t)n);
	block->offset += (uint64_t)n;
	return true;
}

static bool may_write(const struct sink *sink)
{
	struct pollfd poll_fd = { .fd = sink->fd, .events = POLLOUT };
	return sink->own || poll(&poll_fd, 1, 0) != 0;
}

/* Writes as much as the other side takes now. True when nothing is left. */
static bool pump(struct sink *sink)
{
	while (!list_empty(&sink->blocks)) {
		struct block *block = list_entry(sink->blocks.next, struct block, link);
		if (sink->broken || !fill(block)) {
			block_free(block);
			continue;
		}
		if (!may_write(sink))
			return false;
		ssize_t n = write(sink->fd, buf_data(&block->text),
				  MIN(buf_len(&block->text), (size_t)CHUNK));
		if (n >= 0)
			buf_consume(&block->text, (size_t)n);
		else if (errno == EAGAIN)
			return false;
		else if (errno != EINTR)
			sink->broken = true;
	}
	return true;
}

static void run_sink(struct sink *sink)
{
	if (pump(sink) || sink->waits)
		return;
	sink->waits = true;
	event_add(sink->writable, NULL);
}

static void on_writable(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct sink *sink = arg;
	sink->waits = false;
	run_sink(sink);
}

/* O_NONBLOCK belongs to the open file description, which other processes share: open a new one
 * where possible. */
static void open_sink(struct sink *sink, struct printer *printer, struct event_base *base, int fd)
{
	struct stat info;
	char path[32];
	*sink = (struct sink){ .printer = printer, .fd = fd };
	list_init(&sink->blocks);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fstat(fd, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode))) {
		int own = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
		sink->own = own >= 0;
		sink->fd = own >= 0 ? own : fd;
	}
	sink->writable = event_new(base, sink->fd, EV_WRITE, on_writable, sink);
}

struct printer *printer_new(struct event_base *base)
{
	struct printer *printer = NEW(struct printer);
	for (int i = 0; i < 2; i++)
		open_sink(&printer->sinks[i], printer, base, i + 1);
	return printer;
}

void printer_free(struct printer *printer)
{
	if (!printer)
		return;
	for (int i = 0; i < 2; i++) {
		struct sink *sink = &printer->sinks[i];
		list_foreach(link, &sink->blocks) block_free(list_entry(link, struct block, link));
		if (sink->writable)
			event_free(sink->writable);
		if (sink->own)
			fd_close(&sink->fd);
	}
	free(printer);
}

static void queue(struct sink *sink, struct block *block)
{
	list_append(&sink->blocks, &block->link);
	run_sink(sink);
}

static struct block *text_block(const void *text, size_t len)
{
	struct block *block = NEW(struct block);
	block->fd = -1;
	buf_append(&block->text, text, len);
	return block;
}

static void hide_status(struct printer *printer)
{
	if (!printer->status_shown)
		return;
	printer->status_shown = false;
	queue(&printer->sinks[1], text_block(ERASE, strlen(ERASE)));
}

void printer_text(struct printer *printer, int stream, const void *text, size_t len)
{
	if (len == 0)
		return;
	hide_status(printer);
	queue(&printer->sinks[stream - 1], text_block(text, len));
}

void printer_lines(struct printer *printer, int stream, const char *prefix, const void *text,
		   size_t len)
{
	bool inside_line = false;
	if (len == 0)
		return;
	hide_status(printer);
	struct block *block = text_block("", 0);
	add_lines(&block->text, prefix, &inside_line, text, len);
	queue(&printer->sinks[stream - 1], block);
}

void printer_file(struct printer *printer, int stream, const char *prefix, int fd, uint64_t from,
		  uint64_t end)
{
	hide_status(printer);
	struct block *block = NEW(struct block);
	block->fd = fd;
	block->offset = from;
	block->len = end;
	block->prefix = prefix ? mem_strdup(prefix) : NULL;
	queue(&printer->sinks[stream - 1], block);
}

void printer_status(struct printer *printer, const char *text)
{
	struct sink *sink = &printer->sinks[1];
	if (!*text) {
		hide_status(printer);
		return;
	}
	if (!list_empty(&sink->blocks) || !list_empty(&printer->sinks[0].blocks))
		return;
	struct block *block = text_block("\r", 1);
	buf_append_str(&block->text, text);
	buf_append_str(&block->text, "\033[K");
	printer->status_shown = true;
	queue(sink, block);
}

void printer_flush(struct printer *printer)
{
	hide_status(printer);
	for (int i = 0; i < 2; i++)
		while (!pump(&printer->sinks[i])) {
			struct pollfd poll_fd = { .fd = printer->sinks[i].fd, .events = POLLOUT };
			poll(&poll_fd, 1, -1);
		}
}
