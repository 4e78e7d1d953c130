/* One address where a coordinator may be: its name, its addresses while they are known, and whether
 * this process can listen there. */
#ifndef NODES_RESOLVED_NAME_H
#define NODES_RESOLVED_NAME_H

#include <event2/event.h>
#include <event2/event_struct.h>

#include "net/link.h"
#include "nodes/rendezvous.h"

struct resolved_name;

/* The look-up has ended; resolved->count is 0 if it failed, and resolved->trouble says why. */
typedef void resolved_name_fn(void *arg, struct resolved_name *resolved);

struct resolved_name {
	struct addr_name name;
	char text[ADDR_HOST_MAX + 8]; /* "node1:29400" */
	struct addr addrs[LINK_ADDRS_MAX];
	size_t count;	   /* 0: not resolved */
	uint64_t asked_ns; /* when the last look-up began */
	bool numeric;
	struct addr_lookup lookup;
	struct event_base *base; /* borrowed */
	struct event on_lookup;
	resolved_name_fn *on_done;
	void *arg;
	/* why it cannot be used now; empty: not tried */
	char trouble[LINK_TEXT_MAX];
};

void resolved_name_init(struct resolved_name *resolved, const struct addr_name *name,
			struct event_base *base, resolved_name_fn *on_done, void *arg);
void resolved_name_done(struct resolved_name *resolved);

/* Between two look-ups of an unknown name; a known one is not looked up again for so long. */
#define RESOLVED_NAME_LOOKUP_NS NS_PER_S
#define RESOLVED_NAME_FRESH_NS (10 * NS_PER_S)

/* Starts a look-up, unless the name is known, or a look-up is under way or was just tried: on_done
 * follows, from the loop. For an IP address there is no look-up and no on_done. */
void resolved_name_look_up(struct resolved_name *resolved);

/* The addresses may have changed: unless they are fresh, the next look-up asks again. */
void resolved_name_forget(struct resolved_name *resolved);

/* A listening socket there if the address is local and free, or -errno; -EADDRINUSE if another
 * process on this host has it. Without `must` an unknown address belongs to another host
 * (-EADDRNOTAVAIL); with it, this host has it under an address that it does not know, and listens
 * on all. */
int resolved_name_listen(const struct resolved_name *resolved, bool must);

struct link_target resolved_name_target(const struct resolved_name *resolved);

#endif
