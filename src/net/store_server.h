/* The c10d store on a socket: many clients, one table, one event loop.
 *
 * It lives in the caller's event base and owns its listening socket, its connections and the table;
 * store_server_free() ends them all and returns the memory to the system. A request costs one read,
 * at most one write, and its share of the loop's wait. An idle connection costs a few hundred
 * bytes: it has buffers only while it has half a request or unread replies.
 *
 * No client can delay another or take unbounded memory. One that breaks the protocol, exceeds a
 * limit, or stalls (no handshake, half a request, unread replies) is dropped and reported. While
 * replies are unread, the requests behind them wait too. Where memory for all of these runs out,
 * the client goes that has least time left, not the largest.
 *
 * No name is ever resolved. */
#ifndef NET_STORE_SERVER_H
#define NET_STORE_SERVER_H

#include "base/clock.h"
#include "net/addr.h"
#include "proto/store_session.h"

struct event_base;
struct store_server;

struct store_server_config {
	struct store_session_limits session;
	size_t table_max; /* bytes of keys, values, queues and waits */
	/* bytes of half requests and unread replies, all connections together */
	size_t pending_max;
	size_t connections_max;
	/* A handshake, a request and the reading of replies must be done within this time, and
	 * longer only as far as STORE_RATE_MIN allows. */
	uint64_t stall_ns;

	bool any_user; /* of this host may connect, not only this one and root (base/peer_user.h) */
	/* May this peer connect? NULL: yes. */
	bool (*on_connect)(void *arg, const struct addr *peer);
	/* A client was dropped or refused, and why; not called for those that just leave, and at
	 * most STORE_REPORTS_PER_S times a second. May be NULL. */
	void (*on_drop)(void *arg, const struct addr *peer, const char *reason);
	void *arg;
};

#define STORE_PENDING_MAX ((size_t)512 << 20)
#define STORE_CONNECTIONS_MAX ((size_t)1 << 20) /* the descriptor limit usually comes first */
#define STORE_STALL_NS (60 * NS_PER_S)
#define STORE_RATE_MIN ((size_t)64 << 10) /* bytes a second: slower, and a transfer has stalled */
#define STORE_REPORTS_PER_S 20

#define STORE_SERVER_CONFIG_DEFAULT \
	((struct store_server_config){ .session = STORE_SESSION_LIMITS_DEFAULT, \
				       .table_max = STORE_TABLE_BYTES_MAX, \
				       .pending_max = STORE_PENDING_MAX, \
				       .connections_max = STORE_CONNECTIONS_MAX, \
				       .stall_ns = STORE_STALL_NS })

/* Serves on `listen_fd` (from addr_listen) and owns it; -1: only takes connections accepted
 * elsewhere. */
struct store_server *store_server_new(struct event_base *base, int listen_fd,
				      const struct store_server_config *config);
void store_server_free(struct store_server *server);

/* Takes over a connection that was accepted elsewhere, non-blocking. */
void store_server_adopt(struct store_server *server, int fd, const struct addr *peer);

struct store_server_stats {
	size_t connections;
	size_t keys;
	size_t table_bytes;
	size_t pending_bytes;
	uint64_t accepted;
	uint64_t dropped;
	uint64_t executed[C10D_QUERY_COUNT]; /* requests, handshakes included */
};
void store_server_stats(const struct store_server *server, struct store_server_stats *ret_stats);

#endif
