#include "net/discover_exec.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/piped.h"
#include "core/worker/exit_status.h"
#include "core/lines/line_split.h"
#include "core/rounds/policy.h"

#define CHUNK 4096
#define NOTE_MAX 1024
#define NO_PORT 0
#define LAST_CHUNKS 64 /* read at most this much after the program's end */

/* One of the program's two outputs. */
struct stream {
	struct discover_exec *discovery;
	int fd;
	struct event readable;
	struct line_split split;
	void (*on_line)(struct discover_exec *discovery, const struct line *line);
};

struct discover_exec {
	struct event_base *base;
	struct discover_exec_config config;
	const struct discover_exec_handler *handler;
	void *arg;

	pid_t pid; /* 0: it does not run */
	int pidfd;
	int stdin_fd;
	struct stream out, notes;
	struct event ended, restart;
	uint32_t failures; /* since the last good line */

	char coordinator[DISCOVERY_COORDINATOR_MAX]; /* the last one reported */
	uint64_t epoch;

	uint64_t note_ns; /* the second that `notes_told` counts in */
	unsigned notes_told, notes_held;
};

/* Reports a line to the user. */

static void note(struct discover_exec *d, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void note(struct discover_exec *d, const char *fmt, ...)
{
	uint64_t now_ns = clock_now_ns();
	if (now_ns - d->note_ns >= NS_PER_S) {
		d->note_ns = now_ns;
		d->notes_told = 0;
	}
	if (d->notes_told++ >= DISCOVER_EXEC_NOTES_PER_S) {
		d->notes_held++;
		return;
	}
	char text[NOTE_MAX];
	int len = 0;
	if (d->notes_held)
		len = snprintf(text, sizeof(text), "(%u left out) ", d->notes_held);
	d->notes_held = 0;
	va_list args;
	va_start(args, fmt);
	vsnprintf(text + len, sizeof(text) - (size_t)len, fmt, args);
	va_end(args);
	d->handler->on_note(d->arg, text);
}

/* Epochs only grow; ignore a lower one, or a second coordinator in the same epoch. */
static void hear(struct discover_exec *d, const struct discovery_line *line)
{
	struct addr_name name;
	struct err err = ERR_INIT;
	bool same = strcmp(line->coordinator, d->coordinator) == 0;
	d->failures = 0;
	if (line->epoch == d->epoch && same) {
		d->handler->on_again(d->arg, line);
		return;
	}
	if (line->epoch <= d->epoch) {
		note(d, "'%s' in epoch %" PRIu64 " is ignored: '%s' had epoch %" PRIu64,
		     line->coordinator, line->epoch, d->coordinator, d->epoch);
		return;
	}
	if (addr_name_parse(line->coordinator, NO_PORT, &name, &err) < 0 || !*name.host ||
	    name.port == NO_PORT) {
		note(d, "'%s' is not a host and a port", line->coordinator);
		return;
	}
	memcpy(d->coordinator, line->coordinator, sizeof(d->coordinator));
	d->epoch = line->epoch;
	d->handler->on_coordinator(d->arg, &name, line);
}

static void on_output_line(struct discover_exec *d, const struct line *line)
{
	struct discovery_line parsed;
	struct err err = ERR_INIT;
	size_t len = line->len - (line->end != LINE_OPEN);
	if (line->continues)
		return; /* the rest of a line that was too long */
	if (discovery_line_parse((const char *)line->text, len, &parsed, &err) == 0)
		hear(d, &parsed);
	else
		note(d, "a line of its output is left out: %s", err.msg);
}

/* Unprintable characters could disturb a terminal. */
static void on_note_line(struct discover_exec *d, const struct line *line)
{
	char text[NOTE_MAX];
	size_t len = MIN(line->len - (line->end != LINE_OPEN), sizeof(text) - 1);
	for (size_t i = 0; i < len; i++)
		text[i] = line->text[i] >= ' ' && line->text[i] != 0x7f ? (char)line->text[i] : '?';
	text[len] = '\0';
	if (len > 0 && !line->continues)
		note(d, "%s", text);
}

/* Its life. */

static void stream_close(struct stream *stream)
{
	if (stream->fd >= 0)
		event_del(&stream->readable);
	fd_close(&stream->fd);
	line_split_done(&stream->split);
	stream->split = LINE_SPLIT_INIT;
}

static void cut_lines(struct stream *stream, const void *data, size_t len)
{
	struct line line;
	line_split_push(&stream->split, data, len);
	while (line_split_next(&stream->split, &line))
		stream->on_line(stream->discovery, &line);
}

/* Reads once: the number of bytes, 0 at end of stream, -errno. */
static ssize_t stream_read(struct stream *stream)
{
	char chunk[CHUNK];
	ssize_t n = read(stream->fd, chunk, sizeof(chunk));
	if (n > 0)
		cut_lines(stream, chunk, (size_t)n);
	return n < 0 ? -errno : n;
}

/* Once its output is closed it can tell us nothing more, whether it lives or not. */
static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct stream *stream = arg;
	struct discover_exec *d = stream->discovery;
	ssize_t n = stream_read(stream);
	if (n > 0 || n == -EAGAIN || n == -EINTR)
		return;
	stream_close(stream);
	if (stream == &d->out && d->pid)
		pidfd_send_signal(d->pidfd, SIGKILL, NULL, 0);
}

/* Reads what the program printed before it ended. Other processes may hold the pipe, so this has a
 * limit. */
static void stream_finish(struct stream *stream)
{
	for (int i = 0; i < LAST_CHUNKS && stream->fd >= 0 && stream_read(stream) > 0; i++)
		;
	stream_close(stream);
}

static void restart_later(struct discover_exec *d)
{
	uint64_t pause_ns = policy_backoff_ns(DISCOVER_EXEC_RESTART_NS,
					      DISCOVER_EXEC_RESTART_MAX_NS, ++d->failures);
	const struct timeval pause = { .tv_sec = (time_t)(pause_ns / NS_PER_S) };
	evtimer_add(&d->restart, &pause);
}

/* Kills its whole group; until we have waited for it, no other group has its number. */
static struct exit_status reap(struct discover_exec *d)
{
	if (pidfd_send_signal(d->pidfd, 0, NULL, 0) == 0)
		kill(-d->pid, SIGKILL);
	int status = child_wait(d->pid);
	event_del(&d->ended);
	fd_close(&d->pidfd);
	fd_close(&d->stdin_fd);
	d->pid = 0;
	return status >= 0 ? exit_status_from_wait(status)
			   : (struct exit_status){ .kind = EXIT_UNKNOWN };
}

static void on_ended(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct discover_exec *d = arg;
	AUTO(buf_done) struct buf how = BUF_INIT;
	struct exit_status status = reap(d);
	stream_finish(&d->out);
	stream_finish(&d->notes);
	restart_later(d);
	exit_status_describe(&status, &how);
	note(d, "%s ended (%s) and will be started again", d->config.argv[0], buf_str(&how));
}

static void stream_open(struct stream *stream, int fd)
{
	fd_set_nonblock(fd, true);
	stream->fd = fd;
	event_assign(&stream->readable, stream->discovery->base, fd, EV_READ | EV_PERSIST,
		     on_readable, stream);
	event_add(&stream->readable, NULL);
}

static int start(struct discover_exec *d, struct err *err)
{
	const struct piped_spec spec = { .argv = d->config.argv, .envp = d->config.envp };
	struct piped piped;
	int r = piped_start(&spec, &piped, err);
	if (r < 0)
		return r;
	d->pid = piped.pid;
	d->pidfd = piped.pidfd;
	d->stdin_fd = piped.in;
	fd_set_nonblock(d->stdin_fd, true);
	stream_open(&d->out, piped.out);
	stream_open(&d->notes, piped.err);
	event_assign(&d->ended, d->base, d->pidfd, EV_READ, on_ended, d);
	event_add(&d->ended, NULL);
	return 0;
}

static void on_restart(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct discover_exec *d = arg;
	struct err err = ERR_INIT;
	if (start(d, &err) == 0)
		return;
	restart_later(d);
	note(d, "%s; will try again", err.msg);
}

int discover_exec_new(struct event_base *base, const struct discover_exec_config *config,
		      const struct discover_exec_handler *handler, void *arg,
		      struct discover_exec **ret_exec, struct err *err)
{
	struct discover_exec *d = NEW(struct discover_exec);
	d->base = base;
	d->config = *config;
	d->handler = handler;
	d->arg = arg;
	d->pidfd = d->stdin_fd = -1;
	d->out = (struct stream){ .discovery = d, .fd = -1, .on_line = on_output_line };
	d->notes = (struct stream){ .discovery = d, .fd = -1, .on_line = on_note_line };
	evtimer_assign(&d->restart, base, on_restart, d);
	int r = start(d, err);
	if (r < 0) {
		discover_exec_free(d);
		return r;
	}
	*ret_exec = d;
	return 0;
}

/* A program that does not read gets no more than fits into the pipe. */
void discover_exec_tell(struct discover_exec *d, const char *word)
{
	AUTO_FREE char *line = mem_printf("%s\n", word);
	if (!d->pid)
		return;
	ssize_t ignored UNUSED = write(d->stdin_fd, line, strlen(line));
}

void discover_exec_free(struct discover_exec *d)
{
	if (!d)
		return;
	event_del(&d->restart);
	if (d->pid) {
		fd_close(&d->stdin_fd);
		fd_wait(d->pidfd, POLLIN, ns_add(clock_now_ns(), DISCOVER_EXEC_LEAVE_NS));
		reap(d);
	}
	stream_close(&d->out);
	stream_close(&d->notes);
	free(d);
}
