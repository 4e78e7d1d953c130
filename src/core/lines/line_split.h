/* Cuts a stream of bytes into lines, whatever pieces it arrives in.
 *
 * A line is given out whole, once. What has no end yet is kept until more comes, until it is longer
 * than LINE_SPLIT_MAX, or until line_split_finish(). A carriage return that no newline follows ends
 * a piece too: that is how progress bars redraw themselves. Any byte may occur, NUL included, and
 * every byte that goes in comes out exactly once, in order.
 */
#ifndef CORE_LINES_LINE_SPLIT_H
#define CORE_LINES_LINE_SPLIT_H

#include "base/buf.h"

#define LINE_SPLIT_MAX ((size_t)256 * 1024)

enum line_end {
	LINE_NEWLINE, /* ends in "\n" */
	LINE_RETURN,  /* ends in a "\r" of its own */
	LINE_OPEN,    /* has no end: too long, or the last of its stream */
};

struct line {
	const unsigned char *text; /* with its end; borrowed until the next call */
	size_t len;
	enum line_end end;
	bool continues; /* goes on where a LINE_OPEN stopped */
};

struct line_split {
	/* whole lines may come many at a time: for those who put nothing between them */
	bool blocks;

	struct buf partial;
	const unsigned char *data; /* not yet cut; the caller's */
	size_t len;
	const unsigned char *newline; /* the first one in `data`, once looked for */
	bool newline_known;
	bool partial_given; /* what `partial` holds was given out by the last call */
	bool continues;
};

#define LINE_SPLIT_INIT ((struct line_split){ .blocks = false })

void line_split_done(struct line_split *split);

/* Hands over the next piece of the stream. It must stay as it is until line_split_next() has
 * returned false. */
void line_split_push(struct line_split *split, const void *data, size_t len);
bool line_split_next(struct line_split *split, struct line *ret_line);

/* The stream has ended: gives out what is left. False if that is nothing. */
bool line_split_finish(struct line_split *split, struct line *ret_line);

/* What waits for its end; borrowed until the next call. */
static inline const struct buf *line_split_partial(const struct line_split *split)
{
	return &split->partial;
}

#endif
