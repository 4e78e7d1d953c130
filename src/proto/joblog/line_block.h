/* Lines of the job's one log, as a host sends them: blocks, one after the other.
 *
 *     kind (1 byte)  rank (4 bytes)  number (8 bytes)  length (4 bytes)  text
 *
 * Integers are little-endian. Kinds 0 to 2 are lines (stdout, stderr, both), without their ends;
 * `number` counts the lines of the host, also those that it had to drop. Kind 3 begins each stream:
 * `number` is an id of the host, drawn once. Kind 4 follows: the lines before this number were sent
 * before, perhaps to another. Kind 5 tells the number of the line to come. */
#ifndef PROTO_JOBLOG_LINE_BLOCK_H
#define PROTO_JOBLOG_LINE_BLOCK_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"

#define LINE_BLOCK_MAX ((size_t)8 << 10) /* bytes of text */
#define LINE_BLOCK_HEAD 17

enum line_kind {
	LINE_STDOUT,
	LINE_STDERR,
	LINE_BOTH,
	LINE_BEGIN,
	LINE_FROM,
	LINE_NEXT,
	LINE_KIND_COUNT,
};

struct line_block {
	enum line_kind kind;
	uint32_t rank;
	uint64_t number;
	struct bytes text;
};

void line_block_put(const struct line_block *block, struct buf *out);

/* Reads such a stream, whatever pieces it arrives in. Holds at most one block. */
struct line_blocks {
	struct buf held;
	bool given; /* the last call returned what `held` has */
};

#define LINE_BLOCKS_INIT ((struct line_blocks){ .given = false })
void line_blocks_done(struct line_blocks *blocks);

/* Takes the beginning of `input` and moves it on. 1: *ret_block, borrowed until the next call.
 * 0: nothing is left. -EPROTO: it is not such a stream. */
int line_blocks_next(struct line_blocks *blocks, struct bytes *input, struct line_block *ret_block,
		     struct err *err);

#endif
