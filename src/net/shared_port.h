/* One listening port for two services: agents that speak proto/frame.h, and workers that speak the
 * c10d store's protocol (proto/c10d.h). In both the connecting side speaks first; the first byte
 * tells them apart and is left unread for the service.
 *
 * Callbacks come from the loop. A connection that sends nothing is closed after
 * SHARED_PORT_PATIENCE_NS. */
#ifndef NET_SHARED_PORT_H
#define NET_SHARED_PORT_H

#include "base/clock.h"
#include "net/addr.h"

#define SHARED_PORT_PATIENCE_NS (10 * NS_PER_S)
/* connections that have sent nothing; beyond this the oldest is closed */
#define SHARED_PORT_SILENT_MAX 16384

struct event_base;
struct shared_port;

/* Both get a non-blocking socket and own it from then on. */
struct shared_port_handler {
	void (*on_agent)(void *arg, int fd, const struct addr *peer);
	void (*on_store)(void *arg, int fd, const struct addr *peer);
};

/* Owns `listen_fd` (from addr_listen); borrows the handler. */
struct shared_port *shared_port_new(struct event_base *base, int listen_fd,
				    const struct shared_port_handler *handler, void *arg);
void shared_port_free(struct shared_port *port);

#endif
