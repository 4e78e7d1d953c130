/* Our own stdout or stderr, or both if they are one file: a screen with a descriptor. Only the
 * output thread uses it, and may block here as long as the terminal is paused. */
#ifndef SYS_CONSOLE_H
#define SYS_CONSOLE_H

#include "core/lines/screen.h"

struct console {
	int fd;
	struct screen screen;
	bool colour;
	struct buf out; /* not yet written */
	uint64_t missing;
	int error; /* errno of the first write that failed; nothing is written after it */
};

void console_init(struct console *console, int fd);
void console_done(struct console *console);

/* Writes `out`. Returns -errno the first time this fails, and 0 ever after. */
int console_flush(struct console *console);

/* Whether both descriptors lead to the same file. */
bool console_same_file(int fd_a, int fd_b);

#endif
