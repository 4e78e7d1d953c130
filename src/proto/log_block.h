/* What workers printed, as one stream: blocks of bytes, each with the rank of its worker and the
 * stream it was written to.
 *
 *     stream (1 byte: 0 stdout, 1 stderr, 2 both)  rank (4 bytes)  length (4 bytes)  bytes
 *
 * Integers are little-endian. The answer of a host to a question about logs is such a stream. */
#ifndef PROTO_LOG_BLOCK_H
#define PROTO_LOG_BLOCK_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"

#define LOG_BLOCK_MAX ((size_t)64 << 10) /* bytes in one */
#define LOG_BLOCK_HEAD 9

enum log_stream {
	LOG_STDOUT,
	LOG_STDERR,
	LOG_BOTH, /* in the order in which they were written */
	LOG_STREAM_COUNT,
};

/* Appends the head of a block; its bytes must follow. */
void log_block_head(struct buf *out, enum log_stream stream, uint32_t rank, size_t len);

/* Reads such a stream, whatever pieces it arrives in. */
struct log_blocks {
	unsigned char head[LOG_BLOCK_HEAD];
	size_t head_len;
	size_t left; /* bytes of the block that have not come yet */
	enum log_stream stream;
	uint32_t rank;
};

#define LOG_BLOCKS_INIT ((struct log_blocks){ .left = 0 })

/* Takes the beginning of `input` and moves it on. 1: *ret_bytes, borrowed, continue the stream
 * blocks->stream of blocks->rank. 0: nothing is left. -EPROTO: it is not such a stream. */
int log_blocks_next(struct log_blocks *blocks, struct bytes *input, struct bytes *ret_bytes,
		    struct err *err);

#endif
