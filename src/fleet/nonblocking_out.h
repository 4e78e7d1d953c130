/* Writes to our standard output or error without ever blocking the loop: a thread waits for a
 * terminal that is paused. */
#ifndef FLEET_NONBLOCKING_OUT_H
#define FLEET_NONBLOCKING_OUT_H

#include <event2/event_struct.h>
#include <pthread.h>

#include "base/buf.h"
#include "base/err.h"

#define NONBLOCKING_OUT_FULL ((size_t)1 << 20)

struct nonblocking_out {
	int fd;	     /* where to */
	int in, out; /* a pipe to the thread */
	struct buf waiting;
	struct event writable;
	pthread_t thread;
	void (*on_drained)(void *arg);
	void *arg;
};

int nonblocking_out_open(struct nonblocking_out *out, struct event_base *base, int fd,
			 void (*on_drained)(void *), void *arg, struct err *err);
void nonblocking_out_write(struct nonblocking_out *out, const void *data, size_t len);
bool nonblocking_out_is_full(const struct nonblocking_out *out);

/* Waits until all is written, or the descriptor takes no more. */
void nonblocking_out_close(struct nonblocking_out *out);

#endif
