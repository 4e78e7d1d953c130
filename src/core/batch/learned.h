/* Run times seen so far: the mean estimates the remaining time, the median (of the last
 * LEARNED_WINDOW values) tells what is too long. */
#ifndef CORE_BATCH_LEARNED_H
#define CORE_BATCH_LEARNED_H

#include "base/util.h"

#define LEARNED_WINDOW 63
#define LEARNED_MIN 3 /* values needed before a median is trusted */

struct learned {
	uint64_t count;
	double sum_ns;
	uint64_t window[LEARNED_WINDOW];
};

void learned_add(struct learned *learned, uint64_t ns);
uint64_t learned_mean(const struct learned *learned);	/* 0: nothing seen */
uint64_t learned_median(const struct learned *learned); /* 0: fewer than LEARNED_MIN seen */

#endif
