#include "core/batch/reorder.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define WINDOW_MIN 64

void reorder_done(struct reorder *order)
{
	free(order->ended);
	*order = REORDER_INIT;
}

/* Forgets those that have left, and makes room up to `number`. */
static void make_room(struct reorder *order, size_t number)
{
	size_t left = order->next - order->base, kept = order->cap - left;
	size_t cap = MAX(order->cap, (size_t)WINDOW_MIN);
	while (number - order->next >= cap)
		cap *= 2;
	bool *ended = mem_alloc(cap * sizeof(*ended));
	if (kept > 0)
		memcpy(ended, order->ended + left, kept * sizeof(*ended));
	free(order->ended);
	*order = (struct reorder){ ended, order->next, cap, order->next };
}

size_t reorder_end(struct reorder *order, size_t number)
{
	size_t before = order->next;
	if (number < before)
		return 0;
	if (number - order->base >= order->cap)
		make_room(order, number);
	order->ended[number - order->base] = true;
	while (order->next - order->base < order->cap && order->ended[order->next - order->base])
		order->next++;
	return order->next - before;
}
