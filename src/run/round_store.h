/* The workers' store of this host, a new one every round.
 *
 * Before each round a listener is opened and its address offered; if the round is served from here,
 * the store goes on with that very listener, so no other process can take the port in between.
 * Offering again ends the store of the round before, with its keys, connections and memory: a worker
 * never meets what a dead one left.
 */
#ifndef RUN_ROUND_STORE_H
#define RUN_ROUND_STORE_H

#include "net/addr.h"

struct event_base;
struct store_server;

enum store_access {
	STORE_ACCESS_MEMBERS, /* only hosts of the job may connect */
	STORE_ACCESS_ANY,
};

#define ROUND_STORE_LOCAL_MAX 16 /* addresses of this host that count */

struct round_store {
	struct event_base *base; /* borrowed */
	struct addr addr;	 /* where to listen; port 0: a fresh one each round */
	enum store_access access;
	int listen_fd;		     /* of the next round; -1: none */
	struct store_server *server; /* of this round, if it is served from here */
	struct addr local[ROUND_STORE_LOCAL_MAX];
	size_t local_count;
	uint64_t requests; /* of the rounds before this one */
};

#define ROUND_STORE_INIT ((struct round_store){ .listen_fd = -1 })

/* `host` is looked up once, here. */
int round_store_init(struct round_store *store, struct event_base *base, const char *host,
		     uint16_t port, enum store_access access, struct err *err);
void round_store_done(struct round_store *store);

/* Ends the store of the last round and listens for the next one. */
int round_store_offer(struct round_store *store, uint16_t *ret_port, struct err *err);

/* The round has formed: serves it from here, or gives the offered port up. */
int round_store_begin(struct round_store *store, bool serve, struct err *err);

/* Requests executed so far, in all rounds, and the connections open now. */
void round_store_usage(const struct round_store *store, uint64_t *ret_requests, size_t *ret_connections);

#endif
