/* File descriptors: owned by one variable, CLOEXEC from birth, closed once. */
#ifndef BASE_FD_H
#define BASE_FD_H

#include "base/buf.h"
#include "base/err.h"

/* Closes and sets to -1; for AUTO(fd_close). A negative value is left alone; errno is kept. */
void fd_close(int *fd);

/* Hands the descriptor over: returns it and leaves -1 behind. */
static inline int fd_take(int *fd)
{
	int taken = *fd;
	*fd = -1;
	return taken;
}

/* Opens those of the descriptors 0 to 2 that are closed on /dev/null. For the start of a program:
 * else the next thing it opens becomes its output, and its children's. 0 or -errno. */
int fd_open_standard(void);

int fd_set_nonblock(int fd, bool on);

/* A pipe, CLOEXEC and blocking. */
int fd_open_pipe(int *ret_read, int *ret_write, struct err *err);

/* Writes all of it, through EINTR and short writes. 0 or -errno. For blocking descriptors. */
int fd_write_all(int fd, const void *data, size_t len);

/* Waits until poll() reports one of the events, or an end: 0, -ETIMEDOUT or -errno. */
int fd_wait(int fd, short events, uint64_t deadline_ns);

/* Appends what one read() of at most `most` bytes gives, through EINTR. How many, or -errno. */
ssize_t fd_read_some(int fd, size_t most, struct buf *buf);

/* Appends everything up to the end of file, at most `limit` bytes: -EFBIG beyond. */
int fd_read_all(int fd, size_t limit, struct buf *ret_data, struct err *err);

/* The content of a file, at most `limit` bytes (procfs files too). */
int file_read(const char *path, size_t limit, struct buf *ret_data, struct err *err);

/* An unnamed file in $TMPDIR or /tmp that is gone when it is closed; writes go to its end. */
int file_temporary(struct err *err);

/* Raises this process's soft limit of open files to the hard one. Returns the old soft limit, which
 * children should get back. */
uint64_t fd_limit_raise(void);

#endif
