/* The workers' store of this host, a new one every round.
 *
 * Before each round it opens a listener and offers its address; if the round is served from here,
 * the store continues with that same listener, so no other process can take the port in between.
 * After a round that failed or was stopped, offering again ends its store, with its keys,
 * connections and memory: a worker never meets data of a dead one. When the workers of this host
 * are done, those of other hosts may still need the store: it is kept until the next round begins
 * or the job ends. */
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
#define ROUND_STORE_LOCAL_MAX 16 /* addresses of this host that are kept */

/* Messages that any peer can cause as often as it likes: logged once in ROUND_STORE_TELL_NS. */
struct round_store_news {
	uint64_t next_ns; /* not before then */
	uint64_t hidden;  /* since the last one logged */
};

struct round_store {
	struct event_base *base;  /* borrowed */
	char host[ADDR_HOST_MAX]; /* the address that workers get; empty: none yet */
	bool named;		  /* the user chose the address */
	struct addr addr;	  /* where to listen; port 0: a fresh one each round */
	uint16_t port;
	enum store_access access;
	bool shares_port; /* with the coordinator: connections come through round_store_adopt() */
	struct round_store_caller {
		int fd;
		struct addr peer;
	} * callers; /* received before the round began */
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

/* The address that the user chose, which never changes. `host` is resolved once, here. */
int round_store_name(struct round_store *store, const char *host, struct err *err);

/* Another address from the next round on, unless the user has chosen one: `host` stands for
 * `addr`. */
int round_store_place(struct round_store *store, const char *host, const struct addr *addr,
		      struct err *err);
void round_store_done(struct round_store *store);

/* Ends the store of the last round, unless `keep`, and listens for the next one. It must have an
 * address. `ret_port` is written in any case: if the user's port is taken now, perhaps by the kept
 * store, it is tried again when the round begins. */
int round_store_offer(struct round_store *store, bool keep, uint16_t *ret_port, struct err *err);

/* Takes over a connection that was accepted elsewhere, non-blocking. One that comes before the
 * round has begun here waits for that: other nodes may have heard of the round earlier. */
void round_store_adopt(struct round_store *store, int fd, const struct addr *peer);

/* Hosts that may connect in the next round. */
void round_store_admit(struct round_store *store, const struct msg_peers *peers);

/* The round has formed: serves it from here, or closes the offered port. If it should be served
 * here and cannot be, start no worker. */
int round_store_begin(struct round_store *store, bool serve, struct err *err);

/* Requests executed so far, in all rounds, and the connections open now. */
void round_store_usage(const struct round_store *store, uint64_t ret_executed[C10D_QUERY_COUNT],
		       size_t *ret_connections);

#endif
