/* One connection between the starter of a job and a relay, or between two relays: frames of
 * proto/fleet/fleet_msg.h over two pipes, without blocking. */
#ifndef FLEET_CHANNEL_H
#define FLEET_CHANNEL_H

#include <event2/event_struct.h>

#include "base/buf.h"
#include "proto/fleet/fleet_msg.h"

/* What may wait to be written before the readers of other channels should pause. */
#define CHANNEL_FULL ((size_t)1 << 20)

struct channel;

struct channel_handler {
	/* Borrowed for the call, in which the channel may be closed. */
	void (*on_msg)(void *arg, const struct fleet_msg *msg);
	/* The other side is gone, or sent what is not a frame: why. The last callback. */
	void (*on_end)(void *arg, const char *why);
	/* All is written that waited; may be NULL. */
	void (*on_drained)(void *arg);
};

struct channel {
	int in_fd, out_fd;
	bool greeted; /* FLEET_MAGIC has come */
	bool held;
	struct buf in, out;
	struct event readable, writable;
	const struct channel_handler *handler;
	void *arg;
};

#define CHANNEL_INIT ((struct channel){ .in_fd = -1, .out_fd = -1 })

/* Owns the descriptors. `greeted`: no magic is to be waited for. */
void channel_open(struct channel *channel, struct event_base *base, int in_fd, int out_fd,
		  bool greeted, const struct channel_handler *handler, void *arg);
void channel_close(struct channel *channel);

/* Queues bytes, whole frames, and writes what the pipe takes. */
void channel_send(struct channel *channel, const void *data, size_t len);
bool channel_is_full(const struct channel *channel);

/* Pauses reading. */
void channel_hold(struct channel *channel, bool hold);

#endif
