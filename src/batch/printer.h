/* Our stdout and stderr: whole blocks in the order in which they came, and a status line below
 * them.
 *
 * Nothing here blocks the loop: when a terminal is paused or a pipe is full, blocks wait, in memory
 * or in their file. */
#ifndef BATCH_PRINTER_H
#define BATCH_PRINTER_H

#include "base/buf.h"

struct event_base;
struct printer;

struct printer *printer_new(struct event_base *base);
void printer_free(struct printer *printer);

/* Queues a text for stdout (1) or stderr (2). */
void printer_text(struct printer *printer, int stream, const void *text, size_t len);

/* The same with `prefix` in front of every line; NULL: none. */
void printer_lines(struct printer *printer, int stream, const char *prefix, const void *text,
		   size_t len);

/* Queues the bytes of a file from `from` up to `end`; takes over the descriptor. */
void printer_file(struct printer *printer, int stream, const char *prefix, int fd, uint64_t from,
		  uint64_t end);

/* Replaces the status line (stderr); an empty text removes it. Skipped while blocks wait. */
void printer_status(struct printer *printer, const char *text);

/* Removes the status line and waits until everything is written. */
void printer_flush(struct printer *printer);

#endif
