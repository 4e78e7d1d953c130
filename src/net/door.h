/* One listening port for two services: agents that speak proto/frame.h, and workers that speak the
 * c10d store's protocol (proto/c10d.h). In both the connecting side speaks first; the first byte
 * tells them apart and is left unread for the service.
 *
 * Callbacks come from the loop. A connection that sends nothing is closed after
 * DOOR_PATIENCE_NS. */
#ifndef NET_DOOR_H
#define NET_DOOR_H

#include "base/clock.h"
#include "net/addr.h"

#define DOOR_PATIENCE_NS (10 * NS_PER_S)
/* connections that have sent nothing; beyond this the oldest is closed */
#define DOOR_SILENT_MAX 16384

struct event_base;
struct door;

/* Both get a non-blocking socket and own it from then on. */
struct door_handler {
	void (*on_agent)(void *arg, int fd, const struct addr *peer);
	void (*on_store)(void *arg, int fd, const struct addr *peer);
};

/* Owns `listen_fd` (from addr_listen); borrows the handler. */
struct door *door_new(struct event_base *base, int listen_fd, const struct door_handler *handler,
		      void *arg);
void door_free(struct door *door);

#endif
