#include "sys/warden_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/mem.h"

#define READ_CHUNK ((size_t)8192)
#define KEEP_MAX ((size_t)65536) /* a buffer that grew beyond this for one frame is freed */

struct header {
	uint64_t len; /* of the payload */
	uint32_t type;
	uint32_t fd_count;
};

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * WIRE_FDS_MAX)];
};

static void close_all(int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		fd_close(&fds[i]);
}

void wire_init(struct wire *wire, int fd)
{
	*wire = (struct wire){ .fd = fd };
}

void wire_done(struct wire *wire)
{
	for (size_t i = 0; i < wire->out_fd_count; i++)
		if (wire->out_fds[i].owned)
			close_all(wire->out_fds[i].fds, wire->out_fds[i].count);
	for (size_t i = 0; i < wire->in_fd_count; i++)
		close_all(wire->in_fds[i].fds, wire->in_fds[i].count);
	free(wire->out_fds);
	free(wire->in_fds);
	buf_done(&wire->in);
	buf_done(&wire->out);
	fd_close(&wire->fd);
	*wire = (struct wire){ .fd = -1 };
}

void wire_begin(struct wire *wire, uint32_t type)
{
	wire->frame_start = buf_len(&wire->out);
	buf_append(&wire->out, &(struct header){ .type = type }, sizeof(struct header));
}

/* Withdraws the newest frame, of which nothing has been sent. */
static int withdraw(struct wire *wire, struct wire_fds *fds, size_t dup_count, int code)
{
	close_all(fds->fds, dup_count);
	wire->out.end -= (size_t)(wire->out_pos + buf_len(&wire->out) - fds->pos);
	wire->out_fd_count--;
	return -code;
}

static int own_fds(struct wire *wire, struct wire_fds *fds)
{
	for (size_t i = 0; i < fds->count; i++) {
		int copy = fcntl(fds->fds[i], F_DUPFD_CLOEXEC, 3);
		if (copy < 0)
			return withdraw(wire, fds, i, errno);
		fds->fds[i] = copy;
	}
	fds->owned = true;
	return 0;
}

static void close_frame(struct wire *wire, size_t fd_count)
{
	struct header header;
	unsigned char *frame = buf_data(&wire->out) + wire->frame_start;
	memcpy(&header, frame, sizeof(header));
	header.len = buf_len(&wire->out) - wire->frame_start - sizeof(header);
	header.fd_count = (uint32_t)fd_count;
	memcpy(frame, &header, sizeof(header));
}

void wire_end_later(struct wire *wire)
{
	close_frame(wire, 0);
}

int wire_end(struct wire *wire, const int *fds, size_t fd_count)
{
	assert(fd_count <= WIRE_FDS_MAX);
	close_frame(wire, fd_count);
	if (fd_count > 0) {
		ARRAY_RESERVE(wire->out_fds, wire->out_fd_count, wire->out_fd_cap);
		struct wire_fds *carried = &wire->out_fds[wire->out_fd_count++];
		*carried = (struct wire_fds){ .count = fd_count,
					      .pos = wire->out_pos + wire->frame_start };
		memcpy(carried->fds, fds, fd_count * sizeof(int));
	}
	int r = wire_flush(wire);
	if (r < 0)
		return r;
	/* Only the frame just added can still have borrowed descriptors. */
	struct wire_fds *last = wire->out_fd_count ? &wire->out_fds[wire->out_fd_count - 1] : NULL;
	return last && !last->owned ? own_fds(wire, last) : 0;
}

static void attach(struct msghdr *msg, union control *control, const struct wire_fds *fds)
{
	size_t size = sizeof(int) * fds->count;
	msg->msg_control = control->bytes;
	msg->msg_controllen = CMSG_SPACE(size);
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg);
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(size);
	memcpy(CMSG_DATA(cmsg), fds->fds, size);
}

static void shift(struct wire_fds *queue, size_t *count)
{
	*count -= 1;
	memmove(queue, queue + 1, *count * sizeof(*queue));
}

/* One sendmsg() never spans two frames with descriptors: they travel with the first byte. */
static ssize_t send_some(struct wire *wire)
{
	union control control = { .bytes = { 0 } };
	struct iovec iov = { buf_data(&wire->out), buf_len(&wire->out) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct wire_fds *first = wire->out_fds, *next = wire->out_fd_count ? first : NULL;
	bool with_fds = next && next->pos == wire->out_pos;
	if (with_fds) {
		attach(&msg, &control, first);
		next = wire->out_fd_count > 1 ? first + 1 : NULL;
	}
	if (next)
		iov.iov_len = MIN(iov.iov_len, next->pos - wire->out_pos);

	ssize_t n = sendmsg(wire->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	if (with_fds) {
		if (first->owned)
			close_all(first->fds, first->count);
		shift(wire->out_fds, &wire->out_fd_count);
	}
	wire->out_pos += (uint64_t)n;
	buf_consume(&wire->out, (size_t)n);
	return n;
}

static void shrink(struct buf *buf)
{
	if (buf_len(buf) == 0 && buf->cap > KEEP_MAX)
		buf_done(buf);
}

int wire_flush(struct wire *wire)
{
	wire->crowded = false;
	while (buf_len(&wire->out) > 0) {
		ssize_t n = send_some(wire);
		if (n == -EINTR)
			continue;
		wire->crowded = n == -ETOOMANYREFS;
		if (n == -EAGAIN || n == -ETOOMANYREFS)
			return 0;
		if (n < 0)
			return (int)n;
	}
	shrink(&wire->out);
	return 0;
}

bool wire_waits(const struct wire *wire)
{
	return buf_len(&wire->out) > 0;
}

/* The kernel delivers the descriptors of at most one frame per call. */
static void keep_fds(struct wire *wire, struct msghdr *msg)
{
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg);
	bool lost = msg->msg_flags & MSG_CTRUNC;
	if (!cmsg && !lost)
		return;
	ARRAY_RESERVE(wire->in_fds, wire->in_fd_count, wire->in_fd_cap);
	struct wire_fds *batch = &wire->in_fds[wire->in_fd_count++];
	*batch = (struct wire_fds){ .count = 0 };
	if (cmsg && cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS) {
		batch->count = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(batch->fds, CMSG_DATA(cmsg), batch->count * sizeof(int));
	}
}

/* The missing part of a long frame, so that 2 MB do not take 256 calls. */
static size_t wanted(const struct wire *wire)
{
	struct header header;
	if (buf_len(&wire->in) < sizeof(header))
		return READ_CHUNK;
	memcpy(&header, buf_data(&wire->in), sizeof(header));
	size_t whole = sizeof(header) + header.len;
	return whole > buf_len(&wire->in) ? MAX(READ_CHUNK, whole - buf_len(&wire->in))
					  : READ_CHUNK;
}

ssize_t wire_fill(struct wire *wire)
{
	shrink(&wire->in);
	union control control;
	size_t len = wanted(wire);
	struct iovec iov = { buf_reserve(&wire->in, len), len };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	ssize_t n;
	do
		n = recvmsg(wire->fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	keep_fds(wire, &msg);
	/* Where descriptors are, the kernel stops although more has come. */
	wire->drained = (size_t)n < len && msg.msg_controllen == 0;
	buf_commit(&wire->in, (size_t)n);
	return n;
}

int wire_next(struct wire *wire, struct wire_frame *ret_frame)
{
	struct header header;
	if (buf_len(&wire->in) < sizeof(header))
		return 0;
	memcpy(&header, buf_data(&wire->in), sizeof(header));
	if (header.fd_count > WIRE_FDS_MAX || header.len > SIZE_MAX - sizeof(header))
		return -EPROTO;
	if (buf_len(&wire->in) - sizeof(header) < header.len)
		return 0;

	*ret_frame = (struct wire_frame){ .type = header.type,
					  .data = buf_data(&wire->in) + sizeof(header),
					  .len = header.len };
	if (header.fd_count > 0 && wire->in_fd_count > 0) {
		ret_frame->fd_count = wire->in_fds[0].count;
		memcpy(ret_frame->fds, wire->in_fds[0].fds, sizeof(ret_frame->fds));
		shift(wire->in_fds, &wire->in_fd_count);
	}
	ret_frame->fds_lost = ret_frame->fd_count < header.fd_count;
	buf_consume(&wire->in, sizeof(header) + header.len);
	return 1;
}

void wire_frame_done(struct wire_frame *frame)
{
	close_all(frame->fds, frame->fd_count);
	frame->fd_count = 0;
}
