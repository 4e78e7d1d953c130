/* One address where a coordinator may be: its name, its addresses while they are known, and whether
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
	size_t count;	   /* 0: not resolved */
	uint64_t asked_ns; /* when the last look-up began */
	bool numeric;
	struct addr_lookup lookup;
	struct event_base *base; /* borrowed */
	struct event on_lookup;
	spot_fn *on_done;
	void *arg;
	/* why it cannot be used now; empty: not tried */
	char trouble[LINK_TEXT_MAX];
};

void spot_init(struct spot *spot, const struct addr_name *name, struct event_base *base,
	       spot_fn *on_done, void *arg);
void spot_done(struct spot *spot);

#define SPOT_LOOKUP_NS NS_PER_S	      /* between two look-ups of an unknown name */
#define SPOT_FRESH_NS (10 * NS_PER_S) /* a known name is not looked up again for this long */

/* Starts a look-up, unless the name is known, or a look-up is under way or was just tried: on_done
 * follows, from the loop. For an IP address there is no look-up and no on_done. */
void spot_look_up(struct spot *spot);

/* The addresses may have changed: unless they are fresh, the next look-up asks again. */
void spot_forget(struct spot *spot);

/* A listening socket there if the address is local and free, or -errno; -EADDRINUSE if another
 * process on this host has it. Without `must` an unknown address belongs to another host
 * (-EADDRNOTAVAIL); with it, this host has it under an address that it does not know, and listens
 * on all. */
int spot_listen(const struct spot *spot, bool must);

struct link_target spot_target(const struct spot *spot);

#endif
