/* The socket channel of the watchdog, for libmuster and other programs.
 *
 * A client connects once and keeps the connection. The kernel tells who it is (peer credentials),
 * durations are relative, and a client that sends faster than we read waits instead of failing.
 * Closing the connection changes nothing: timers end with a release or with their process. */
#ifndef WATCH_SOCKET_H
#define WATCH_SOCKET_H

#include "base/err.h"
#include "watch/keeps.h"
#include "watch/worker_pages.h"
#include "watch/watchdog.h"

#define SOCKET_CLIENTS_MAX 4096

struct watch_socket;

/* Listens at `path`, mode 0600. `pages` and `keeps` are borrowed. */
int watch_socket_new(struct event_base *base, struct watchdog *watchdog, struct worker_pages *pages,
		     struct keeps *keeps, const char *path, struct watch_socket **ret,
		     struct err *err);
void watch_socket_free(struct watch_socket *server); /* closes the connections, removes the path */

#endif
