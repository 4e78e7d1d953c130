#include "watch/client.h"

#include <errno.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "core/worker/worker_page.h"

#define DURATION_MAX_S 1e9

int watch_client_connect(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	strcpy(addr.sun_path, path);
	AUTO(fd_close) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct timeval patience = { .tv_sec = WATCH_CLIENT_PATIENCE_S };
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
	    connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -errno;
	return fd_take(&fd);
}

int watch_client_fill(struct watch_msg *msg, enum watch_op op, unsigned flags, const char *scope,
		      double seconds, int signal)
{
	size_t len = strlen(scope);
	if (len > WATCH_MSG_SCOPE_MAX)
		return -ENAMETOOLONG;
	if (isnan(seconds) || seconds < 0)
		return -EINVAL;
	memset(msg, 0, WATCH_MSG_HEAD);
	msg->version = WATCH_MSG_VERSION;
	msg->op = (uint8_t)op;
	msg->flags = (uint16_t)flags;
	msg->signal = signal;
	msg->duration_ns = seconds > DURATION_MAX_S ? UINT64_MAX : (uint64_t)(seconds * 1e9);
	memcpy(msg->scope, scope, len);
	return (int)(WATCH_MSG_HEAD + len);
}

int watch_client_send(int fd, const struct watch_msg *msg, size_t len)
{
	while (send(fd, msg, len, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
	return 0;
}

int watch_client_receive(int fd, int *ret_fd)
{
	struct watch_reply reply = { 0 };
	struct iovec iov = { .iov_base = &reply, .iov_len = sizeof(reply) };
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	ssize_t n;
	do
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	if (n != sizeof(reply))
		return n == 0 ? -ECONNRESET : -EBADMSG;
	*ret_fd = -1;
	const struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
		memcpy(ret_fd, CMSG_DATA(head), sizeof(int));
	return reply.result;
}

int watch_client_map_page(int fd, struct worker_page **ret_page)
{
	struct watch_msg msg;
	int len = watch_client_fill(&msg, WATCH_OP_PAGE, 0, "", 0, 0);
	int r = watch_client_send(fd, &msg, (size_t)len);
	AUTO(fd_close) int page_fd = -1;
	if (r == 0)
		r = watch_client_receive(fd, &page_fd);
	if (r < 0)
		return r;
	void *page = mmap(NULL, WORKER_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, page_fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	*ret_page = page;
	return 0;
}
