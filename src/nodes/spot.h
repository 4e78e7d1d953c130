/* One place where a coordinator may be: its name, its addresses while they are known, and whether
 * this process can listen there. */
#ifndef NODES_SPOT_H
#define NODES_SPOT_H

#include <event2/event.h>
#include <event2/event_struct.h>

#include "net/link.h"
#include "nodes/rendezvous.h"

struct spot;

/* The look-up has ended; spot->count is 0 if it failed, and spot->trouble says why. */
typedef void spot_fn(void *arg, struct spot *spot);

struct spot {
	struct addr_name name;
	char text[ADDR_HOST_MAX + 8]; /* "node1:29400" */
	struct addr addrs[LINK_ADDRS_MAX];
	size_t count;	   /* 0: not looked up */
	uint64_t asked_ns; /* when the last look-up began */
	bool numeric;
	struct addr_lookup lookup;
	struct event_base *base; /* borrowed */
	struct event on_lookup;
	spot_fn *on_done;
	void *arg;
	/* why it is of no use just now; empty: it has not been tried */
	char trouble[LINK_TEXT_MAX];
};

void spot_init(struct spot *spot, const struct addr_name *name, struct event_base *base,
	       spot_fn *on_done, void *arg);
void spot_done(struct spot *spot);

#define SPOT_LOOKUP_NS NS_PER_S	      /* between two look-ups of a name that is not known */
#define SPOT_FRESH_NS (10 * NS_PER_S) /* so long a name that is known is not looked up again */

/* Begins to look the name up, unless it is known, or that is under way or was just tried: on_done
 * follows, from the loop. A name that is an address has nothing to look up, and its on_done never
 * comes. */
void spot_look_up(struct spot *spot);

/* The addresses may have changed: unless they are fresh, the next look-up asks again. */
void spot_forget(struct spot *spot);

/* A listening socket there if the place is on this host and free, or -errno; -EADDRINUSE if
 * somebody else on this host has it. Without `must` a place that is not known here is somebody
 * else's
 * (-EADDRNOTAVAIL); with it, this host has it under an address that it does not know, and listens
 * on all. */
int spot_listen(const struct spot *spot, bool must);

struct link_target spot_target(const struct spot *spot);

#endif
