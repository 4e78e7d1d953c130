/* What the parts of a link share: link.c (the connection), link_probe.c, link_listener.c. */
#ifndef NET_LINK_PRIVATE_H
#define NET_LINK_PRIVATE_H

#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/list.h"
#include "net/greeting.h"
#include "net/link.h"
#include "net/munge_client.h"
#include "net/seal.h"

enum link_state {
	LINK_CONNECTING,
	LINK_GREETING,
	LINK_UP,
	LINK_LINGERING, /* closed by us: sends the rest, reads nothing */
	LINK_ENDED,	/* on_down is being called */
};

/* Hooks for the kind of link, besides its user's handler. All may be NULL. */
struct link_hooks {
	/* Accepting: the peer is authenticated; appends the last frame of the greeting to `out`. */
	void (*on_known)(struct link *link);
	/* A frame of a link that is up; else it must be a message. */
	void (*on_frame)(struct link *link, const struct frame *frame);
	/* Instead of the handler's on_down. */
	void (*on_end)(struct link *link, const struct link_end *end);
	enum frame_role role; /* connecting: as what */
};

struct link {
	struct event_base *base;
	int fd;
	enum link_state state;
	bool accepted;
	unsigned pinned; /* our functions that still use it: free it later */
	bool free_later;
	int write_error; /* reported when the reader has seen all data before it */
	bool unsendable; /* a message was out of range */
	bool shut;	 /* lingering: everything is sent, and our side is shut down */
	const struct link_hooks *hooks;
	const struct link_handler *handler;
	void *arg;		   /* the handler's */
	void *owner;		   /* the hooks' */
	struct greeting *greeting; /* until it is up */
	struct munge_client_request
		*munge_client_request; /* of the greeting; NULL: none is under way */
	struct session *session;       /* from then on; NULL: there is no token */
	struct event readable, writable, timer;
	struct buf in, out;
	uint64_t up_ns;
	enum frame_role role; /* of the connecting side, and */
	uint8_t peer_minor;   /* the peer's minor version, both once it is up */
	struct link_traffic traffic;
	struct list strangers; /* in the listener's, until it is authenticated */
	struct addr peer;
	char *name;
	/* Connecting. */
	const struct link_self *self;
	struct addr *addrs;
	size_t addr_count, addr_next;
	uint64_t connect_by_ns, greet_by_ns;
	struct link_end *failure; /* of the address that tells most so far; NULL: none yet */
	int failure_weight;
};

/* A connecting link; nothing happens before the loop's next turn. */
struct link *link_new_connecting(struct event_base *base, const struct link_self *self,
				 const struct link_target *target, const struct link_hooks *hooks,
				 void *owner, uint64_t connect_ns, uint64_t greet_ns);

/* An accepted link on `fd`, which it owns; waits for the peer's opening until `greet_by_ns`. */
struct link *link_new_accepted(struct event_base *base, int fd, const struct addr *peer,
			       const struct link_self *self, const struct link_hooks *hooks,
			       void *owner, uint64_t greet_by_ns);

/* Ends the link now, with a reason. Only from the loop. */
PRINTF_LIKE(4, 5)
void link_end(struct link *link, enum link_end_kind kind, bool dead, const char *fmt, ...);

/* Seals, where there is a token, the frame behind the first `before` bytes of `out`. */
void link_seal(struct link *link, size_t before);

/* Sends `out` in this turn of the loop. */
void link_flush_soon(struct link *link);

#endif
