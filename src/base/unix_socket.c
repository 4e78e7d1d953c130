#include "base/unix_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/fd.h"

static int address_of(const char *path, struct sockaddr_un *ret, struct err *err)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(ret->sun_path))
		return err_set(err, ENAMETOOLONG, "%s: too long for a socket", path);
	strcpy(ret->sun_path, path);
	return 0;
}

int unix_listen(const char *path, int type, struct err *err)
{
	struct sockaddr_un addr;
	int r = address_of(path, &addr, err);
	if (r < 0)
		return r;
	AUTO(fd_close) int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* The inode gets its mode from the socket, so it is private from the start. */
	if (fd < 0 || fchmod(fd, 0600) < 0 ||
	    bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, SOMAXCONN) < 0)
		return err_set(err, errno, "listen on %s: %m", path);
	return fd_take(&fd);
}

int unix_connect(const char *path, uint64_t timeout_ns, struct err *err)
{
	const struct timeval limit = clock_timeval(timeout_ns);
	struct sockaddr_un addr;
	int r = address_of(path, &addr, err);
	if (r < 0)
		return r;
	AUTO(fd_close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0 ||
	    connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return err_set(err, errno, "%s: %m", path);
	return fd_take(&fd);
}
