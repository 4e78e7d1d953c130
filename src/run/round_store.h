/* The workers' store of this host, a new one every round.
 *
 * Before each round a listener is opened and its address offered; if the round is served from here,
 * the store goes on with that very listener, so no other process can take the port in between.
 * Offering again ends the store of the round before, with its keys, connections and memory: a
 * worker never meets what a dead one left.
 */
#ifndef RUN_ROUND_STORE_H
#define RUN_ROUND_STORE_H

#include "base/clock.h"
#include "core/rounds/msg.h"
#include "net/addr.h"
#include "proto/c10d.h"

struct event_base;
struct store_server;

enum store_access {
	STORE_ACCESS_MEMBERS, /* only hosts of the job may connect */
	STORE_ACCESS_ANY,
};

#define ROUND_STORE_CALLERS_MAX 65536
#define ROUND_STORE_TELL_NS (10 * NS_PER_S)
#define ROUND_STORE_LOCAL_MAX 16 /* addresses of this host that count */

/* A kind of news that strangers can cause as often as they like: told once in
 * ROUND_STORE_TELL_NS. */
struct round_store_news {
	uint64_t next_ns; /* not before then */
	uint64_t hidden;  /* since the last one that was told */
};

struct round_store {
	struct event_base *base;  /* borrowed */
	char host[ADDR_HOST_MAX]; /* what workers are told; empty: it has no place yet */
	bool named;		  /* the user chose the place */
	struct addr addr;	  /* where to listen; port 0: a fresh one each round */
	uint16_t port;
	enum store_access access;
	bool shares_port; /* with the coordinator: who connects is brought by round_store_adopt() */
	struct round_store_caller {
		int fd;
		struct addr peer;
	} * callers; /* brought before the round began */
	size_t caller_count, caller_cap;
	int listen_fd;		     /* of the next round; -1: none */
	struct store_server *server; /* of this round, if it is served from here */
	struct addr local[ROUND_STORE_LOCAL_MAX];
	size_t local_count;
	struct addr *peers; /* of the other members, while there are any */
	size_t peer_count, peer_cap;
	struct round_store_news refused, dropped;
	uint64_t executed[C10D_QUERY_COUNT]; /* in the rounds before this one */
};

#define ROUND_STORE_INIT ((struct round_store){ .listen_fd = -1 })

void round_store_init(struct round_store *store, struct event_base *base, uint16_t port,
		      enum store_access access);

/* The user's choice of a place, which is then kept. `host` is looked up once, here. */
int round_store_name(struct round_store *store, const char *host, struct err *err);

/* Another place from the next round on, unless the user has chosen one: `host` stands for
 * `addr`. */
int round_store_place(struct round_store *store, const char *host, const struct addr *addr,
		      struct err *err);
void round_store_done(struct round_store *store);

/* Ends the store of the last round and listens for the next one. It must have a place. `ret_port`
 * is written in any case: a port of the user's choice that is taken just now is tried again when
 * the round begins. */
int round_store_offer(struct round_store *store, uint16_t *ret_port, struct err *err);

/* A connection that was accepted elsewhere, non-blocking; owned from now on. One that comes before
 * the round has begun here waits for that: others may have heard of it earlier. */
void round_store_adopt(struct round_store *store, int fd, const struct addr *peer);

/* Hosts that may connect in the next round. */
void round_store_admit(struct round_store *store, const struct msg_peers *peers);

/* The round has formed: serves it from here, or gives the offered port up. Where it should be
 * served and cannot be, no worker must be started. */
int round_store_begin(struct round_store *store, bool serve, struct err *err);

/* Requests executed so far, in all rounds, and the connections open now. */
void round_store_usage(const struct round_store *store, uint64_t ret_executed[C10D_QUERY_COUNT],
		       size_t *ret_connections);

#endif
