/* Our stdout and stderr: whole blocks in the order in which they came, and a status line below
 * them.
 *
 * Nothing here blocks the loop: a paused terminal or a full pipe makes blocks wait, in memory or in
 * the file they are in. */
#ifndef BATCH_PRINTER_H
#define BATCH_PRINTER_H

#include "base/buf.h"

struct event_base;
struct printer;

struct printer *printer_new(struct event_base *base);
void printer_free(struct printer *printer);

/* Queues a text for stdout (1) or stderr (2). */
void printer_text(struct printer *printer, int stream, const void *text, size_t len);

/* Queues the first `len` bytes of a file; the descriptor belongs to the printer from now on. */
void printer_file(struct printer *printer, int stream, int fd, uint64_t len);

/* Replaces the status line (stderr); an empty text takes it away. Skipped while blocks wait. */
void printer_status(struct printer *printer, const char *text);

/* Takes the status line away and waits until everything is written. */
void printer_flush(struct printer *printer);

#endif
