/* A stream of frames with descriptors attached, over one end of a Unix socket pair. Frames have no
 * size limit and neither end ever blocks: what the socket does not take waits in memory.
 *
 * Sending: wire_begin(), append the payload to `out`, wire_end(). Receiving: wire_fill() when the
 * descriptor is readable, then wire_next() until it returns 0.
 *
 * Both ends are the same program, so payloads may be plain structs; copy them before use, they are
 * not aligned. Inconsistent frames give -EPROTO. */
#ifndef SYS_WARDEN_WIRE_H
#define SYS_WARDEN_WIRE_H

#include "base/buf.h"
#include "base/err.h"

#define WIRE_FDS_MAX 5

/* The descriptors of one frame. */
struct wire_fds {
	int fds[WIRE_FDS_MAX];
	size_t count;
	uint64_t pos; /* sending: offset in the stream of the frame that carries them */
	bool owned;   /* sending: duplicates of the caller's, because the frame has to wait */
};

struct wire {
	int fd; /* owned */
	struct buf in, out;
	struct wire_fds *in_fds; /* received, not yet assigned to their frames, oldest first */
	size_t in_fd_count, in_fd_cap;
	struct wire_fds *out_fds; /* of frames in `out`, oldest first */
	size_t out_fd_count, out_fd_cap;
	uint64_t out_pos;   /* offset in the stream of the first byte in `out` */
	size_t frame_start; /* where in `out` the frame under construction begins */
	bool crowded;	    /* the last flush hit the user's limit of descriptors in flight */
	bool drained;	    /* the last fill took all that there was; whoever polls resets it */
};

struct wire_frame {
	uint32_t type;
	const unsigned char *data; /* valid until the next wire_fill() */
	size_t len;
	/* for the receiver to take; wire_frame_done() closes the rest */
	int fds[WIRE_FDS_MAX];
	size_t fd_count;
	bool fds_lost; /* there were more, but this process has reached its limit of open files */
};

void wire_init(struct wire *wire, int fd); /* takes `fd`, a stream socket */
void wire_done(struct wire *wire);

/* Frames of one type. Nothing else may touch `out` between begin and end. `fds` are borrowed for
 * the call: duplicated if the frame cannot leave at once. Fails (frame withdrawn) only with EMFILE,
 * or permanently with EPIPE and the like. */
void wire_begin(struct wire *wire, uint32_t type);
int wire_end(struct wire *wire, const int *fds, size_t fd_count);
void wire_end_later(struct wire *wire); /* without descriptors; leaves with the next flush */

/* Sends as much as the socket takes: 0, also when something is left (wire_waits), or -errno. */
int wire_flush(struct wire *wire);

/* Something is left: flush again when the socket is writable; if `crowded`, after a while. */
bool wire_waits(const struct wire *wire);

/* Receives once: bytes, 0 at end of stream, -EAGAIN when there is nothing. */
ssize_t wire_fill(struct wire *wire);

/* 1 with a whole frame, 0 when there is none yet, -EPROTO. */
int wire_next(struct wire *wire, struct wire_frame *ret_frame);
void wire_frame_done(struct wire_frame *frame);

#endif
