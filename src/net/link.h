/* Links: framed, authenticated connections between agents and coordinators on a libevent base.
 *
 *     connecting   link_connect()       on_up, on_msg…, on_down
 *     asking       link_probe()         one answer
 *     accepting    link_listener_new()  on_agent for everyone who has proved itself, on_probe
 *
 * Links make no decisions. Callbacks come from the loop alone, never from inside a function of this
 * module, and may call every one of them. Nothing here blocks; nobody is looked up (addresses come
 * resolved). What is sent within one turn of the loop leaves with one system call.
 *
 * `on_down` says how a link ended, once, and the link is gone when it returns. `dead` is true only
 * if the peer's end was closed or reset (end of file, ECONNRESET, EPIPE). A peer that cannot be
 * reached any more is not dead: the system's own time-outs, lost routes and the like end a link as
 * LINK_UNREACHABLE. How long silence is borne is not this module's business but the lease's.
 */
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

#define LINK_CONNECT_NS (10 * NS_PER_S)	   /* for a connection, over all addresses */
#define LINK_GREETING_NS (10 * NS_PER_S)   /* and then until both sides know each other */
#define LINK_LINGER_NS (2 * NS_PER_S)	   /* for a peer to take the rest after a hang-up */
#define LINK_UNSENT_MAX ((size_t)64 << 20) /* a peer that leaves so much unread is given up */
#define LINK_STRANGERS_MAX 16384 /* accepted, not known yet; beyond, the oldest has to go */
#define LINK_REPORTS_PER_S 10
#define LINK_TEXT_MAX 384

/* Where somebody is: addresses tried one after the other, and what people call it. Copied. */
struct link_target {
	const struct addr *addrs;
	size_t count;
	const char *name; /* "node1:29400" */
};

#define LINK_ADDRS_MAX 16

struct link_end {
	enum link_end_kind kind;
	bool dead;		  /* see above */
	char text[LINK_TEXT_MAX]; /* a sentence for people, with the peer's name */
};

struct link_handler {
	void (*on_up)(void *arg, struct link *link); /* not for accepted links: they are up */
	void (*on_msg)(void *arg, struct link *link, const struct msg *msg); /* borrowed */
	void (*on_down)(void *arg, struct link *link, const struct link_end *end);
};

/* Begins to connect. What goes wrong is told through on_down, also at once. `handler` is
 * borrowed. */
struct link *link_connect(struct event_base *base, const struct link_self *self,
			  const struct link_target *target, const struct link_handler *handler,
			  void *arg);

/* Queues a message on a link that is up: from on_up, or after on_agent has returned. */
void link_send(struct link *link, const struct msg *msg);

/* Ends the link without an on_down; the caller must not use it any more. What was sent so far still
 * goes out, for at most LINK_LINGER_NS and as far as the peer takes it. */
void link_hang_up(struct link *link);

/* The same at once: what the system has not taken is lost. For the end of the program. */
void link_drop(struct link *link);

/* When this side learned that the peer is who it says (on_up, on_agent). */
uint64_t link_up_ns(const struct link *link);

/* Bytes received and handed to the system so far. */
struct link_traffic {
	uint64_t in, out;
};
void link_traffic(const struct link *link, struct link_traffic *ret_traffic);

/* Ends what still lingers on `base` after a hang-up. Before event_base_free(). */
void link_drop_lingering(struct event_base *base);

const char *link_peer_name(const struct link *link); /* the target's name, or the peer's address */
void link_peer_addr(const struct link *link, struct addr *ret_addr);
int link_local_addr(const struct link *link, struct addr *ret_addr, struct err *err);

/* ---- probes ---- */

struct link_standing {
	enum finder_answer answer; /* never FINDER_UNASKED */
	struct ballot ballot;	   /* of FINDER_COORDINATES */
	enum link_end_kind why;	   /* unless it answered */
	char text[LINK_TEXT_MAX];  /* the same for people */
};

/* Asks whether somebody coordinates there. One answer comes within FINDER_PROBE_NS. A peer that is
 * there but refuses (LINK_REFUSED) or cannot be understood counts as FINDER_SILENT. */
typedef void link_standing_fn(void *arg, const struct link_standing *standing);
struct link_probe *link_probe(struct event_base *base, const struct link_self *self,
			      const struct link_target *target, link_standing_fn *on_standing,
			      void *arg);
void link_probe_cancel(struct link_probe *probe); /* before its answer only; NULL is fine */

/* ---- listening ---- */

struct link_listener_handler {
	/* An agent of this job, known and up. Take it with link_set_handler() and return true, or
	 * return false: nobody coordinates here, which it is told. */
	bool (*on_agent)(void *arg, struct link *link);
	/* Fill in what to answer. */
	void (*on_probe)(void *arg, struct frame_standing *ret_standing);
	/* Somebody was not let in and why; at most LINK_REPORTS_PER_S times a second. May be
	 * NULL. */
	void (*on_turned_away)(void *arg, const struct addr *peer, const char *why);
};

void link_set_handler(struct link *link, const struct link_handler *handler, void *arg);

/* Listens on `listen_fd` (from addr_listen), which it owns from now on; -1: only those that
 * somebody else has accepted for it. A stranger that stalls delays nobody and is sent away after
 * LINK_GREETING_NS. */
struct link_listener *link_listener_new(struct event_base *base, int listen_fd,
					const struct link_self *self,
					const struct link_listener_handler *handler, void *arg);

/* A connection that was accepted elsewhere, non-blocking; owned from now on. */
void link_listener_adopt(struct link_listener *listener, int fd, const struct addr *peer);

/* Stops listening and drops strangers; links that were handed over stay. */
void link_listener_free(struct link_listener *listener);

struct link_listener_stats {
	uint64_t accepted, turned_away;
	size_t strangers;
};
void link_listener_stats(const struct link_listener *listener,
			 struct link_listener_stats *ret_stats);

#endif
