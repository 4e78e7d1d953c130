#include "net/http.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <poll.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/acceptor.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/unix_socket.h"
#include "net/http_private.h"

#define ANSWER_MAX (16 << 20)
#define BUSY_SHARE 50 /* the part of the time that tellings may take: one in so many */
#define LISTEN_FLAGS (LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC)

/* ---- requests ---- */

static void send_reply(struct evhttp_request *request, struct http_reply *reply)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
	evhttp_add_header(headers, "Content-Type", reply->type);
	evhttp_add_header(headers, "Cache-Control", "no-store");
	evhttp_add_header(headers, "Connection", "close");
	evhttp_add_header(headers, "Content-Security-Policy", reply->policy);
	evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
	evhttp_add_header(headers, "Referrer-Policy", "no-referrer");
	struct evbuffer *body = evbuffer_new();
	evbuffer_add(body, buf_data(&reply->body), buf_len(&reply->body));
	evhttp_send_reply(request, reply->code, NULL, body);
	evbuffer_free(body);
}

static const struct http_route *find_route(const struct http_server *server, bool private,
					   const char *path, bool *ret_path_known, bool post)
{
	*ret_path_known = false;
	for (const struct http_route *route = server->routes; route->path; route++) {
		if ((route->private && !private) || !str_eq(route->path, path))
			continue;
		*ret_path_known = true;
		if (route->post == post)
			return route;
	}
	return NULL;
}

/* ---- streams ---- */

static void forget_stream(struct http_stream *stream)
{
	list_unlink(&stream->link);
	stream->server->stream_count--;
	free(stream);
}

/* libevent keeps a request without a connection for its user to end, and frees others itself. */
static void on_stream_closed(struct evhttp_connection *connection UNUSED, void *arg)
{
	struct http_stream *stream = arg;
	struct evhttp_request *request = stream->request;
	forget_stream(stream);
	if (!evhttp_request_get_connection(request))
		evhttp_send_reply_end(request);
}

static void open_stream(struct http_server *server, const struct http_route *route,
			struct evhttp_request *request)
{
	const struct timeval patience = { .tv_sec = HTTP_PATIENCE_S };
	struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
	struct http_stream *stream = NEW(struct http_stream);
	*stream = (struct http_stream){ .server = server,
					.request = request,
					.connection = evhttp_request_get_connection(request) };
	list_append(&server->streams, &stream->link);
	server->stream_count++;
	http_clients_release(&server->clients, stream->connection);
	evhttp_connection_set_closecb(stream->connection, on_stream_closed, stream);
	evhttp_add_header(headers, "Content-Type", "text/event-stream");
	evhttp_add_header(headers, "Cache-Control", "no-store");
	evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
	evhttp_send_reply_start(request, 200, NULL);
	/* Nothing is read any more, so only a client that takes nothing is too slow. */
	bufferevent_set_timeouts(evhttp_connection_get_bufferevent(stream->connection), NULL,
				 &patience);
	route->open(server->arg, stream);
}

void http_stream_send(struct http_stream *stream, const char *event, const struct buf *json)
{
	struct evbuffer *chunk = evbuffer_new();
	evbuffer_add_printf(chunk, "event: %s\ndata: ", event);
	evbuffer_add(chunk, buf_data(json), buf_len(json));
	evbuffer_add(chunk, "\n\n", 2);
	evhttp_send_reply_chunk(stream->request, chunk);
	evbuffer_free(chunk);
}

bool http_stream_is_behind(const struct http_stream *stream)
{
	struct bufferevent *events = evhttp_connection_get_bufferevent(stream->connection);
	return evbuffer_get_length(bufferevent_get_output(events)) > HTTP_BEHIND_MAX;
}

static struct http_stream *stream_at(struct http_server *server, struct list *link)
{
	return link == &server->streams ? NULL : list_entry(link, struct http_stream, link);
}

struct http_stream *http_streams_first(struct http_server *server)
{
	return stream_at(server, server->streams.next);
}

struct http_stream *http_streams_next(struct http_server *server, struct http_stream *stream)
{
	return stream_at(server, stream->link.next);
}

bool http_stream_is_viewer(const struct http_stream *stream)
{
	return stream->kind == HTTP_VIEWER_NEW || stream->kind == HTTP_VIEWER_KNOWS;
}

void http_feed_tell_all(const struct http_feed *feed, struct http_stream *stream)
{
	AUTO(buf_done) struct buf all = BUF_INIT;
	feed->put_all(feed->arg, &all);
	http_stream_send(stream, feed->event, &all);
	stream->kind = HTTP_VIEWER_KNOWS;
}

uint64_t http_feed_tell(const struct http_feed *feed, uint64_t began_ns)
{
	AUTO(buf_done) struct buf changes = BUF_INIT;
	bool any = feed->put_changes(feed->arg, &changes);
	struct http_stream *it = http_streams_first(feed->server);
	for (; it; it = http_streams_next(feed->server, it)) {
		if (!http_stream_is_viewer(it))
			continue;
		if (http_stream_is_behind(it))
			it->kind = HTTP_VIEWER_NEW;
		else if (it->kind == HTTP_VIEWER_NEW)
			http_feed_tell_all(feed, it);
		else if (any)
			http_stream_send(it, feed->event, &changes);
	}
	uint64_t pause_ns = buf_len(&changes) * NS_PER_S / HTTP_FEED_BYTES_PER_S;
	pause_ns = MAX(pause_ns, (clock_now_ns() - began_ns) * BUSY_SHARE);
	return MAX(pause_ns, HTTP_FEED_PERIOD_NS);
}

static void write_until(int fd, struct bytes data, uint64_t deadline_ns)
{
	while (data.len > 0) {
		ssize_t n = send(fd, data.data, data.len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n > 0)
			data = bytes_of(data.data + n, data.len - (size_t)n);
		else if (errno != EAGAIN || fd_wait(fd, POLLOUT, deadline_ns) < 0)
			return;
	}
}

/* Past libevent: its loop does not run any more. */
static void finish_stream(struct http_stream *stream, uint64_t deadline_ns)
{
	const struct evhttp_request *request = stream->request;
	struct bufferevent *events = evhttp_connection_get_bufferevent(stream->connection);
	struct evbuffer *pending = bufferevent_get_output(events);
	AUTO(buf_done) struct buf last = BUF_INIT;
	size_t len = evbuffer_get_length(pending);
	evbuffer_unfreeze(pending, 1); /* outside of the loop it cannot be read otherwise */
	ssize_t got = evbuffer_copyout(pending, buf_reserve(&last, len), len);
	if (got < 0)
		return;
	buf_commit(&last, (size_t)got);
	if (request->chunked)
		buf_append_str(&last, "0\r\n\r\n");
	write_until(bufferevent_getfd(events), bytes_of(buf_data(&last), buf_len(&last)),
		    deadline_ns);
}

static void finish_streams(struct http_server *server)
{
	uint64_t deadline_ns = clock_now_ns() + HTTP_LAST_WORDS_NS;
	struct http_stream *it = http_streams_first(server);
	for (; it; it = http_streams_next(server, it))
		finish_stream(it, deadline_ns);
}

/* ---- answers ---- */

/* NULL: the reply says why. */
static const struct http_route *choose(struct http_server *server, struct evhttp_request *request,
				       bool private, struct http_reply *reply)
{
	enum evhttp_cmd_type method = evhttp_request_get_command(request);
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));
	bool post = method == EVHTTP_REQ_POST, known = false;
	const struct http_route *route = NULL;
	if (path && (post || method == EVHTTP_REQ_GET || method == EVHTTP_REQ_HEAD))
		route = find_route(server, private, path, &known, post);
	if (!route) {
		reply->code = known ? 405 : 404;
		buf_append_str(&reply->body, known ? "not with this method\n" : "no such page\n");
	} else if (!private && !http_may_have(server, request, route, reply)) {
		return NULL;
	} else if (route->open && server->stream_count >= HTTP_STREAMS_MAX) {
		reply->code = 503;
		buf_append_str(&reply->body, "too many pages are open\n");
		return NULL;
	}
	return route;
}

static void handle(struct http_server *server, struct evhttp_request *request, bool private)
{
	const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(request));
	struct evbuffer *body = evhttp_request_get_input_buffer(request);
	size_t len = evbuffer_get_length(body);
	struct http_reply reply = { .query = query ? query : "",
				    .sent = bytes_of(evbuffer_pullup(body, -1), len),
				    .code = 200,
				    .policy = "default-src 'none'; frame-ancestors 'none'",
				    .type = "text/plain; charset=utf-8",
				    .body = BUF_INIT };
	const struct http_route *route = choose(server, request, private, &reply);
	if (route && route->open) {
		open_stream(server, route, request);
		return;
	}
	if (route)
		route->handle(server->arg, &reply);
	send_reply(request, &reply);
	buf_done(&reply.body);
}

static void on_public(struct evhttp_request *request, void *arg)
{
	handle(arg, request, false);
}

static void on_private(struct evhttp_request *request, void *arg)
{
	handle(arg, request, true);
}

/* ---- listeners ---- */

static struct evhttp *new_evhttp(struct event_base *base,
				 void (*on_request)(struct evhttp_request *, void *),
				 struct http_server *server)
{
	struct evhttp *http = evhttp_new(base);
	evhttp_set_timeout(http, HTTP_PATIENCE_S);
	evhttp_set_max_headers_size(http, HTTP_HEADERS_MAX);
	evhttp_set_max_body_size(http, HTTP_BODY_MAX);
	evhttp_set_allowed_methods(http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST);
	evhttp_set_gencb(http, on_request, server);
	return http;
}

static void on_relieved(evutil_socket_t fd UNUSED, short what UNUSED, void *listener)
{
	evconnlistener_enable(listener);
}

/* libevent would say so on stderr, and try again without end. The argument is libevent's own. */
static void on_accept_error(struct evconnlistener *listener, void *arg UNUSED)
{
	const struct timeval rest = clock_timeval(ACCEPTOR_REST_NS);
	evconnlistener_disable(listener);
	event_base_once(evconnlistener_get_base(listener), -1, EV_TIMEOUT, on_relieved, listener,
			&rest);
}

struct http_server *http_server_new(struct event_base *base, const struct http_route *routes,
				    void *arg)
{
	struct http_server *server = NEW(struct http_server);
	server->routes = routes;
	server->arg = arg;
	server->base = base;
	list_init(&server->streams);
	http_clients_init(&server->clients, base);
	server->public = new_evhttp(base, on_public, server);
	server->private = new_evhttp(base, on_private, server);
	evhttp_set_bevcb(server->public, http_clients_add, &server->clients);
	return server;
}

void http_server_free(struct http_server *server)
{
	if (!server)
		return;
	finish_streams(server);
	http_clients_done(&server->clients);
	evhttp_free(server->public);
	evhttp_free(server->private);
	if (server->unix_path)
		unlink(server->unix_path);
	free(server->unix_path);
	free(server);
}

static int accept_on(struct http_server *server, struct evhttp *http, int *fd, struct err *err)
{
	struct evconnlistener *listener =
		evconnlistener_new(server->base, NULL, NULL, LISTEN_FLAGS, SOMAXCONN, *fd);
	if (!listener || !evhttp_bind_listener(http, listener))
		return err_set(err, errno ? errno : ENOMEM, "cannot watch the listener: %m");
	fd_take(fd); /* libevent closes it */
	evconnlistener_set_error_cb(listener, on_accept_error);
	if (http == server->public)
		server->clients.listener = listener;
	return 0;
}

int http_address_parse(const char *text, struct addr *ret_addr, struct err *err)
{
	struct addr_name name;
	uint64_t port;
	bool port_only = str_to_u64(text, &port) == 0;
	AUTO_FREE char *whole = mem_printf("%s%s", port_only ? ":" : "", text);
	int r = addr_name_parse(whole, 0, &name, err);
	if (r < 0)
		return r;
	const char *host = *name.host ? name.host : "localhost";
	if (addr_from_ip(str_eq(host, "localhost") ? "127.0.0.1" : host, name.port, ret_addr) < 0)
		return err_set(err, EINVAL, "'%s' is not [ADDRESS:]PORT with a numeric address",
			       text);
	return 0;
}

int http_listen_tcp(struct http_server *server, const struct addr *address, enum http_access access,
		    struct addr *ret_address, struct err *err)
{
	server->access = access;
	server->beyond_loopback = !addr_is_loopback(address);
	AUTO(fd_close) int fd = addr_listen(address, err);
	if (fd < 0)
		return fd;
	int r = addr_of_socket(fd, ret_address, err);
	return r < 0 ? r : accept_on(server, server->public, &fd, err);
}

int http_listen_unix(struct http_server *server, const char *path, struct err *err)
{
	AUTO(fd_close) int fd = unix_listen(path, SOCK_STREAM, err);
	if (fd < 0)
		return fd_take(&fd);
	server->unix_path = mem_strdup(path);
	return accept_on(server, server->private, &fd, err);
}

/* ---- client ---- */

static int parse_answer(struct buf *answer, struct buf *ret_body, struct err *err)
{
	const char *text = buf_str(answer), *blank = strstr(text, "\r\n\r\n");
	int64_t code;
	char digits[4] = { 0 };
	if (!blank || !str_starts(text, "HTTP/1.") || strlen(text) < 12)
		return err_set(err, EBADMSG, "the answer is not HTTP");
	memcpy(digits, text + 9, 3);
	if (str_to_i64(digits, &code) < 0)
		return err_set(err, EBADMSG, "the answer is not HTTP");
	size_t head = (size_t)(blank + 4 - text);
	buf_append(ret_body, buf_data(answer) + head, buf_len(answer) - head);
	return (int)code;
}

/* No SIGPIPE: the job may end while it is asked. */
static int send_all(int fd, const struct buf *text)
{
	for (size_t sent = 0; sent < buf_len(text);) {
		ssize_t n = send(fd, buf_data(text) + sent, buf_len(text) - sent, MSG_NOSIGNAL);
		if (n < 0 && errno != EINTR)
			return -errno;
		sent += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

int http_ask_unix(const char *socket_path, const char *method, const char *path,
		  struct buf *ret_body, struct err *err)
{
	AUTO(fd_close) int fd = unix_connect(socket_path, HTTP_PATIENCE_S * NS_PER_S, err);
	if (fd < 0)
		return fd_take(&fd);
	AUTO(buf_done) struct buf text = BUF_INIT, answer = BUF_INIT;
	buf_printf(&text, "%s %s HTTP/1.0\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", method,
		   path);
	int r = send_all(fd, &text);
	if (r < 0)
		return err_set(err, -r, "%s: %m", socket_path);
	r = fd_read_all(fd, ANSWER_MAX, &answer, err);
	if (r == -EAGAIN)
		return err_set(err, ETIMEDOUT, "no answer within %d s", HTTP_PATIENCE_S);
	return r < 0 ? r : parse_answer(&answer, ret_body, err);
}
