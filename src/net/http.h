/* A small HTTP server for health probes, scrapers, `muster status` and the page, based on libevent.
 *
 * Routes are a table. Private ones are served on Unix sockets only, where file permissions control
 * access; guarded ones need the server's token in the header "Authorization: Bearer TOKEN", which
 * no other site can make a browser send. Nothing here blocks the loop: slow clients are
 * disconnected after HTTP_PATIENCE_S. Over TCP at most HTTP_CONNECTIONS_MAX clients wait for an
 * answer at a time (fewer where descriptors are few): the oldest silent one makes room for the
 * next.
 *
 * A route may open a stream instead: the answer has no end, and http_stream_send() adds to it. */
#ifndef NET_HTTP_H
#define NET_HTTP_H

#include <event2/event.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "net/addr.h"

#define HTTP_PATIENCE_S 5
#define HTTP_HEADERS_MAX 8192
#define HTTP_BODY_MAX 4096
#define HTTP_HOST_MAX 256
#define HTTP_CONNECTIONS_MAX 128 /* over TCP */
#define HTTP_STREAMS_MAX 16
#define HTTP_BEHIND_MAX ((size_t)1 << 20)
#define HTTP_FEED_PERIOD_NS NS_PER_S /* between two tellings, at least */
#define HTTP_FEED_BYTES_PER_S 16000
#define HTTP_LAST_WORDS_NS NS_PER_S
#define HTTP_TOKEN_BYTES 16 /* random ones; twice as many digits */
#define HTTP_TOKEN_MAX (2 * HTTP_TOKEN_BYTES + 1)

struct http_stream;

struct http_reply {
	const char *query; /* of the request, after the "?"; "" if there is none */
	struct bytes sent; /* the body of the request */
	int code;	   /* 200 unless changed */
	/* Content-Security-Policy; nothing may be loaded unless changed. */
	const char *policy;
	const char *type; /* "text/plain; charset=utf-8" unless changed; borrowed until the reply is
			     sent */
	struct buf body;
};

struct http_route {
	const char *path;
	bool post;    /* POST instead of GET and HEAD */
	bool private; /* on Unix sockets only */
	bool guarded; /* over TCP only with the token */
	/* Over TCP with the token, or, with HTTP_OPEN, for those who ask for it at this host's
	 * address or name. */
	bool scraped;
	void (*handle)(void *arg, struct http_reply *reply);
	/* Instead: the stream is open from now on, until http_streams_next() does not list it any
	 * more. */
	void (*open)(void *arg, struct http_stream *stream);
};

struct http_server;

/* `routes` ends with a path of NULL and is borrowed. */
struct http_server *http_server_new(struct event_base *base, const struct http_route *routes,
				    void *arg);

/* When its loop turns no more. The clients of streams get what is pending and the end of the
 * answer, as far as they take it within HTTP_LAST_WORDS_NS: a browser that sees a connection close
 * before the end of an answer forgets what the page has not read yet. */
void http_server_free(struct http_server *server);

/* Appends the address of its page with the token, for browsers: "http://127.0.0.1:80/#token=…".
 * `there`: where it listens; `host`: the name that stands for all interfaces. */
void http_page_address(struct http_server *server, const struct addr *there, const char *host,
		       struct buf *out);

/* An answer without end, of the type text/event-stream: one event more. The caller leaves those out
 * that are behind: they have not taken HTTP_BEHIND_MAX bytes yet. */
void http_stream_send(struct http_stream *stream, const char *event, const struct buf *json);
bool http_stream_is_behind(const struct http_stream *stream);

/* for (s = http_streams_first(server); s; s = http_streams_next(server, s)): those that are open.
 * `kind` and `at` are the caller's. */
struct http_stream {
	unsigned kind; /* HTTP_VIEWER_NEW */
	uint64_t at;

	struct http_server *server;
	void *request, *connection;
	struct list link;
};
struct http_stream *http_streams_first(struct http_server *server);
struct http_stream *http_streams_next(struct http_server *server, struct http_stream *stream);

/* Streams that show one state: each is told all of it, then what has changed. */
enum http_viewer {
	HTTP_VIEWER_NEW,   /* all is due, again if it was behind */
	HTTP_VIEWER_KNOWS, /* changes are enough */
	HTTP_VIEWER_OTHER, /* it shows something else */
};

struct http_feed {
	struct http_server *server;
	const char *event;
	void (*put_all)(void *arg, struct buf *out);
	/* Since it was called last; false: nothing has changed. */
	bool (*put_changes)(void *arg, struct buf *out);
	void *arg;
};

bool http_stream_is_viewer(const struct http_stream *stream);
void http_feed_tell_all(const struct http_feed *feed, struct http_stream *stream);

/* Tells all viewers. Returns how long to wait before the next time, so that each gets no more than
 * HTTP_FEED_BYTES_PER_S on the average, and work like that since `began_ns` takes a small part of
 * the time. */
uint64_t http_feed_tell(const struct http_feed *feed, uint64_t began_ns);

/* "PORT", ":PORT", "ADDR:PORT" or "[ADDR]:PORT", no names but localhost; without an address:
 * 127.0.0.1. Port 0: any. */
int http_address_parse(const char *text, struct addr *ret_addr, struct err *err);

enum http_access {
	HTTP_OPEN,     /* for everybody who reaches it */
	HTTP_OWN_USER, /* for processes of this user and root, as far as the kernel can tell */
};

/* Once for each server. Tells where it listens. */
int http_listen_tcp(struct http_server *server, const struct addr *address, enum http_access access,
		    struct addr *ret_address, struct err *err);
int http_listen_unix(struct http_server *server, const char *path, struct err *err);

/* Sends a request to a server on a Unix socket and waits for the answer, at most HTTP_PATIENCE_S.
 * Returns the HTTP code or -errno; -ETIMEDOUT: there was none. For commands, not for the loop. */
int http_ask_unix(const char *socket_path, const char *method, const char *path,
		  struct buf *ret_body, struct err *err);

#endif
