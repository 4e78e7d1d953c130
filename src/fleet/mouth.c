#include "fleet/mouth.h"

#include <errno.h>
#include <event2/event.h>
#include <unistd.h>

#include "base/fd.h"
#include "sys/thread.h"

#define CHUNK 16384

/* After a failed write it goes on reading: the writer must not wait for what leads nowhere. */
static void *speak(void *arg)
{
	struct mouth *mouth = arg;
	char chunk[CHUNK];
	bool broken = false;
	for (;;) {
		ssize_t n = read(mouth->out, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return NULL;
		broken = broken || fd_write_all(mouth->fd, chunk, (size_t)n) < 0;
	}
}

static void write_some(struct mouth *mouth)
{
	while (buf_len(&mouth->waiting) > 0) {
		ssize_t n = write(mouth->in, buf_data(&mouth->waiting), buf_len(&mouth->waiting));
		if (n > 0) {
			buf_consume(&mouth->waiting, (size_t)n);
		} else if (errno == EAGAIN) {
			event_add(&mouth->writable, NULL);
			return;
		} else if (errno != EINTR) {
			return;
		}
	}
}

static void on_writable(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct mouth *mouth = arg;
	write_some(mouth);
	if (buf_len(&mouth->waiting) == 0)
		mouth->on_drained(mouth->arg);
}

int mouth_open(struct mouth *mouth, struct event_base *base, int fd, void (*on_drained)(void *),
	       void *arg, struct err *err)
{
	*mouth = (struct mouth){
		.fd = fd, .in = -1, .out = -1, .on_drained = on_drained, .arg = arg
	};
	int r = fd_open_pipe(&mouth->out, &mouth->in, err);
	if (r < 0)
		return r;
	fd_set_nonblock(mouth->in, true);
	event_assign(&mouth->writable, base, mouth->in, EV_WRITE, on_writable, mouth);
	r = thread_start(&mouth->thread, speak, mouth);
	if (r == 0)
		return 0;
	fd_close(&mouth->in);
	fd_close(&mouth->out);
	return err_set(err, -r, "cannot start a thread: %m");
}

void mouth_say(struct mouth *mouth, const void *data, size_t len)
{
	bool idle = buf_len(&mouth->waiting) == 0;
	buf_append(&mouth->waiting, data, len);
	if (idle)
		write_some(mouth);
}

bool mouth_is_full(const struct mouth *mouth)
{
	return buf_len(&mouth->waiting) > MOUTH_FULL;
}

void mouth_close(struct mouth *mouth)
{
	if (mouth->in < 0)
		return;
	event_del(&mouth->writable);
	fd_set_nonblock(mouth->in, false);
	fd_write_all(mouth->in, buf_data(&mouth->waiting), buf_len(&mouth->waiting));
	fd_close(&mouth->in);
	pthread_join(mouth->thread, NULL);
	fd_close(&mouth->out);
	buf_done(&mouth->waiting);
}
