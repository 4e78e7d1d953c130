#include "batch/pipe/pour.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "base/fd.h"

#define PIPE_SIZE_WANTED (1 << 20) /* a usual block, at once */
#define PIECE ((size_t)1 << 20)

void pour_stop(struct pour *pour)
{
	if (pour->writable)
		event_free(pour->writable);
	fd_close(&pour->fd);
	*pour = POUR_INIT;
}

/* True while there is more to write. */
static bool write_some(struct pour *pour)
{
	while (pour->at < pour->end) {
		ssize_t n = sendfile(pour->fd, pour->file, &pour->at, PIECE);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 && errno == EAGAIN;
	}
	return false;
}

static void on_writable(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct pour *pour = arg;
	if (!write_some(pour))
		pour_stop(pour);
}

int pour_start(struct pour *pour, struct event_base *base, int file, int *ret_input,
	       struct err *err)
{
	struct stat info;
	int input, output;
	pour_stop(pour);
	int r = fstat(file, &info) < 0 ? err_set(err, errno, "stat: %m")
				       : fd_open_pipe(&input, &output, err);
	if (r < 0)
		return r;
	fcntl(output, F_SETPIPE_SZ, PIPE_SIZE_WANTED); /* if we may */
	fd_set_nonblock(output, true);
	*pour = (struct pour){ .file = file, .fd = output, .end = info.st_size };
	if (write_some(pour)) {
		pour->writable = event_new(base, output, EV_WRITE | EV_PERSIST, on_writable, pour);
		event_add(pour->writable, NULL);
	} else {
		pour_stop(pour);
	}
	*ret_input = input;
	return 0;
}
