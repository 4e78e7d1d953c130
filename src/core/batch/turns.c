#include "core/batch/turns.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define WINDOW_MIN 64

void turns_done(struct turns *turns)
{
	free(turns->ended);
	*turns = TURNS_INIT;
}

/* Forgets those that have left, and makes room up to `number`. */
static void make_room(struct turns *turns, size_t number)
{
	size_t left = turns->next - turns->base, kept = turns->cap - left;
	size_t cap = MAX(turns->cap, (size_t)WINDOW_MIN);
	while (number - turns->next >= cap)
		cap *= 2;
	bool *ended = mem_alloc(cap * sizeof(*ended));
	if (kept > 0)
		memcpy(ended, turns->ended + left, kept * sizeof(*ended));
	free(turns->ended);
	*turns = (struct turns){ ended, turns->next, cap, turns->next };
}

size_t turns_end(struct turns *turns, size_t number)
{
	size_t before = turns->next;
	if (number < before)
		return 0;
	if (number - turns->base >= turns->cap)
		make_room(turns, number);
	turns->ended[number - turns->base] = true;
	while (turns->next - turns->base < turns->cap && turns->ended[turns->next - turns->base])
		turns->next++;
	return turns->next - before;
}
