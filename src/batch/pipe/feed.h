/* Reads a descriptor block by block into files, in a thread of its own: a slow or hung input never
 * stops the loop. Reads the next block only when that is wanted. */
#ifndef BATCH_PIPE_FEED_H
#define BATCH_PIPE_FEED_H

#include "proto/args/blocks.h"

struct event_base;
struct feed;

struct feed_block {
	int fd; /* a file at whose start the block begins; the callback's to close; -1: the end */
	uint64_t bytes;
};

/* Called from the loop, once for every feed_want(). `err`: why there is no block, or NULL. */
typedef void feed_fn(void *arg, const struct feed_block *block, const struct err *err);

/* `fd` is borrowed. */
int feed_new(struct event_base *base, int fd, const struct block_rules *rules, feed_fn *on_block,
	     void *arg, struct feed **ret_feed, struct err *err);

/* Stops reading, at once. NULL does nothing. */
void feed_free(struct feed *feed);

/* Asks for the next block; not while one is asked for. */
void feed_want(struct feed *feed);

/* Without a loop: the next block in `ret_block`; 0 at the end. For --dry-run. */
int feed_next(int fd, struct block_cutter *cutter, struct buf *ret_block, struct err *err);

#endif
