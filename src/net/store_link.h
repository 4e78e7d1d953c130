/* One asynchronous connection to a c10d store, without its own loop: the caller waits for
 * store_link_events() on store_link_fd() and then calls store_link_step().
 *
 * Requests are sent in order and answered through callbacks in the same order. Requests behind a
 * WAIT or BARRIER are held back until that has ended, because a server would answer them first.
 *
 * Works with our server and both of PyTorch's. */
#ifndef NET_STORE_LINK_H
#define NET_STORE_LINK_H

#include "net/addr.h"
#include "proto/c10d.h"

struct store_link;

/* Called once for every request: `result` 0 with the reply (borrowed for the call; query only, if
 * it has none), -ECANCELED for a cancelled wait, or another -errno when the link broke or was
 * freed. The callback may send requests; it must not free the link. */
typedef void store_reply_fn(void *arg, int result, const struct c10d_message *reply);

/* Begins to connect and queues the handshake. */
int store_link_open(const struct addr *addr, struct store_link **ret_link, struct err *err);
void store_link_free(struct store_link *link); /* unanswered requests fail with -ECONNABORTED */

int store_link_fd(const struct store_link *link);
short store_link_events(
	const struct store_link *link); /* POLLIN and, when it has to send, POLLOUT */

/* Sends and receives without waiting. -errno: the link is broken, every request has failed, and it
 * can only be freed. */
int store_link_step(struct store_link *link, struct err *err);

/* The handshake has been answered. */
bool store_link_ready(const struct store_link *link);

/* Copies the request. `on_reply` may be NULL. For a request without a reply it is called once the
 * kernel has it, which does not mean that the server executed it: a PING behind it shows that. */
void store_link_ask(struct store_link *link, const struct c10d_message *request,
		    store_reply_fn *on_reply, void *arg);

/* Cancels the unanswered wait, if any. Its callback comes with -ECANCELED, or with 0 if the answer
 * was faster. */
void store_link_cancel_wait(struct store_link *link);

/* Drops all callbacks; the link can only be freed. */
void store_link_abandon(struct store_link *link);

#endif
