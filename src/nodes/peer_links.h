/* The connections of hosts that work for one of them, those of a batch: the search for the
 * coordinator (core/dispatch/party.h) over the sockets that nodes of a job have (nodes/wiring.h),
 * and a stream of bytes in both directions. What they mean is decided elsewhere. */
#ifndef NODES_PEER_LINKS_H
#define NODES_PEER_LINKS_H

#include "base/buf.h"
#include "nodes/rendezvous.h"

struct event_base;
struct peer_links;

struct peer_links_handler {
	/* What a stranger could do where there is no token, for the warning. */
	const char *risk;
	/* This process coordinates from now on, unless it calls peer_links_withdraw() here. */
	void (*on_coordinate)(void *arg);
	/* There is a better one: stop coordinating. */
	void (*on_superseded)(void *arg);
	/* The link to the coordinator elsewhere. */
	void (*on_up)(void *arg);
	void (*on_down)(void *arg, const char *why);
	void (*on_bytes)(void *arg, const void *data, size_t len);
	void (*on_drained)(void *arg);
	/* The links of other hosts, while this one coordinates; no id is 0. */
	void (*on_peer)(void *arg, uint64_t id, const char *name);
	void (*on_peer_bytes)(void *arg, uint64_t id, const void *data, size_t len);
	void (*on_peer_down)(void *arg, uint64_t id, bool dead);
	/* It can never work: why. */
	void (*on_barred)(void *arg, const char *why);
};

/* All is borrowed. Nothing happens before the loop's next turn. */
struct peer_links *peer_links_new(struct event_base *base, const struct rendezvous *rdzv,
				  const struct peer_links_handler *handler, void *arg);
void peer_links_free(struct peer_links *links); /* NULL is fine */

/* To the coordinator elsewhere. */
void peer_links_send(struct peer_links *links, const void *data, size_t len);
size_t peer_links_unsent(const struct peer_links *links);
void peer_links_hang_up(struct peer_links *links);  /* and search again */
void peer_links_withdraw(struct peer_links *links); /* from on_coordinate: do not coordinate */

/* To a host. Of a link that is hung up here, on_peer_down does not come. */
void peer_links_send_to(struct peer_links *links, uint64_t id, const void *data, size_t len);
void peer_links_hang_up_on(struct peer_links *links, uint64_t id);
size_t peer_links_caller_count(const struct peer_links *links); /* and who may become one */

/* What it tries, with which result, for people. */
void peer_links_explain(const struct peer_links *links, struct buf *out);

#endif
