#include "fleet/channel.h"

#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

#define CHUNK ((size_t)64 << 10)
#define NOISE_MAX ((size_t)1 << 20) /* what a login shell may print */

static bool is_open(const struct channel *channel)
{
	return channel->in_fd >= 0;
}

void channel_close(struct channel *channel)
{
	if (channel->in_fd >= 0)
		event_del(&channel->readable);
	if (channel->out_fd >= 0)
		event_del(&channel->writable);
	fd_close(&channel->in_fd);
	fd_close(&channel->out_fd);
	buf_done(&channel->in);
	buf_done(&channel->out);
}

static void end(struct channel *channel, const char *why)
{
	channel_close(channel);
	channel->handler->on_end(channel->arg, why);
}

/* ---- reading ---- */

/* Looks for the magic in what has come; forgets what is before it. */
static bool find_magic(struct channel *channel)
{
	struct buf *in = &channel->in;
	const size_t len = strlen(FLEET_MAGIC);
	unsigned char *at = memmem(buf_data(in), buf_len(in), FLEET_MAGIC, len);
	if (at)
		buf_consume(in, (size_t)(at - buf_data(in)) + len);
	channel->greeted = at;
	return at;
}

static void take_frames(struct channel *channel)
{
	struct fleet_msg msg;
	size_t size;
	int r = 0;
	while (is_open(channel) && !channel->held &&
	       (r = fleet_next(&channel->in, &msg, &size)) > 0) {
		/* The frame stays in place while it is dealt with. */
		struct buf in = channel->in;
		channel->in = BUF_INIT;
		channel->handler->on_msg(channel->arg, &msg);
		if (!is_open(channel)) {
			buf_done(&in);
			return;
		}
		channel->in = in;
		buf_consume(&channel->in, size);
	}
	if (r < 0)
		end(channel, "it does not speak as muster does");
}

static void take(struct channel *channel)
{
	if (channel->greeted || find_magic(channel))
		take_frames(channel);
	else if (buf_len(&channel->in) > NOISE_MAX)
		end(channel, "it prints, but is not muster");
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct channel *channel = arg;
	if (what & EV_TIMEOUT) { /* no longer held */
		take(channel);
		return;
	}
	ssize_t n = fd_read_some(fd, CHUNK, &channel->in);
	if (n > 0)
		take(channel);
	else if (n != -EAGAIN)
		end(channel, "the connection ended");
}

void channel_hold(struct channel *channel, bool hold)
{
	if (!is_open(channel) || channel->held == hold)
		return;
	channel->held = hold;
	if (hold)
		event_del(&channel->readable);
	else
		event_add(&channel->readable, NULL);
	/* What was read but not taken: from the loop, not from here. */
	if (!hold && buf_len(&channel->in) > 0)
		event_active(&channel->readable, EV_TIMEOUT, 0);
}

/* ---- writing ---- */

static void write_some(struct channel *channel)
{
	while (buf_len(&channel->out) > 0) {
		ssize_t n = write(channel->out_fd, buf_data(&channel->out), buf_len(&channel->out));
		if (n > 0) {
			buf_consume(&channel->out, (size_t)n);
		} else if (errno == EAGAIN) {
			event_add(&channel->writable, NULL);
			return;
		} else if (errno != EINTR) {
			buf_clear(&channel->out); /* end of file follows */
			return;
		}
	}
}

static void on_writable(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct channel *channel = arg;
	write_some(channel);
	if (buf_len(&channel->out) == 0 && channel->handler->on_drained)
		channel->handler->on_drained(channel->arg);
}

void channel_send(struct channel *channel, const void *data, size_t len)
{
	if (channel->out_fd < 0)
		return;
	bool idle = buf_len(&channel->out) == 0;
	buf_append(&channel->out, data, len);
	if (idle)
		write_some(channel);
}

bool channel_is_full(const struct channel *channel)
{
	return buf_len(&channel->out) > CHANNEL_FULL;
}

void channel_open(struct channel *channel, struct event_base *base, int in_fd, int out_fd,
		  bool greeted, const struct channel_handler *handler, void *arg)
{
	*channel = (struct channel){
		.in_fd = in_fd, .out_fd = out_fd, .greeted = greeted, .handler = handler, .arg = arg
	};
	fd_set_nonblock(in_fd, true);
	fd_set_nonblock(out_fd, true);
	event_assign(&channel->readable, base, in_fd, EV_READ | EV_PERSIST, on_readable, channel);
	event_assign(&channel->writable, base, out_fd, EV_WRITE, on_writable, channel);
	event_add(&channel->readable, NULL);
}
