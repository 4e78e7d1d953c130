/* The worker's end of the watchdog socket, for libmuster and `muster timer`. Blocking calls with a
 * time limit; no state, no logging, safe in any process. */
#ifndef WATCH_CLIENT_H
#define WATCH_CLIENT_H

#include "proto/watch_msg.h"

struct worker_page;

#define WATCH_CLIENT_PATIENCE_S 5 /* if the launcher does not read: then a call is -ETIMEDOUT */

/* A connected descriptor, or -errno. */
int watch_client_connect(const char *path);

/* Fills the head and the scope; returns the length to send, or -errno for invalid values. */
int watch_client_fill(struct watch_msg *msg, enum watch_op op, unsigned flags, const char *scope,
		      double seconds, int signal);

int watch_client_send(int fd, const struct watch_msg *msg, size_t len);

/* The result in the reply; its descriptor goes to *ret_fd, -1 if there is none. */
int watch_client_receive(int fd, int *ret_fd);

/* Asks for the page of our worker (core/worker/worker_page.h) and maps it. */
int watch_client_map_page(int fd, struct worker_page **ret_page);

#endif
