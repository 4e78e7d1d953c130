/* A file as the input of an order, through a pipe: programs see what they would see behind another
 * program. The loop writes as the order reads; one that does not read to the end loses the rest. */
#ifndef BATCH_PIPE_STDIN_WRITE_H
#define BATCH_PIPE_STDIN_WRITE_H

#include "base/err.h"

struct event_base;
struct event;

struct stdin_write {
	struct event *writable; /* NULL: nothing is left to write */
	int file;		/* borrowed */
	int fd;			/* writing end */
	off_t at, end;
};

#define STDIN_WRITE_INIT ((struct stdin_write){ .file = -1, .fd = -1 })

/* Begins with a new reader, from the start of the file. `ret_input`, the reading end, is the
 * caller's. `file` is borrowed until stdin_write_stop(). */
int stdin_write_start(struct stdin_write *writer, struct event_base *base, int file, int *ret_input,
		      struct err *err);

void stdin_write_stop(struct stdin_write *writer); /* leaves STDIN_WRITE_INIT */

#endif
