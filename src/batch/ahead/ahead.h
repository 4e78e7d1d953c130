/* The orders that lie ahead, on the ring of the wardens (sys/start/start_ring.h): which number is
 * which order. core/batch decides which ones lie there. */
#ifndef BATCH_AHEAD_AHEAD_H
#define BATCH_AHEAD_AHEAD_H

#include "core/dispatch/batch.h"
#include "sys/start/start_ring.h"

struct ahead {
	struct start_ring *ring; /* borrowed; NULL: there is none */
	uint64_t newest;	 /* its number */
	struct ahead_order {
		struct batch_order *order; /* NULL: none, or its taker has told */
		uint64_t number;
		bool by_shell; /* its program is a shell, or may not be one */
	} laid[START_RING_PLACES];
};

struct spawn_spec;

/* False if it cannot lie there. */
bool ahead_lay(struct ahead *ahead, struct batch_order *order, const struct spawn_spec *spec,
	       bool by_shell);

/* The first that no warden has; NULL: none. */
struct batch_order *ahead_take_back(struct ahead *ahead);

/* A warden has told that it has this one. */
struct ahead_order ahead_taken(struct ahead *ahead, uint64_t number);

/* The one that a lost warden had taken without telling; its order is NULL: none. */
struct ahead_order ahead_lost(struct ahead *ahead, int taker);

#endif
