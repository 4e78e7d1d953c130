/* Cuts a stream of bytes into lines, whatever pieces it arrives in.
 *
 * It returns each line whole, once. It keeps a line without an end until more data comes, until the
 * line is longer than LINE_SPLIT_MAX, or until line_split_finish(). A carriage return without a
 * newline after it ends a piece too: that is how progress bars redraw themselves. Any byte may
 * occur, NUL included, and every byte that goes in comes out exactly once, in order. */
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
	bool continues; /* continues a LINE_OPEN */
};

struct line_split {
	/* return many whole lines at once, for callers that put nothing between them */
	bool blocks;

	struct buf partial;
	const unsigned char *data; /* not yet cut; the caller's */
	size_t len;
	const unsigned char *newline; /* the first one in `data`, once found */
	bool newline_known;
	bool partial_given; /* the last call returned what `partial` holds */
	bool continues;
};

#define LINE_SPLIT_INIT ((struct line_split){ .blocks = false })

void line_split_done(struct line_split *split);

/* Takes the next piece of the stream, which must not change until line_split_next() has returned
 * false. */
void line_split_push(struct line_split *split, const void *data, size_t len);
bool line_split_next(struct line_split *split, struct line *ret_line);

/* At the end of the stream: returns the rest. False if nothing is left. */
bool line_split_finish(struct line_split *split, struct line *ret_line);

/* The line without an end so far; borrowed until the next call. */
static inline const struct buf *line_split_partial(const struct line_split *split)
{
	return &split->partial;
}

#endif
