#include "net/shared_port.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>

#include "base/acceptor.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/mem.h"
#include "proto/c10d.h"

struct shared_port {
	struct event_base *base;
	const struct shared_port_handler *handler;
	void *arg;
	struct acceptor acceptor;
	struct list callers; /* connections that have sent nothing yet, oldest first */
	size_t count;
};

struct caller {
	struct shared_port *port;
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
	caller->port->count--;
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
	struct shared_port *port = caller->port;
	struct addr peer = caller->peer;
	unsigned char first;
	ssize_t n = what & EV_READ ? recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) : 0;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		send_away(caller);
	else if (first == C10D_VALIDATE)
		port->handler->on_store(port->arg, caller_free(caller), &peer);
	else
		port->handler->on_agent(port->arg, caller_free(caller), &peer);
}

static void add_caller(struct shared_port *port, int fd, const struct addr *peer)
{
	const struct timeval patience = { .tv_sec = SHARED_PORT_PATIENCE_NS / NS_PER_S };
	if (port->count >= SHARED_PORT_SILENT_MAX)
		send_away(list_entry(port->callers.next, struct caller, link));
	struct caller *caller = NEW(struct caller);
	caller->port = port;
	caller->fd = fd;
	caller->peer = *peer;
	list_append(&port->callers, &caller->link);
	port->count++;
	event_assign(&caller->readable, port->base, fd, EV_READ | EV_PERSIST, on_readable, caller);
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
	struct shared_port *port = arg;
	if (list_empty(&port->callers))
		return false;
	send_away(list_entry(port->callers.next, struct caller, link));
	return true;
}

static const struct acceptor_handler acceptor_handler = { .on_accept = on_accept,
							  .make_room = make_room };

struct shared_port *shared_port_new(struct event_base *base, int listen_fd,
				    const struct shared_port_handler *handler, void *arg)
{
	struct shared_port *port = NEW(struct shared_port);
	port->base = base;
	port->handler = handler;
	port->arg = arg;
	list_init(&port->callers);
	acceptor_init(&port->acceptor, base, listen_fd, &acceptor_handler, port);
	return port;
}

void shared_port_free(struct shared_port *port)
{
	if (!port)
		return;
	acceptor_done(&port->acceptor);
	while (!list_empty(&port->callers))
		send_away(list_entry(port->callers.next, struct caller, link));
	free(port);
}
