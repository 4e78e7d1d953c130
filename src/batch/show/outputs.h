/* The outputs of orders on their way to the screen: when each one ends, or in the order of the list
 * (-k), with a tag in front of every line where asked (--tag). */
#ifndef BATCH_SHOW_OUTPUTS_H
#define BATCH_SHOW_OUTPUTS_H

#include "base/util.h"

struct outputs;
struct printer;

/* `keep_order`: outputs of order n wait until all before it are over. */
struct outputs *outputs_new(struct printer *printer, bool keep_order);
void outputs_free(struct outputs *outputs);

/* Shows the bytes `from` to `end` of *fd on stdout (1) or stderr (2), in their turn. Takes *fd over
 * if it must be read later. `tag` may be NULL. */
void outputs_add(struct outputs *outputs, size_t order, int stream, const char *tag, int *fd,
		 uint64_t from, uint64_t end);

/* The order is over. */
void outputs_end(struct outputs *outputs, size_t order);

/* Shows what still waits for its turn: the batch is over. */
void outputs_flush(struct outputs *outputs);

#endif
