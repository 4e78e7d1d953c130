#include "fleet/hosted.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/env.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/piped.h"
#include "base/str.h"

#define CHUNK ((size_t)64 << 10)
#define LAST_CHUNKS 1024 /* of 64 KiB: what its workers' children leave open has a limit */
#define REPORT_MAX ((size_t)1 << 20)
#define PARTIAL_NS (100 * NS_PER_MS) /* how long a line without an end is kept */

struct stream {
	struct hosted *hosted;
	enum fleet_type type;
	int fd;
	struct buf partial;
	struct event readable, impatient;
};

struct hosted {
	struct event_base *base;
	const struct hosted_handler *handler;
	void *arg;
	pid_t pid;
	int pidfd;
	int lifeline; /* open as long as we live */
	int report;
	struct stream out, err;
	struct event ended;
};

/* ---- output ---- */

static void pass_on(struct stream *stream, size_t len)
{
	struct hosted *hosted = stream->hosted;
	if (len == 0)
		return;
	hosted->handler->on_output(hosted->arg, stream->type, buf_data(&stream->partial), len);
	buf_consume(&stream->partial, len);
}

/* Up to the end of the last line, so that lines of different hosts do not mix. A carriage return
 * ends one, too. */
static size_t whole_lines(const struct buf *partial)
{
	for (size_t len = buf_len(partial); len > 0; len--)
		if (strchr("\n\r", buf_data(partial)[len - 1]) && buf_data(partial)[len - 1])
			return len;
	return 0;
}

static ssize_t stream_read(struct stream *stream)
{
	ssize_t n = read(stream->fd, buf_reserve(&stream->partial, CHUNK), CHUNK);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	buf_commit(&stream->partial, (size_t)n);
	pass_on(stream, buf_len(&stream->partial) > CHUNK ? buf_len(&stream->partial)
							  : whole_lines(&stream->partial));
	return n;
}

static void on_readable(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct stream *stream = arg;
	ssize_t n = stream_read(stream);
	if (n == 0 || (n < 0 && n != -EAGAIN && n != -EINTR))
		event_del(&stream->readable);
	const struct timeval soon = clock_timeval(PARTIAL_NS);
	if (buf_len(&stream->partial) > 0)
		event_add(&stream->impatient, &soon);
}

static void on_impatient(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct stream *stream = arg;
	pass_on(stream, buf_len(&stream->partial));
}

static void stream_open(struct stream *stream, struct hosted *hosted, enum fleet_type type, int fd)
{
	*stream = (struct stream){ .hosted = hosted, .type = type, .fd = fd };
	fd_set_nonblock(fd, true);
	event_assign(&stream->readable, hosted->base, fd, EV_READ | EV_PERSIST, on_readable,
		     stream);
	event_assign(&stream->impatient, hosted->base, -1, 0, on_impatient, stream);
	event_add(&stream->readable, NULL);
}

static void stream_finish(struct stream *stream)
{
	for (int i = 0; i < LAST_CHUNKS && stream_read(stream) > 0; i++)
		;
	pass_on(stream, buf_len(&stream->partial));
}

static void stream_close(struct stream *stream)
{
	event_del(&stream->readable);
	event_del(&stream->impatient);
	fd_close(&stream->fd);
	buf_done(&stream->partial);
}

void hosted_hold(struct hosted *hosted, bool hold)
{
	struct stream *const streams[] = { &hosted->out, &hosted->err };
	for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
		if (hold)
			event_del(&streams[i]->readable);
		else
			event_add(&streams[i]->readable, NULL);
	}
}

/* ---- its end ---- */

static void pass_report(struct hosted *hosted)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	fd_set_nonblock(hosted->report, true);
	while (buf_len(&text) < REPORT_MAX) {
		ssize_t n = read(hosted->report, buf_reserve(&text, CHUNK), CHUNK);
		if (n <= 0)
			break;
		buf_commit(&text, (size_t)n);
	}
	if (buf_len(&text) > 0)
		hosted->handler->on_output(hosted->arg, FLEET_MSG_REPORT, buf_data(&text),
					   buf_len(&text));
}

static void on_ended(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct hosted *hosted = arg;
	int status = child_wait(hosted->pid);
	hosted->pid = 0;
	stream_finish(&hosted->out);
	stream_finish(&hosted->err);
	pass_report(hosted);
	struct exit_status ended = status >= 0 ? exit_status_from_wait(status)
					       : (struct exit_status){ .kind = EXIT_UNKNOWN };
	hosted->handler->on_ended(hosted->arg, &ended);
}

void hosted_signal(struct hosted *hosted, int signal)
{
	if (hosted->pid)
		pidfd_send_signal(hosted->pidfd, signal, NULL, 0);
}

/* Without us it sees the end of its lifeline, and stops. */
void hosted_free(struct hosted *hosted)
{
	if (!hosted)
		return;
	event_del(&hosted->ended);
	stream_close(&hosted->out);
	stream_close(&hosted->err);
	fd_close(&hosted->pidfd);
	fd_close(&hosted->lifeline);
	fd_close(&hosted->report);
	free(hosted);
}

/* ---- its start ---- */

static void make_env(const struct fleet_start *start, const char *name, struct strv *env)
{
	strv_add_all(env, environ);
	for (size_t i = 0; i < start->env.count; i++) {
		const char *sign = strchr(start->env.items[i], '=');
		if (!sign)
			continue;
		AUTO_FREE char *variable =
			mem_strndup(start->env.items[i], (size_t)(sign - start->env.items[i]));
		env_set(env, variable, sign + 1);
	}
	env_set(env, FLEET_VARIABLE, name);
}

/* The user's options come after those of the host, and so win; those of the starter come last. */
static void make_argv(const struct fleet_start *start, const struct hosted_place *place,
		      struct strv *argv)
{
	bool batch = str_eq(start->place.items[2], "batch");
	strv_add(argv, "/proc/self/exe");
	strv_add(argv, start->place.items[2]);
	if (place->slots)
		strv_take(argv, mem_printf(batch ? "-j%u" : "--nproc-per-node=%u", place->slots));
	if (place->node_rank >= 0 && !batch)
		strv_take(argv, mem_printf("--node-rank=%d", place->node_rank));
	strv_add_all(argv, strv_argv(&start->options));
	if (batch)
		return;
	strv_add(argv, "--");
	strv_add_all(argv, strv_argv(&start->command));
}

/* A pipe that already has the token in it: no other process of this user can read that, as it could
 * an environment. */
static int offer_token(const char *token, int *ret_fd, struct err *err)
{
	AUTO(fd_close) int in = -1;
	int r = fd_open_pipe(ret_fd, &in, err);
	if (r < 0)
		return r;
	r = fd_write_all(in, token, strlen(token));
	return r < 0 ? err_set(err, -r, "token: %m") : 0;
}

static int start_agent(const struct fleet_start *start, const struct hosted_place *place,
		       struct piped *ret_piped, int *ret_lifeline, int *ret_report, struct err *err)
{
	AUTO(fd_close) int token = -1, lifeline = -1, held = -1, report = -1, reports = -1;
	AUTO(strv_done) struct strv argv = STRV_INIT, env = STRV_INIT;
	int r;
	if ((r = offer_token(start->place.items[1], &token, err)) < 0 ||
	    (r = fd_open_pipe(&lifeline, &held, err)) < 0 ||
	    (r = fd_open_pipe(&report, &reports, err)) < 0)
		return r;
	make_argv(start, place, &argv);
	make_env(start, place->name, &env);
	const int extra[] = { token, lifeline, reports };
	static_assert(FLEET_FD_TOKEN == 3 && FLEET_FD_LIFELINE == 4 && FLEET_FD_REPORT == 5,
		      "as they are listed");
	const struct piped_spec spec = { .argv = strv_argv(&argv),
					 .envp = strv_argv(&env),
					 .cwd = start->place.items[0],
					 .deaf = true,
					 .extra = extra,
					 .extra_count = ARRAY_LEN(extra) };
	r = piped_start(&spec, ret_piped, err);
	if (r < 0)
		return err_wrap(err, "in %s", start->place.items[0]);
	*ret_lifeline = fd_take(&held);
	*ret_report = fd_take(&report);
	return 0;
}

int hosted_start(struct event_base *base, const struct fleet_start *start,
		 const struct hosted_place *place, const struct hosted_handler *handler, void *arg,
		 struct hosted **ret_hosted, struct err *err)
{
	struct piped piped;
	int lifeline = -1, report = -1;
	int r = start_agent(start, place, &piped, &lifeline, &report, err);
	if (r < 0)
		return r;
	struct hosted *hosted = NEW(struct hosted);
	*hosted = (struct hosted){ .base = base,
				   .handler = handler,
				   .arg = arg,
				   .pid = piped.pid,
				   .pidfd = piped.pidfd,
				   .lifeline = lifeline,
				   .report = report };
	stream_open(&hosted->out, hosted, FLEET_MSG_OUT, piped.out);
	stream_open(&hosted->err, hosted, FLEET_MSG_ERR, piped.err);
	event_assign(&hosted->ended, base, piped.pidfd, EV_READ, on_ended, hosted);
	event_add(&hosted->ended, NULL);
	*ret_hosted = hosted;
	return 0;
}
