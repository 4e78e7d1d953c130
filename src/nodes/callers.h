/* Who calls on the coordinator here: agents elsewhere, askers, which have questions to the whole
 * job (core/rounds/ask_msg.h), and the hosts of a batch. A listener, and a route for the link of
 * each. What arrives becomes an event of the node (core/node/node.h) or goes on as the bytes that
 * it is, what is sent goes out; nothing is decided here.
 *
 * Probes are answered whether or not this process coordinates; callers are let in only while it
 * does. Askers on this host come to a listener of their own and are let in at any time.
 */
#ifndef NODES_CALLERS_H
#define NODES_CALLERS_H

#include "net/link.h"
#include "nodes/routes.h"

struct callers;

struct callers_handler {
	/* How this process stands: the answer to a probe. */
	void (*standing)(void *arg, struct frame_standing *ret_standing);
	/* MSG or LINK_DOWN, from the loop. Step the node now: what it points to is borrowed. */
	void (*on_event)(void *arg, const struct node_event *event);
	/* Of a batch; NULL otherwise: a host is let in, and bytes came from it. */
	void (*on_host)(void *arg, uint64_t link, const char *name);
	void (*on_work)(void *arg, uint64_t link, const void *data, size_t len);
	/* A peer was not let in, for people. */
	void (*on_turned_away)(void *arg, const char *name, const char *why);
};

enum callers_kind {
	CALLERS_ELSEWHERE,
	CALLERS_HERE,  /* askers on this host */
	CALLERS_HOSTS, /* of a batch */
};

/* Listens on `listen_fd` (owned from now on; -1: others accept for it). The rest is borrowed. */
struct callers *callers_new(struct event_base *base, enum callers_kind kind, int listen_fd,
			    const struct link_self *self, struct routes *routes,
			    const struct callers_handler *handler, void *arg);
void callers_free(struct callers *callers); /* drops all links; NULL is fine */

/* A connection that was accepted elsewhere, non-blocking; owned from now on. */
void callers_adopt(struct callers *callers, int fd, const struct addr *peer);

void callers_hang_up_all(struct callers *callers);

/* Those who were let in, and those who may be. */
size_t callers_count(const struct callers *callers);

/* Of a node, for callers_handler. */
static inline void callers_node_standing(const struct node *node,
					 struct frame_standing *ret_standing)
{
	ret_standing->coordinates = node_coordinates(node);
	ret_standing->ballot = node_ballot(node);
}

#endif
