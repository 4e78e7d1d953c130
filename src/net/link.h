/* Links: framed connections between agents and coordinators on a libevent base; with a token they
 * are authenticated and encrypted (net/seal.h).
 *
 *     connecting   link_connect()       on_up, on_msg…, on_down
 *     asking       link_probe()         one answer
 *     accepting    link_listener_new()  on_agent for each authenticated agent or asker, on_probe
 *
 * Links make no decisions. Callbacks come only from the loop, never from inside a function of this
 * module, and may call every one of them. Nothing here blocks; addresses come resolved. Everything
 * sent within one turn of the loop leaves with one system call.
 *
 * `on_down` says how a link ended, once, and the link is gone when it returns. `dead` is true only
 * if the peer's end was closed or reset (end of file, ECONNRESET, EPIPE). An unreachable peer is
 * not dead: time-outs of the kernel, lost routes and the like end a link as LINK_UNREACHABLE. The
 * lease, not this module, decides how long silence may last. */
#ifndef NET_LINK_H
#define NET_LINK_H

#include "core/rounds/msg.h"
#include "net/addr.h"
#include "net/peer.h"
#include "proto/frame.h"

struct event_base;
struct link;
struct link_probe;
struct link_listener;

#define LINK_CONNECT_NS (10 * NS_PER_S)	 /* for a connection, over all addresses */
#define LINK_GREETING_NS (10 * NS_PER_S) /* and then until the greeting is complete */
/* And then, accepting, until the agent's first JOIN, or the asker's first question. An agent that
 * must end the workers of an earlier round joins after that, so this is longer than its default
 * --shutdown-timeout. */
#define LINK_JOIN_NS (60 * NS_PER_S)
#define LINK_LINGER_NS (2 * NS_PER_S)	   /* for a peer to take the rest after a hang-up */
#define LINK_UNSENT_MAX ((size_t)64 << 20) /* a peer that leaves this much unread is dropped */
#define LINK_STRANGERS_MAX 16384	   /* unauthenticated; beyond this the oldest is closed */
#define LINK_REPORTS_PER_S 10
#define LINK_TEXT_MAX 384

/* A peer: addresses to try one after the other, and its name for messages. Copied. */
struct link_target {
	const struct addr *addrs;
	size_t count;
	const char *name; /* "node1:29400" */
};

#define LINK_ADDRS_MAX 16

struct link_end {
	enum link_end_kind kind;
	bool dead;		  /* see above */
	char text[LINK_TEXT_MAX]; /* a message for users, with the peer's name */
};

struct link_handler {
	void (*on_up)(void *arg, struct link *link); /* not for accepted links: they are up */
	void (*on_msg)(void *arg, struct link *link, const struct msg *msg); /* borrowed */
	void (*on_down)(void *arg, struct link *link, const struct link_end *end);
	/* A piece of a batch (proto/deal/work_msg.h), borrowed; NULL: such frames are invalid. */
	void (*on_work)(void *arg, struct link *link, const void *data, size_t len);
	/* All that was sent is in the hands of the kernel. May be NULL. */
	void (*on_drained)(void *arg, struct link *link);
};

/* Starts connecting. Errors come through on_down, also immediate ones. `handler` is borrowed. */
struct link *link_connect(struct event_base *base, const struct link_self *self,
			  const struct link_target *target, const struct link_handler *handler,
			  void *arg);

/* The same for a process that does not take part, but has a question to the whole job. */
struct link *link_connect_asker(struct event_base *base, const struct link_self *self,
				const struct link_target *target,
				const struct link_handler *handler, void *arg);

/* The same over a socket that is connected, non-blocking, and owned from now on. */
struct link *link_greet_asker(struct event_base *base, int fd, const struct link_self *self,
			      const char *name, const struct link_handler *handler, void *arg);

/* Queues a message on a link that is up: from on_up, or after on_agent has returned. */
void link_send(struct link *link, const struct msg *msg);

/* Queues bytes for the peer's on_work, where they arrive in order, but cut into other pieces. */
void link_send_work(struct link *link, const void *data, size_t len);
size_t link_unsent(const struct link *link); /* bytes that the kernel has not taken */

/* Ends the link without an on_down; the caller must not use it any more. What was sent still goes
 * out, for at most LINK_LINGER_NS and as far as the peer takes it. */
void link_hang_up(struct link *link);

/* The same at once: unsent data is lost. For the end of the program. */
void link_drop(struct link *link);

bool link_is_asker(const struct link *link);	 /* accepted: as what the peer came */
uint32_t link_peer_can(const struct link *link); /* of an up link: CAN_ASK and so on */

/* When this side authenticated the peer (on_up, on_agent). */
uint64_t link_up_ns(const struct link *link);

/* Bytes received, and bytes passed to the kernel. */
struct link_traffic {
	uint64_t in, out;
};
void link_traffic(const struct link *link, struct link_traffic *ret_traffic);

/* Ends links that linger on `base` after a hang-up. Call it before event_base_free(). */
void link_drop_lingering(struct event_base *base);

const char *link_peer_name(const struct link *link); /* the target's name, or the peer's address */
void link_peer_addr(const struct link *link, struct addr *ret_addr);
int link_local_addr(const struct link *link, struct addr *ret_addr, struct err *err);

/* ---- probes ---- */

struct link_standing {
	enum finder_answer answer; /* never FINDER_UNASKED */
	struct ballot ballot;	   /* of FINDER_COORDINATES */
	enum link_end_kind why;	   /* if it did not answer */
	char text[LINK_TEXT_MAX];  /* the same as a message */
};

/* Asks whether there is a coordinator. One answer comes within FINDER_PROBE_NS. A peer that refuses
 * (LINK_REFUSED) or sends an invalid frame counts as FINDER_SILENT. */
typedef void link_standing_fn(void *arg, const struct link_standing *standing);
struct link_probe *link_probe(struct event_base *base, const struct link_self *self,
			      const struct link_target *target, link_standing_fn *on_standing,
			      void *arg);
void link_probe_cancel(struct link_probe *probe); /* before its answer only; NULL is fine */

/* ---- listening ---- */

struct link_listener_handler {
	/* An authenticated agent of this job, or an asker. Take it with link_set_handler() and
	 * return true, or return false to answer that there is no coordinator here. */
	bool (*on_agent)(void *arg, struct link *link);
	/* Fill in the answer. */
	void (*on_probe)(void *arg, struct frame_standing *ret_standing);
	/* A connection was rejected, and why; at most LINK_REPORTS_PER_S times a second. May be
	 * NULL. */
	void (*on_turned_away)(void *arg, const struct addr *peer, const char *why);
};

void link_set_handler(struct link *link, const struct link_handler *handler, void *arg);

/* Listens on `listen_fd` (from addr_listen) and owns it; -1: only takes connections accepted
 * elsewhere. A peer that stalls delays no other and is disconnected after LINK_GREETING_NS. */
struct link_listener *link_listener_new(struct event_base *base, int listen_fd,
					const struct link_self *self,
					const struct link_listener_handler *handler, void *arg);

/* Takes over a connection that was accepted elsewhere, non-blocking. */
void link_listener_adopt(struct link_listener *listener, int fd, const struct addr *peer);

/* Stops listening and drops unauthenticated connections; links that were handed over stay. */
void link_listener_free(struct link_listener *listener);

/* How many connections have not authenticated yet. */
size_t link_listener_strangers(const struct link_listener *listener);

#endif
