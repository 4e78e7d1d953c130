/* Things that end in any order and leave in the order of their numbers, from 0 on. How many there
 * will be need not be known; memory is for those between the next one to leave and the last that
 * has ended. */
#ifndef CORE_BATCH_TURNS_H
#define CORE_BATCH_TURNS_H

#include "base/util.h"

struct turns {
	bool *ended; /* of the numbers from `base` on */
	size_t base, cap;
	size_t next; /* the next one to leave */
};

#define TURNS_INIT ((struct turns){ .ended = NULL })

void turns_done(struct turns *turns);

/* The number is over. Returns how many leave now: those from turns->next on, which moves. */
size_t turns_end(struct turns *turns, size_t number);

#endif
