#include "net/door.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>

#include "base/acceptor.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/mem.h"
#include "proto/c10d.h"

struct door {
	struct event_base *base;
	const struct door_handler *handler;
	void *arg;
	struct acceptor acceptor;
	struct list callers; /* connections that have sent nothing yet, oldest first */
	size_t count;
};

struct caller {
	struct door *door;
	struct list link;
	struct event readable;
	int fd;
	struct addr peer;
};

/* Frees it; returns its socket, if that is still open. */
static int caller_free(struct caller *caller)
{
	int fd = caller->fd;
	event_del(&caller->readable);
	list_unlink(&caller->link);
	caller->door->count--;
	free(caller);
	return fd;
}

static void send_away(struct caller *caller)
{
	int fd = caller_free(caller);
	fd_close(&fd);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct caller *caller = arg;
	struct door *door = caller->door;
	struct addr peer = caller->peer;
	unsigned char first;
	ssize_t n = what & EV_READ ? recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) : 0;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		send_away(caller);
	else if (first == C10D_VALIDATE)
		door->handler->on_store(door->arg, caller_free(caller), &peer);
	else
		door->handler->on_agent(door->arg, caller_free(caller), &peer);
}

static void add_caller(struct door *door, int fd, const struct addr *peer)
{
	const struct timeval patience = { .tv_sec = DOOR_PATIENCE_NS / NS_PER_S };
	if (door->count >= DOOR_SILENT_MAX)
		send_away(list_entry(door->callers.next, struct caller, link));
	struct caller *caller = NEW(struct caller);
	caller->door = door;
	caller->fd = fd;
	caller->peer = *peer;
	list_append(&door->callers, &caller->link);
	door->count++;
	event_assign(&caller->readable, door->base, fd, EV_READ | EV_PERSIST, on_readable, caller);
	event_add(&caller->readable, &patience);
}

static void on_accept(void *arg, int fd, const struct sockaddr_storage *storage)
{
	struct addr peer = addr_of_peer(storage);
	add_caller(arg, fd, &peer);
}

/* A connection that has said nothing yet matters least. */
static bool make_room(void *arg)
{
	struct door *door = arg;
	if (list_empty(&door->callers))
		return false;
	send_away(list_entry(door->callers.next, struct caller, link));
	return true;
}

static const struct acceptor_handler acceptor_handler = { .on_accept = on_accept,
							  .make_room = make_room };

struct door *door_new(struct event_base *base, int listen_fd, const struct door_handler *handler,
		      void *arg)
{
	struct door *door = NEW(struct door);
	door->base = base;
	door->handler = handler;
	door->arg = arg;
	list_init(&door->callers);
	acceptor_init(&door->acceptor, base, listen_fd, &acceptor_handler, door);
	return door;
}

void door_free(struct door *door)
{
	if (!door)
		return;
	acceptor_done(&door->acceptor);
	while (!list_empty(&door->callers))
		send_away(list_entry(door->callers.next, struct caller, link));
	free(door);
}
