/* The state of the last line of a terminal, or of a file read as lines, that several writers share.
 *
 * Each writer's lines come out whole, each with its prefix once. A writer may leave the last line
 * open: a progress bar that returned to its start, a line too long to keep, a prompt. When another
 * writer writes meanwhile, a terminal gets the open line wiped (its writer will draw a bar or
 * prompt again), everything else gets a newline, so that no line ever holds text of two writers.
 *
 * Pure: appends to a buffer what the caller should write. */
#ifndef CORE_LINES_SCREEN_H
#define CORE_LINES_SCREEN_H

#include "core/lines/line_split.h"

enum screen_state {
	SCREEN_FRESH,	 /* at the start of an empty line */
	SCREEN_RETURNED, /* at the start of a line with something on it */
	SCREEN_SHOWN,	 /* shows a line that its writer has not ended: screen_show() */
	SCREEN_CUT,	 /* in the middle of a line that comes in pieces */
};

struct screen {
	bool terminal;
	enum screen_state state;
	uint64_t owner; /* the last writer; 0: none */
	size_t shown;	/* bytes shown of the owner's unfinished line */
};

/* One piece of `writer`'s output. `prefix` may be empty. */
void screen_put(struct screen *screen, uint64_t writer, const char *prefix, const struct line *line,
		struct buf *out);

/* Draws a line before its end has come, for a user who waits for it (prompts, progress bars); only
 * on a terminal. The text must come again with screen_put(), which then adds the new part. */
void screen_show(struct screen *screen, uint64_t writer, const char *prefix,
		 const struct buf *partial, struct buf *out);

#endif
