/* The server's side of one c10d connection, without the connection: bytes in, bytes out.
 *
 * Pure on buffers, so that tests and fuzzers run the same code as the server. The caller keeps the
 * bytes that were not consumed and passes them again, with more behind them. */
#ifndef PROTO_STORE_SESSION_H
#define PROTO_STORE_SESSION_H

#include "core/store_table.h"
#include "proto/c10d.h"

#define STORE_REPLY_MAX ((size_t)256 << 20)
#define STORE_REPLIES_HIGH ((size_t)256 << 10)

struct store_session_limits {
	struct c10d_limits wire;
	/* bytes of one reply: a MULTI_GET may name the same key again and again */
	size_t reply_max;
	/* no further request is executed while this many bytes of replies wait */
	size_t replies_high;
};

#define STORE_SESSION_LIMITS_DEFAULT \
	((struct store_session_limits){ .wire = C10D_LIMITS_DEFAULT, \
					.reply_max = STORE_REPLY_MAX, \
					.replies_high = STORE_REPLIES_HIGH })

struct store_session {
	struct store_waiter waiter;
	struct c10d_parser parser;
	bool validated;	    /* the handshake has been seen */
	uint64_t *executed; /* [C10D_QUERY_COUNT], incremented; borrowed; may be NULL */
};

void store_session_init(struct store_session *session, uint64_t *executed);

/* Before freeing: removes its wait from the table. */
void store_session_done(struct store_session *session, struct store_table *table);

/* Executes the whole requests at the start of `data` and appends their replies to `out`. Returns
 * the bytes consumed; fewer than `len` if the rest is half a request (session->parser.need says how
 * much it takes) or `out` has reached replies_high. -errno: close the connection once `out`, the
 * replies to the requests before the bad one, has been sent.
 *
 * Other clients whose waits ended are in store_table_next_released(); each gets
 * STORE_RELEASED_BYTE. */
ssize_t store_session_feed(struct store_session *session, struct store_table *table,
			   const struct store_session_limits *limits, const void *data, size_t len,
			   struct buf *out, struct err *err);

#define STORE_RELEASED_BYTE ((unsigned char)C10D_STOP_WAITING)

#endif
