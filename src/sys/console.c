#include "sys/console.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"

static bool wants_colour(void)
{
	const char *term = getenv("TERM");
	const char *no_colour = getenv("NO_COLOR");
	return !(no_colour && *no_colour) && term && *term && !str_eq(term, "dumb");
}

void console_init(struct console *console, int fd)
{
	*console = (struct console){ .fd = fd };
	console->screen.terminal = isatty(fd) == 1;
	console->colour = console->screen.terminal && wants_colour();
}

void console_done(struct console *console)
{
	buf_done(&console->out);
}

bool console_same_file(int fd_a, int fd_b)
{
	struct stat a, b;
	if (fstat(fd_a, &a) < 0 || fstat(fd_b, &b) < 0)
		return false;
	return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_rdev == b.st_rdev;
}

/* As fd_write_all(), but other processes share the descriptor and may have made it non-blocking. */
static int write_patiently(int fd, struct buf *data)
{
	while (buf_len(data) > 0) {
		ssize_t n = write(fd, buf_data(data), buf_len(data));
		if (n >= 0)
			buf_consume(data, (size_t)n);
		else if (errno == EAGAIN)
			poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, -1);
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

int console_flush(struct console *console)
{
	int r = console->error ? 0 : write_patiently(console->fd, &console->out);
	if (r < 0)
		console->error = -r;
	console->missing += buf_len(&console->out);
	buf_clear(&console->out);
	return r;
}
