/* What is on the last line of a terminal, or of a file read as lines, that several writers share.
 *
 * Each writer's lines come out whole, each with its prefix once. A writer may leave the last line
 * open: a progress bar that returned to its start, a line too long to be kept, a prompt. When
 * another writer comes in between, a terminal gets the open line wiped (a bar, a prompt: they will
 * be drawn again), everything else gets a newline, so that no line ever holds the words of two
 * writers.
 *
 * Pure: appends to a buffer what is to be written.
 */
#ifndef CORE_LINES_SCREEN_H
#define CORE_LINES_SCREEN_H

#include "core/lines/line_split.h"

enum screen_state {
	SCREEN_FRESH,	 /* at the start of an empty line */
	SCREEN_RETURNED, /* at the start of a line with something on it */
	SCREEN_SHOWN,	 /* a line is drawn that its writer has not ended: screen_show() */
	SCREEN_CUT,	 /* in the middle of a line that was given out in pieces */
};

struct screen {
	bool terminal;
	enum screen_state state;
	uint64_t owner; /* the number of who wrote last; 0 nobody */
	size_t shown;	/* bytes of the owner's unfinished line that are drawn */
};

/* One piece of `writer`'s output. `prefix` may be empty. */
void screen_put(struct screen *screen, uint64_t writer, const char *prefix, const struct line *line,
		struct buf *out);

/* Draws a line before its end has come, for people who wait for it (prompts, progress bars); only
 * on a terminal. The text must come again with screen_put(), which then adds what is new. */
void screen_show(struct screen *screen, uint64_t writer, const char *prefix,
		 const struct buf *partial, struct buf *out);

#endif
