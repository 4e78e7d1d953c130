/* A listening socket in the loop, with one answer to having no descriptor left.
 *
 * A peer that cannot be accepted would stay in the queue and wake the loop for ever. So the owner
 * may make room (by closing a connection that matters less); otherwise the peer is taken with a
 * descriptor that is kept for this, told so and disconnected. If not even that works, the socket
 * rests for ACCEPTOR_REST_NS.
 */
#ifndef BASE_ACCEPTOR_H
#define BASE_ACCEPTOR_H

#include <event2/event_struct.h>
#include <sys/socket.h>

#include "base/clock.h"

#define ACCEPTOR_REST_NS (100 * NS_PER_MS)
#define ACCEPTOR_AT_ONCE 64 /* connections, then the loop has its turn */

struct acceptor_handler {
	/* A connection, non-blocking; the callee owns it. */
	void (*on_accept)(void *arg, int fd, const struct sockaddr_storage *peer);
	/* Frees a descriptor: true if it could. May be NULL. */
	bool (*make_room)(void *arg);
	/* There is no descriptor for this peer. It is disconnected after the call. May be NULL. */
	void (*on_refused)(void *arg, int fd, const struct sockaddr_storage *peer);
};

struct acceptor {
	struct event acceptable, rested;
	int fd, reserve_fd;
	const struct acceptor_handler *handler;
	void *arg;
};

/* Owns `fd`, a non-blocking listener; -1: there is none, and nothing happens. */
void acceptor_init(struct acceptor *acceptor, struct event_base *base, int fd,
		   const struct acceptor_handler *handler, void *arg);
void acceptor_done(struct acceptor *acceptor);

/* Accepts nothing while it is off. */
void acceptor_listen(struct acceptor *acceptor, bool on);

#endif
