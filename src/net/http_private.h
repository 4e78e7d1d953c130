#ifndef NET_HTTP_PRIVATE_H
#define NET_HTTP_PRIVATE_H

#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/listener.h>

#include "net/http.h"

/* TCP clients that have had no answer yet, oldest first. Of those that wait, the oldest silent one
 * makes room for the next; so whoever sends a request at once is answered, however many idle. */
struct http_clients {
	struct evconnlistener *listener; /* evhttp owns it */
	struct event *goes_on;		 /* after the connections of one turn */
	struct event *adopt;
	struct bufferevent *fresh; /* accepted, but evhttp has not set it up */
	struct list waiting;
	size_t count, max;
	size_t this_turn;
};

void http_clients_init(struct http_clients *clients, struct event_base *base);
void http_clients_done(struct http_clients *clients);

/* For each accepted connection. */
struct bufferevent *http_clients_add(struct event_base *base, void *clients);

/* The connection does not wait any more, and matters as much as others from now on. */
void http_clients_release(struct http_clients *clients, struct evhttp_connection *connection);

/* Ends the oldest; false: there is none. */
bool http_clients_drop(struct http_clients *clients);

struct http_server {
	const struct http_route *routes;
	void *arg;
	struct evhttp *public,
		*private; /* one each, so that a handler knows which one a request used */
	char *unix_path;
	struct event_base *base;
	struct http_clients clients;
	enum http_access access;
	bool beyond_loopback;	    /* where it listens */
	char token[HTTP_TOKEN_MAX]; /* "": none was made */
	struct list streams;
	size_t stream_count;
};

/* Whether this request may have this route. If not, the reply says why. */
bool http_may_have(struct http_server *server, struct evhttp_request *request,
		   const struct http_route *route, struct http_reply *reply);

#endif
