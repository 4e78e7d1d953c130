/* The agents elsewhere that call on the coordinator here, and askers, which have questions to the
 * whole job (core/rounds/ask_msg.h): a listener, and a route for the link of each. What arrives
 * becomes an event of the node (core/node/node.h), what the node sends goes out; nothing is
 * decided here.
 *
 * Probes are answered whether or not the node coordinates; agents and askers are let in only while
 * it does. Askers on this host come to a listener of their own and are let in at any time.
 */
#ifndef NODES_CALLERS_H
#define NODES_CALLERS_H

#include "net/link.h"
#include "nodes/routes.h"

struct callers;

struct callers_handler {
	/* MSG or LINK_DOWN, from the loop. Step the node now: what it points to is borrowed. */
	void (*on_event)(void *arg, const struct node_event *event);
	/* A peer was not let in, for people. */
	void (*on_turned_away)(void *arg, const char *name, const char *why);
};

enum callers_kind {
	CALLERS_ELSEWHERE,
	CALLERS_HERE, /* askers on this host */
};

/* Listens on `listen_fd` (owned from now on; -1: others accept for it). The rest is borrowed. */
struct callers *callers_new(struct event_base *base, enum callers_kind kind, int listen_fd,
			    const struct link_self *self, const struct node *node,
			    struct routes *routes, const struct callers_handler *handler,
			    void *arg);
void callers_free(struct callers *callers); /* drops all links; NULL is fine */

/* A connection that was accepted elsewhere, non-blocking; owned from now on. */
void callers_adopt(struct callers *callers, int fd, const struct addr *peer);

void callers_hang_up_all(struct callers *callers);

#endif
