/* A file as the input of an order, through a pipe: programs see what they would see behind another
 * program. The loop writes as the order reads; one that does not read to the end loses the rest. */
#ifndef BATCH_PIPE_POUR_H
#define BATCH_PIPE_POUR_H

#include "base/err.h"

struct event_base;
struct event;

struct pour {
	struct event *writable; /* NULL: nothing is left to write */
	int file;		/* borrowed */
	int fd;			/* writing end */
	off_t at, end;
};

#define POUR_INIT ((struct pour){ .file = -1, .fd = -1 })

/* Begins with a new reader, from the start of the file. `ret_input`, the reading end, is the
 * caller's. `file` is borrowed until pour_stop(). */
int pour_start(struct pour *pour, struct event_base *base, int file, int *ret_input,
	       struct err *err);

void pour_stop(struct pour *pour); /* leaves POUR_INIT */

#endif
