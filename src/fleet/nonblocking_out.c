#include "fleet/nonblocking_out.h"

#include <errno.h>
#include <event2/event.h>
#include <unistd.h>

#include "base/fd.h"
#include "sys/thread.h"

#define CHUNK 16384

/* After a failed write it goes on reading: the writer must not wait for what leads nowhere. */
static void *speak(void *arg)
{
	struct nonblocking_out *out = arg;
	char chunk[CHUNK];
	bool broken = false;
	for (;;) {
		ssize_t n = read(out->out, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return NULL;
		broken = broken || fd_write_all(out->fd, chunk, (size_t)n) < 0;
	}
}

static void write_some(struct nonblocking_out *out)
{
	while (buf_len(&out->waiting) > 0) {
		ssize_t n = write(out->in, buf_data(&out->waiting), buf_len(&out->waiting));
		if (n > 0) {
			buf_consume(&out->waiting, (size_t)n);
		} else if (errno == EAGAIN) {
			event_add(&out->writable, NULL);
			return;
		} else if (errno != EINTR) {
			return;
		}
	}
}

static void on_writable(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct nonblocking_out *out = arg;
	write_some(out);
	if (buf_len(&out->waiting) == 0)
		out->on_drained(out->arg);
}

int nonblocking_out_open(struct nonblocking_out *out, struct event_base *base, int fd,
			 void (*on_drained)(void *), void *arg, struct err *err)
{
	*out = (struct nonblocking_out){
		.fd = fd, .in = -1, .out = -1, .on_drained = on_drained, .arg = arg
	};
	int r = fd_open_pipe(&out->out, &out->in, err);
	if (r < 0)
		return r;
	fd_set_nonblock(out->in, true);
	event_assign(&out->writable, base, out->in, EV_WRITE, on_writable, out);
	r = thread_start(&out->thread, speak, out);
	if (r == 0)
		return 0;
	fd_close(&out->in);
	fd_close(&out->out);
	return err_set(err, -r, "cannot start a thread: %m");
}

void nonblocking_out_write(struct nonblocking_out *out, const void *data, size_t len)
{
	bool idle = buf_len(&out->waiting) == 0;
	buf_append(&out->waiting, data, len);
	if (idle)
		write_some(out);
}

bool nonblocking_out_is_full(const struct nonblocking_out *out)
{
	return buf_len(&out->waiting) > NONBLOCKING_OUT_FULL;
}

void nonblocking_out_close(struct nonblocking_out *out)
{
	if (out->in < 0)
		return;
	event_del(&out->writable);
	fd_set_nonblock(out->in, false);
	fd_write_all(out->in, buf_data(&out->waiting), buf_len(&out->waiting));
	fd_close(&out->in);
	pthread_join(out->thread, NULL);
	fd_close(&out->out);
	buf_done(&out->waiting);
}
