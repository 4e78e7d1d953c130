/* A small HTTP server for health probes, scrapers and `muster status`, based on libevent.
 *
 * Routes are a table. Private ones are served on Unix sockets only, where file permissions control
 * access. Nothing here blocks the loop: slow clients are disconnected after HTTP_PATIENCE_S. Over
 * TCP at most HTTP_CONNECTIONS_MAX unanswered clients are accepted within that time; later ones
 * wait in the queue. */
#ifndef NET_HTTP_H
#define NET_HTTP_H

#include <event2/event.h>

#include "base/buf.h"
#include "base/err.h"
#include "net/addr.h"

#define HTTP_PATIENCE_S 5
#define HTTP_HEADERS_MAX 8192
#define HTTP_BODY_MAX 4096
#define HTTP_CONNECTIONS_MAX 64 /* over TCP */

struct http_reply {
	int code;	  /* 200 unless changed */
	const char *type; /* "text/plain; charset=utf-8" unless changed; borrowed until the reply is
			     sent */
	struct buf body;
};

struct http_route {
	const char *path;
	bool post;    /* POST instead of GET and HEAD */
	bool private; /* on Unix sockets only */
	void (*handle)(void *arg, struct http_reply *reply);
};

struct http_server;

/* `routes` ends with a path of NULL and is borrowed. */
struct http_server *http_server_new(struct event_base *base, const struct http_route *routes,
				    void *arg);
void http_server_free(struct http_server *server); /* when its loop turns no more */

/* "PORT", ":PORT", "ADDR:PORT" or "[ADDR]:PORT", no names but localhost; without an address:
 * 127.0.0.1. Port 0: any. */
int http_address_parse(const char *text, struct addr *ret_addr, struct err *err);

/* Tells where it listens. */
int http_listen_tcp(struct http_server *server, const struct addr *address,
		    struct addr *ret_address, struct err *err);
int http_listen_unix(struct http_server *server, const char *path, struct err *err);

/* Sends a request to a server on a Unix socket and waits for the answer, at most HTTP_PATIENCE_S.
 * Returns the HTTP code or -errno. For commands, not for the loop. */
int http_ask_unix(const char *socket_path, const char *method, const char *path,
		  struct buf *ret_body, struct err *err);

#endif
