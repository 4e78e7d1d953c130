#include "batch/ahead/ahead.h"

#include "sys/warden.h"

static struct ahead_order *place_of(struct ahead *ahead, uint64_t number)
{
	return &ahead->laid[number % START_RING_PLACES];
}

static uint64_t oldest(const struct ahead *ahead)
{
	return ahead->newest > START_RING_PLACES ? ahead->newest - START_RING_PLACES + 1 : 1;
}

bool ahead_lay(struct ahead *ahead, struct batch_order *order, const struct spawn_spec *spec,
	       bool by_shell)
{
	uint64_t number = ahead->newest + 1;
	struct ahead_order *place = place_of(ahead, number);
	if (place->order || !warden_lay(ahead->ring, number, spec))
		return false;
	*place = (struct ahead_order){ order, number, by_shell };
	ahead->newest = number;
	return true;
}

struct batch_order *ahead_take_back(struct ahead *ahead)
{
	for (uint64_t number = oldest(ahead); number <= ahead->newest; number++)
		if (place_of(ahead, number)->order && start_ring_take_back(ahead->ring, number))
			return ahead_taken(ahead, number).order;
	return NULL;
}

struct ahead_order ahead_taken(struct ahead *ahead, uint64_t number)
{
	struct ahead_order *place = place_of(ahead, number), taken = *place;
	assert(taken.order && taken.number == number);
	place->order = NULL;
	return taken;
}

struct ahead_order ahead_lost(struct ahead *ahead, int taker)
{
	for (uint64_t number = oldest(ahead); number <= ahead->newest; number++)
		if (place_of(ahead, number)->order &&
		    start_ring_is_taken_by(ahead->ring, number, taker))
			return ahead_taken(ahead, number);
	return (struct ahead_order){ .order = NULL };
}
