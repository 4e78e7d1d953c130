/* Cuts a stream of bytes into blocks of whole records, at the places where GNU parallel's --pipe
 *cuts it.
 *
 *	while ((r = block_cutter_next(&cutter, &block, &err)) >= 0) {
 *		if (r > 0)
 *			use(&block);
 *		else if (block_cutter_over(&cutter))
 *			break;
 *		else
 *			// append block_cutter_wants() bytes to cutter.in, or block_cutter_end()
 *	}
 *
 * Holds a few blocks in memory, however long the stream is. */
#ifndef PROTO_ARGS_BLOCKS_H
#define PROTO_ARGS_BLOCKS_H

#include <regex.h>

#include "base/buf.h"
#include "base/err.h"

#define BLOCK_SIZE_DEFAULT ((uint64_t)1 << 20)
#define BLOCK_SIZE_MAX (((uint64_t)1 << 31) - 1)

struct block_rules {
	uint64_t size;		       /* bytes of a block, as far as records allow */
	uint64_t records;	       /* exactly so many records a block; 0: as many as fit */
	uint64_t lines;		       /* a record is so many lines; 0: not given */
	const char *recstart, *recend; /* of a record, with escapes such as \n; NULL: not given */
	bool regexp;		       /* these two are extended regular expressions */
	bool remove;		       /* leave out what separates records */
	const char *header; /* what comes first in every block: ":" (a line), a number of lines, or
			     * an extended regular expression; NULL: nothing */
};

/* Where two records meet: the first one ends at `cut`. */
struct block_border {
	size_t start, cut, end; /* of the separator */
};

struct block_cutter {
	struct block_rules rules;
	struct buf in;		     /* read and not yet cut */
	struct buf recstart, recend; /* without escapes */
	regex_t border, head;
	bool has_border_regex, has_head_regex;
	uint64_t head_lines; /* 0: the regular expression decides */
	struct buf header;
	bool header_due; /* it is not complete yet */
	bool ended;
	uint64_t size; /* of a block now: grows until a record fits */
};

int block_cutter_init(struct block_cutter *cutter, const struct block_rules *rules,
		      struct err *err);
void block_cutter_done(struct block_cutter *cutter);

/* How many bytes to append to `in` before the next call; never 0. */
size_t block_cutter_wants(const struct block_cutter *cutter);

/* There are no more bytes. */
void block_cutter_end(struct block_cutter *cutter);

/* 1 with a block, 0 if it needs more bytes or has none left; -EFBIG: a record is longer than
 * BLOCK_SIZE_MAX. */
int block_cutter_next(struct block_cutter *cutter, struct buf *ret_block, struct err *err);

bool block_cutter_over(const struct block_cutter *cutter);

#endif
