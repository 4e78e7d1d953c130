/* The connections of hosts that work for one of them, those of a batch or of `muster doctor`: finds
 * the coordinator or becomes it, as nodes of a job do (core/rounds/finder.h, nodes/discovery.h),
 * and carries a stream of bytes in both directions. It decides nothing about what they mean. */
#ifndef NODES_CREW_H
#define NODES_CREW_H

#include "net/link.h"
#include "nodes/rendezvous.h"

struct crew;

struct crew_handler {
	/* What a stranger could do where there is no token, for the warning. */
	const char *risk;
	/* This process coordinates from now on, unless it calls crew_withdraw() right here. */
	void (*on_coordinate)(void *arg);
	/* There is a better one: stop coordinating. */
	void (*on_superseded)(void *arg);
	/* The link to the coordinator elsewhere. */
	void (*on_up)(void *arg);
	void (*on_down)(void *arg, const char *why);
	void (*on_bytes)(void *arg, const void *data, size_t len);
	void (*on_drained)(void *arg);
	/* The links of other hosts, while this one coordinates; ids are above 1. */
	void (*on_peer)(void *arg, uint64_t id, const char *name);
	void (*on_peer_bytes)(void *arg, uint64_t id, const void *data, size_t len);
	void (*on_peer_down)(void *arg, uint64_t id, bool dead);
	/* It can never work: why. */
	void (*on_barred)(void *arg, const char *why);
};

/* All is borrowed. Nothing happens before the loop's next turn. */
struct crew *crew_new(struct event_base *base, const struct rendezvous *rdzv,
		      const struct crew_handler *handler, void *arg);
void crew_free(struct crew *crew); /* NULL is fine */

void crew_send(struct crew *crew, const void *data, size_t len);
size_t crew_unsent(const struct crew *crew);
void crew_hang_up(struct crew *crew);  /* and search again */
void crew_withdraw(struct crew *crew); /* from on_coordinate: do not, and search again */

void crew_peer_send(struct crew *crew, uint64_t id, const void *data, size_t len);
void crew_peer_hang_up(struct crew *crew, uint64_t id);
size_t crew_caller_count(const struct crew *crew); /* peers, and who may become one */

/* What it tries, with which result, for people. */
void crew_explain(const struct crew *crew, struct buf *out);

#endif
