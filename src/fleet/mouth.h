/* Writes to our standard output or error without ever blocking the loop: a thread waits for a
 * terminal that is paused. */
#ifndef FLEET_MOUTH_H
#define FLEET_MOUTH_H

#include <event2/event_struct.h>
#include <pthread.h>

#include "base/buf.h"
#include "base/err.h"

#define MOUTH_FULL ((size_t)1 << 20)

struct mouth {
	int fd;	     /* where to */
	int in, out; /* a pipe to the thread */
	struct buf waiting;
	struct event writable;
	pthread_t thread;
	void (*on_drained)(void *arg);
	void *arg;
};

int mouth_open(struct mouth *mouth, struct event_base *base, int fd, void (*on_drained)(void *),
	       void *arg, struct err *err);
void mouth_say(struct mouth *mouth, const void *data, size_t len);
bool mouth_is_full(const struct mouth *mouth);

/* Waits until all is written, or the descriptor takes no more. */
void mouth_close(struct mouth *mouth);

#endif
