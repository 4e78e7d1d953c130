/* Reads a descriptor block by block into files, in a thread of its own: a slow or hung input never
 * stops the loop. Reads the next block only when that is wanted. */
#ifndef BATCH_PIPE_STDIN_BLOCKS_H
#define BATCH_PIPE_STDIN_BLOCKS_H

#include "proto/args/blocks.h"

struct event_base;
struct stdin_blocks;

struct stdin_blocks_block {
	int fd; /* a file at whose start the block begins; the callback's to close; -1: the end */
	uint64_t bytes;
};

/* Called from the loop, once for every stdin_blocks_want(). `err`: why there is no block, or NULL.
 */
typedef void stdin_blocks_fn(void *arg, const struct stdin_blocks_block *block,
			     const struct err *err);

/* `fd` is borrowed. */
int stdin_blocks_new(struct event_base *base, int fd, const struct block_rules *rules,
		     stdin_blocks_fn *on_block, void *arg, struct stdin_blocks **ret_blocks,
		     struct err *err);

/* Stops reading, at once. NULL does nothing. */
void stdin_blocks_free(struct stdin_blocks *blocks);

/* Asks for the next block; not while one is asked for. */
void stdin_blocks_want(struct stdin_blocks *blocks);

/* Without a loop: the next block in `ret_block`; 0 at the end. For --dry-run. */
int stdin_blocks_next(int fd, struct block_cutter *cutter, struct buf *ret_block, struct err *err);

#endif
