/* The accepting side: from a connection to an authenticated agent. */
#include <stdlib.h>
#include <unistd.h>

#include "base/acceptor.h"
#include "base/mem.h"
#include "base/peer_user.h"
#include "net/link_private.h"

struct link_listener {
	struct event_base *base;
	const struct link_self *self;
	const struct link_listener_handler *handler;
	void *arg;
	struct acceptor acceptor;
	struct list strangers; /* unauthenticated links, oldest first */
	size_t stranger_count;
	uint64_t report_second; /* which second of the clock, and how many reports in it */
	unsigned reports;
};

static void report(struct link_listener *listener, const struct addr *peer, const char *why)
{
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
	listener->stranger_count--;
}

/* ---- hooks ---- */

static void welcome_probe(struct link *link)
{
	struct link_listener *listener = link->owner;
	struct frame_standing standing = { .coordinates = false };
	listener->handler->on_probe(listener->arg, &standing);
	greeting_welcome(link->greeting, &link->out);
	size_t before = buf_len(&link->out);
	frame_put_standing(&link->out, &standing);
	link_seal(link, before);
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

static void send_refusal(int fd, enum frame_refusal reason, const char *text)
{
	AUTO(buf_done) struct buf out = BUF_INIT;
	frame_put_opening(&out);
	frame_put_refused(&out, reason, text);
	send(fd, buf_data(&out), buf_len(&out), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Who has a token or munge proves more than the kernel can tell. */
static bool is_stranger(struct link_listener *listener, int fd, const struct addr *peer)
{
	char text[PEER_USER_TEXT_MAX];
	if (listener->self->token || listener->self->munge || !peer_is_other_user(fd, text))
		return false;
	if (*text) {
		send_refusal(fd, REFUSAL_TOKEN,
			     "it accepts only its own user's processes of this host; "
			     "use a token");
		report(listener, peer, text);
	}
	return true;
}

void link_listener_adopt(struct link_listener *listener, int fd, const struct addr *peer)
{
	if (is_stranger(listener, fd, peer)) {
		close(fd);
		return;
	}
	if (listener->stranger_count >= LINK_STRANGERS_MAX)
		drop_oldest(listener);
	struct link *link =
		link_new_accepted(listener->base, fd, peer, listener->self, &stranger_hooks,
				  listener, ns_add(clock_now_ns(), LINK_GREETING_NS));
	list_append(&listener->strangers, &link->strangers);
	listener->stranger_count++;
}

static void on_accept(void *arg, int fd, const struct sockaddr_storage *storage)
{
	struct addr peer = addr_of_peer(storage);
	link_listener_adopt(arg, fd, &peer);
}

static bool make_room(void *arg)
{
	struct link_listener *listener = arg;
	if (list_empty(&listener->strangers))
		return false;
	drop_oldest(listener);
	return true;
}

static void on_refused(void *arg, int fd, const struct sockaddr_storage *storage)
{
	struct addr peer = addr_of_peer(storage);
	send_refusal(fd, REFUSAL_BUSY,
		     "it has no descriptor left; raise its hard limit of open files");
	report(arg, &peer, "no descriptor is left for it; raise the hard limit of open files");
}

static const struct acceptor_handler acceptor_handler = { on_accept, make_room, on_refused };

struct link_listener *link_listener_new(struct event_base *base, int listen_fd,
					const struct link_self *self,
					const struct link_listener_handler *handler, void *arg)
{
	struct link_listener *listener = NEW(struct link_listener);
	listener->base = base;
	listener->self = self;
	listener->handler = handler;
	listener->arg = arg;
	list_init(&listener->strangers);
	acceptor_init(&listener->acceptor, base, listen_fd, &acceptor_handler, listener);
	return listener;
}

void link_listener_free(struct link_listener *listener)
{
	if (!listener)
		return;
	acceptor_done(&listener->acceptor);
	while (!list_empty(&listener->strangers)) {
		struct link *link = list_entry(listener->strangers.next, struct link, strangers);
		leave_strangers(link);
		link_drop(link);
	}
	free(listener);
}

size_t link_listener_strangers(const struct link_listener *listener)
{
	return listener->stranger_count;
}
