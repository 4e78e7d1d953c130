/* The sockets of a process among others: its listener, its link to the coordinator, the links of
 * those elsewhere, and the search for them (nodes/discovery.h).
 *
 * For a node of a job core/node/node.h decides, for a host of a batch core/dispatch/party.h; this
 * carries out what they want of the network and turns what comes from there into events. Their
 * owner steps them, and hands the actions here.
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
	/* What a stranger could do where there is no token, for the warning. */
	const char *risk;
	/* How this process stands: the answer to a probe. */
	void (*standing)(void *arg, struct frame_standing *ret_standing);
	/* From the loop. Step the node now: what the event points to is borrowed. */
	void (*on_event)(void *arg, const struct node_event *event);
	/* Of a batch; NULL otherwise, and links carry messages alone. A host is let in; bytes came
	 * over a link; all that was sent to the coordinator elsewhere is with the kernel. */
	void (*on_host)(void *arg, uint64_t link, const char *name);
	void (*on_work)(void *arg, uint64_t link, const void *data, size_t len);
	void (*on_drained)(void *arg);
	/* A peer wants the workers' store that shares the endpoint's port. `fd` is handed over. */
	void (*on_store_client)(void *arg, int fd, const struct addr *peer);
};

/* The kind of node that the configuration asks for, its finder and its coordinators. */
void wiring_configure(const struct rendezvous *rdzv, struct node_config *config);

/* All is borrowed. `node`: for what is said of its agent; NULL in a batch, which has none. */
struct wiring *wiring_new(struct event_base *base, const struct rendezvous *rdzv,
			  const struct node *node, struct routes *routes,
			  const struct wiring_handler *handler, void *arg);
void wiring_free(struct wiring *wiring); /* NULL is fine */

/* What the other end of the link to the coordinator elsewhere has not taken yet, in bytes. */
size_t wiring_unsent(const struct wiring *wiring);

/* Hosts of a batch that are here, and who may become one. */
size_t wiring_caller_count(const struct wiring *wiring);

/* What is tried to find the coordinator, with which result, for people. */
void wiring_tried(const struct wiring *wiring, struct buf *out);

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
