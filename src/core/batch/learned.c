#include "core/batch/learned.h"

#include <stdlib.h>
#include <string.h>

void learned_add(struct learned *learned, uint64_t ns)
{
	learned->window[learned->count % LEARNED_WINDOW] = ns;
	learned->count++;
	learned->sum_ns += (double)ns;
}

uint64_t learned_mean(const struct learned *learned)
{
	return learned->count ? (uint64_t)(learned->sum_ns / (double)learned->count) : 0;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

uint64_t learned_median(const struct learned *learned)
{
	uint64_t sorted[LEARNED_WINDOW];
	size_t count = MIN(learned->count, (uint64_t)LEARNED_WINDOW);
	if (count < LEARNED_MIN)
		return 0;
	memcpy(sorted, learned->window, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), compare);
	return count % 2 ? sorted[count / 2] : sorted[count / 2 - 1] / 2 + sorted[count / 2] / 2;
}
