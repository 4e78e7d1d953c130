/* The accepting side: from a connection to an authenticated agent. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "net/link_private.h"

#define ACCEPTS_AT_ONCE 256

struct link_listener {
	struct event_base *base;
	const struct link_self *self;
	const struct link_listener_handler *handler;
	void *arg;
	int fd;
	int reserve_fd; /* closed for a moment to reject a connection when descriptors run out */
	struct event acceptable;
	struct list strangers; /* unauthenticated links, oldest first */
	struct link_listener_stats stats;
	uint64_t report_second; /* which second of the clock, and how many reports in it */
	unsigned reports;
};

static void report(struct link_listener *listener, const struct addr *peer, const char *why)
{
	listener->stats.turned_away++;
	if (!listener->handler->on_turned_away)
		return;
	uint64_t second = clock_now_ns() / NS_PER_S;
	if (second != listener->report_second) {
		listener->report_second = second;
		listener->reports = 0;
	}
	if (listener->reports++ < LINK_REPORTS_PER_S)
		listener->handler->on_turned_away(listener->arg, peer, why);
}

static void leave_strangers(struct link *link)
{
	struct link_listener *listener = link->owner;
	if (list_empty(&link->strangers))
		return;
	list_unlink(&link->strangers);
	listener->stats.strangers--;
}

/* ---- hooks ---- */

static void welcome_probe(struct link *link)
{
	struct link_listener *listener = link->owner;
	struct frame_standing standing = { .coordinates = false };
	listener->handler->on_probe(listener->arg, &standing);
	greeting_welcome(link->greeting, &link->out);
	frame_put_standing(&link->out, &standing);
}

static const struct link_hooks known_hooks;

static void accepted_known(struct link *link)
{
	struct link_listener *listener = link->owner;
	leave_strangers(link);
	if (link->greeting->hello.role == ROLE_PROBE) {
		welcome_probe(link);
		link->state = LINK_UP;
		link->hooks = &known_hooks;
		link_hang_up(link);
		return;
	}
	link->up_ns = clock_now_ns();
	if (listener->handler->on_agent(listener->arg, link)) {
		greeting_welcome(link->greeting, &link->out);
		link->hooks = &known_hooks;
		link->owner = NULL;
	} else {
		greeting_refuse(link->greeting, REFUSAL_STANDBY, "there is no coordinator there",
				&link->out);
	}
}

/* An unauthenticated link ends. A peer that just leaves is not reported, nor one that met
 * standby. */
static void stranger_end(struct link *link, const struct link_end *end)
{
	struct link_listener *listener = link->owner;
	leave_strangers(link);
	if (end->kind == LINK_UNREACHABLE)
		report(listener, &link->peer, "it did not authenticate in time");
	else if (end->kind != LINK_CLOSED && end->kind != LINK_STANDBY)
		report(listener, &link->peer, end->text);
}

static const struct link_hooks stranger_hooks = { .on_known = accepted_known,
						  .on_end = stranger_end };
static const struct link_hooks known_hooks = { .on_known = NULL };

/* ---- accepting ---- */

static void drop_oldest(struct link_listener *listener)
{
	struct link *oldest = list_entry(listener->strangers.next, struct link, strangers);
	report(listener, &oldest->peer, "too many unauthenticated connections");
	leave_strangers(oldest);
	link_drop(oldest);
}

void link_listener_adopt(struct link_listener *listener, int fd, const struct addr *peer)
{
	if (listener->stats.strangers >= LINK_STRANGERS_MAX)
		drop_oldest(listener);
	struct link *link =
		link_new_accepted(listener->base, fd, peer, listener->self, &stranger_hooks,
				  listener, ns_add(clock_now_ns(), LINK_GREETING_NS));
	list_append(&listener->strangers, &link->strangers);
	listener->stats.strangers++;
	listener->stats.accepted++;
}

/* Without a free descriptor a peer would wait in the queue and wake the loop for ever: drop an
 * unauthenticated link or, if there is none, reject the new one with a descriptor kept for that.
 * False if no connection waits: accept() fails for lack of descriptors before it looks. */
static bool make_room(struct link_listener *listener)
{
	struct pollfd waiting = { .fd = listener->fd, .events = POLLIN };
	if (poll(&waiting, 1, 0) <= 0)
		return false;
	if (!list_empty(&listener->strangers)) {
		drop_oldest(listener);
		return true;
	}
	fd_close(&listener->reserve_fd);
	struct addr peer = { .v6 = { .sin6_family = AF_UNSPEC } };
	socklen_t len = sizeof(peer);
	AUTO(fd_close)
	int fd = accept4(listener->fd, &peer.any, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		AUTO(buf_done) struct buf out = BUF_INIT;
		frame_put_opening(&out);
		frame_put_refused(&out, REFUSAL_BUSY,
				  "it has no descriptor left; raise its hard limit of open files");
		send(fd, buf_data(&out), buf_len(&out), MSG_NOSIGNAL | MSG_DONTWAIT);
		report(listener, &peer,
		       "no descriptor is left for it; raise the hard limit of open files");
	}
	bool told = fd >= 0;
	fd_close(&fd);
	listener->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return told;
}

static void on_acceptable(evutil_socket_t listen_fd, short what UNUSED, void *arg)
{
	struct link_listener *listener = arg;
	for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
		struct addr peer;
		socklen_t len = sizeof(peer);
		int fd = accept4(listen_fd, &peer.any, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0)
			link_listener_adopt(listener, fd, &peer);
		else if ((errno == EMFILE || errno == ENFILE) && make_room(listener))
			continue;
		else if (errno != ECONNABORTED && errno != EINTR)
			return;
	}
}

struct link_listener *link_listener_new(struct event_base *base, int listen_fd,
					const struct link_self *self,
					const struct link_listener_handler *handler, void *arg)
{
	struct link_listener *listener = NEW(struct link_listener);
	listener->base = base;
	listener->self = self;
	listener->handler = handler;
	listener->arg = arg;
	listener->fd = listen_fd;
	listener->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	list_init(&listener->strangers);
	event_assign(&listener->acceptable, base, listen_fd, EV_READ | EV_PERSIST, on_acceptable,
		     listener);
	if (listen_fd >= 0)
		event_add(&listener->acceptable, NULL);
	return listener;
}

void link_listener_free(struct link_listener *listener)
{
	if (!listener)
		return;
	event_del(&listener->acceptable);
	while (!list_empty(&listener->strangers)) {
		struct link *link = list_entry(listener->strangers.next, struct link, strangers);
		leave_strangers(link);
		link_drop(link);
	}
	fd_close(&listener->fd);
	fd_close(&listener->reserve_fd);
	free(listener);
}

void link_listener_stats(const struct link_listener *listener,
			 struct link_listener_stats *ret_stats)
{
	*ret_stats = listener->stats;
}
