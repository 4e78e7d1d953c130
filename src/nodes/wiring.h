/* The sockets of a node among others: its listener, its link to the coordinator, the links of
 * agents elsewhere, and the search for them (nodes/discovery.h).
 *
 * core/node/node.h decides; this carries out what the node wants of the network and turns what
 * comes from there into events. The job owns the node, steps it, and hands the actions here.
 */
#ifndef NODES_WIRING_H
#define NODES_WIRING_H

#include "core/node/node.h"
#include "net/addr.h"
#include "nodes/rendezvous.h"
#include "nodes/routes.h"

struct event_base;
struct wiring;

struct wiring_handler {
	/* From the loop. Step the node now: what the event points to is borrowed. */
	void (*on_event)(void *arg, const struct node_event *event);
	/* A peer wants the workers' store that shares the endpoint's port. `fd` is handed over. */
	void (*on_store_client)(void *arg, int fd, const struct addr *peer);
};

/* The kind of node that the configuration asks for, its finder and its coordinators. */
void wiring_configure(const struct rendezvous *rdzv, struct node_config *config);

/* All is borrowed. */
struct wiring *wiring_new(struct event_base *base, const struct rendezvous *rdzv,
			  const struct node *node, struct routes *routes,
			  const struct wiring_handler *handler, void *arg);
void wiring_free(struct wiring *wiring); /* NULL is fine */

/* All actions but those that routes_act() takes, and HOST, ASKED and PLACE_STORE, which are the
 * job's. */
void wiring_act(struct wiring *wiring, const struct node_action *action);

/* For PLACE_STORE: the others reach this node under `host`, which is `addr` here. */
int wiring_place(const struct wiring *wiring, uint64_t link, char host[ADDR_HOST_MAX],
		 struct addr *ret_addr, struct err *err);

/* After every step of the node: tells the user, in time, what it waits for. */
void wiring_stepped(struct wiring *wiring, uint64_t now_ns);

/* Completes the outcome of an agent that gave up waiting. */
void wiring_explain(const struct wiring *wiring, bool linked, struct outcome *outcome);

#endif
