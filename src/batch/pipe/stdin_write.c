#include "batch/pipe/stdin_write.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "base/fd.h"

#define PIPE_SIZE_WANTED (1 << 20) /* a usual block, at once */
#define PIECE ((size_t)1 << 20)

void stdin_write_stop(struct stdin_write *writer)
{
	if (writer->writable)
		event_free(writer->writable);
	fd_close(&writer->fd);
	*writer = STDIN_WRITE_INIT;
}

/* True while there is more to write. */
static bool write_some(struct stdin_write *writer)
{
	while (writer->at < writer->end) {
		ssize_t n = sendfile(writer->fd, writer->file, &writer->at, PIECE);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 && errno == EAGAIN;
	}
	return false;
}

static void on_writable(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct stdin_write *writer = arg;
	if (!write_some(writer))
		stdin_write_stop(writer);
}

int stdin_write_start(struct stdin_write *writer, struct event_base *base, int file, int *ret_input,
		      struct err *err)
{
	struct stat info;
	int input, output;
	stdin_write_stop(writer);
	int r = fstat(file, &info) < 0 ? err_set(err, errno, "stat: %m")
				       : fd_open_pipe(&input, &output, err);
	if (r < 0)
		return r;
	fcntl(output, F_SETPIPE_SZ, PIPE_SIZE_WANTED); /* if we may */
	fd_set_nonblock(output, true);
	*writer = (struct stdin_write){ .file = file, .fd = output, .end = info.st_size };
	if (write_some(writer)) {
		writer->writable =
			event_new(base, output, EV_WRITE | EV_PERSIST, on_writable, writer);
		event_add(writer->writable, NULL);
	} else {
		stdin_write_stop(writer);
	}
	*ret_input = input;
	return 0;
}
