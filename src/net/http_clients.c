/* Room for those who ask, whoever else connects and stays silent. */
#include <event2/event.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/mem.h"
#include "net/http_private.h"

#define TURNS 4		    /* in which a client can be read before it is the oldest */
#define DESCRIPTORS_SHARE 8 /* one in so many of this process's, at most */

struct client {
	struct http_clients *clients;
	struct list link;
	struct evhttp_connection *connection;
};

static struct client *client_at(struct list *link)
{
	return list_entry(link, struct client, link);
}

static void on_gone(struct evhttp_connection *connection UNUSED, void *arg)
{
	struct client *client = arg;
	list_unlink(&client->link);
	client->clients->count--;
	free(client);
}

/* evhttp tells its connection to the bufferevent, and to nobody else, after on_accept has made that
 * one; it is done before the loop turns, so before anything is read. */
static void adopt(struct http_clients *clients)
{
	bufferevent_data_cb on_read, on_write;
	bufferevent_event_cb on_event;
	void *connection;
	if (!clients->fresh)
		return;
	bufferevent_getcb(clients->fresh, &on_read, &on_write, &on_event, &connection);
	clients->fresh = NULL;
	struct client *client = NEW(struct client);
	client->clients = clients;
	client->connection = connection;
	list_append(&clients->waiting, &client->link);
	clients->count++;
	evhttp_connection_set_closecb(connection, on_gone, client);
}

static void on_adopt(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	adopt(arg);
}

static bool is_silent(const struct client *client)
{
	struct bufferevent *events = evhttp_connection_get_bufferevent(client->connection);
	struct pollfd readable = { .fd = bufferevent_getfd(events), .events = POLLIN };
	return poll(&readable, 1, 0) == 0;
}

bool http_clients_drop(struct http_clients *clients)
{
	if (list_empty(&clients->waiting))
		return false;
	struct list *link = clients->waiting.next;
	while (link->next != &clients->waiting && !is_silent(client_at(link)))
		link = link->next;
	evhttp_connection_free(client_at(link)->connection);
	return true;
}

static void on_goes_on(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct http_clients *clients = arg;
	clients->this_turn = 0;
	evconnlistener_enable(clients->listener);
}

struct bufferevent *http_clients_add(struct event_base *base, void *arg)
{
	const struct timeval at_once = { 0 };
	struct http_clients *clients = arg;
	adopt(clients);
	if (clients->count >= clients->max)
		http_clients_drop(clients);
	if (clients->this_turn++ == 0)
		event_add(clients->goes_on, &at_once);
	if (clients->this_turn >= clients->max / TURNS)
		evconnlistener_disable(clients->listener);
	clients->fresh = bufferevent_socket_new(base, -1, 0);
	event_active(clients->adopt, EV_TIMEOUT, 0);
	return clients->fresh;
}

void http_clients_release(struct http_clients *clients, struct evhttp_connection *connection)
{
	for (struct list *it = clients->waiting.next; it != &clients->waiting; it = it->next)
		if (client_at(it)->connection == connection) {
			evhttp_connection_set_closecb(connection, NULL, NULL);
			on_gone(connection, client_at(it));
			return;
		}
}

void http_clients_init(struct http_clients *clients, struct event_base *base)
{
	struct rlimit files = { .rlim_cur = HTTP_CONNECTIONS_MAX * DESCRIPTORS_SHARE };
	getrlimit(RLIMIT_NOFILE, &files);
	clients->max = MIN((size_t)HTTP_CONNECTIONS_MAX, files.rlim_cur / DESCRIPTORS_SHARE);
	clients->max = MAX(clients->max, (size_t)TURNS);
	list_init(&clients->waiting);
	clients->goes_on = evtimer_new(base, on_goes_on, clients);
	clients->adopt = evtimer_new(base, on_adopt, clients);
}

void http_clients_done(struct http_clients *clients)
{
	event_free(clients->goes_on);
	event_free(clients->adopt);
}
