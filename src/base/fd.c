#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define READ_CHUNK 4096

void fd_close(int *fd)
{
	if (*fd < 0)
		return;
	int saved = errno;
	close(*fd);
	errno = saved;
	*fd = -1;
}

int fd_open_standard(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_NOCTTY) < 0)
			return -errno;
	return 0;
}

int fd_set_nonblock(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0)
		return -errno;
	flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
	return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}

int fd_open_pipe(int *ret_read, int *ret_write, struct err *err)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(err, errno, "pipe: %m");
	*ret_read = ends[0];
	*ret_write = ends[1];
	return 0;
}

int fd_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;
	while (len > 0) {
		ssize_t n = write(fd, p, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int fd_wait(int fd, short events, uint64_t deadline_ns)
{
	struct pollfd poll_fd = { .fd = fd, .events = events };
	for (uint64_t now_ns; (now_ns = clock_now_ns()) < deadline_ns;) {
		int r = poll(&poll_fd, 1, clock_left_ms(deadline_ns, now_ns));
		if (r > 0)
			return 0;
		if (r < 0 && errno != EINTR)
			return -errno;
	}
	return -ETIMEDOUT;
}

ssize_t fd_read_some(int fd, size_t most, struct buf *buf)
{
	ssize_t n;
	do
		n = read(fd, buf_reserve(buf, most), most);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		buf_commit(buf, (size_t)n);
	return n < 0 ? -errno : n;
}

int fd_read_all(int fd, size_t limit, struct buf *ret_data, struct err *err)
{
	size_t total = 0;
	for (;;) {
		ssize_t n = read(fd, buf_reserve(ret_data, READ_CHUNK), READ_CHUNK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(err, errno, "read: %m");
		if (n == 0)
			return 0;
		total += (size_t)n;
		if (total > limit)
			return err_set(err, EFBIG, "larger than %zu bytes", limit);
		buf_commit(ret_data, (size_t)n);
	}
}

int file_read(const char *path, size_t limit, struct buf *ret_data, struct err *err)
{
	AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return err_set(err, errno, "%s: %m", path);
	int r = fd_read_all(fd, limit, ret_data, err);
	return r < 0 ? err_wrap(err, "%s", path) : 0;
}

uint64_t fd_limit_raise(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	uint64_t soft = limit.rlim_cur;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	return soft;
}

int file_temporary(struct err *err)
{
	const char *dir = getenv("TMPDIR");
	dir = dir && *dir ? dir : "/tmp";
	int fd = open(dir, O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
		AUTO_FREE char *path = mem_printf("%s/muster-XXXXXX", dir);
		fd = mkostemp(path, O_APPEND | O_CLOEXEC);
		if (fd >= 0)
			unlink(path);
	}
	return fd < 0 ? err_set(err, errno, "%s: cannot make a temporary file: %m", dir) : fd;
}
