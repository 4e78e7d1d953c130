/* Things that end in any order and leave in the order of their numbers, from 0 on. How many there
 * will be need not be known; memory is for those between the next one to leave and the last that
 * has ended. */
#ifndef CORE_BATCH_REORDER_H
#define CORE_BATCH_REORDER_H

#include "base/util.h"

struct reorder {
	bool *ended; /* of the numbers from `base` on */
	size_t base, cap;
	size_t next; /* the next one to leave */
};

#define REORDER_INIT ((struct reorder){ .ended = NULL })

void reorder_done(struct reorder *order);

/* The number is over. Returns how many leave now: those from order->next on, which moves. */
size_t reorder_end(struct reorder *order, size_t number);

#endif
