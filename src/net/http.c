#include "net/http.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/acceptor.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#define ANSWER_MAX (16 << 20)
#define LISTEN_FLAGS (LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC)

struct http_server {
	const struct http_route *routes;
	void *arg;
	struct evhttp *public,
		*private; /* one each, so that a handler knows which one a request used */
	char *unix_path;
	struct event_base *base;
	struct evconnlistener *public_listener; /* `public` owns it */
	struct event *rested;
	unsigned waiting; /* TCP clients that have had no answer yet, since the last rest */
};

/* ---- requests ---- */

static void on_answered(struct evhttp_request *request UNUSED, void *arg)
{
	struct http_server *server = arg;
	if (server->waiting > 0)
		server->waiting--;
}

static void send_reply(struct evhttp_request *request, struct http_reply *reply)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
	evhttp_add_header(headers, "Content-Type", reply->type);
	evhttp_add_header(headers, "Cache-Control", "no-store");
	evhttp_add_header(headers, "Connection", "close");
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

static void handle(struct http_server *server, struct evhttp_request *request, bool private)
{
	enum evhttp_cmd_type method = evhttp_request_get_command(request);
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));
	bool post = method == EVHTTP_REQ_POST, known = false;
	const struct http_route *route = NULL;
	if (path && (post || method == EVHTTP_REQ_GET || method == EVHTTP_REQ_HEAD))
		route = find_route(server, private, path, &known, post);

	struct http_reply reply = { .code = 200,
				    .type = "text/plain; charset=utf-8",
				    .body = BUF_INIT };
	if (route) {
		route->handle(server->arg, &reply);
	} else {
		reply.code = known ? 405 : 404;
		buf_append_str(&reply.body, known ? "not with this method\n" : "no such page\n");
	}
	send_reply(request, &reply);
	buf_done(&reply.body);
}

static void on_public(struct evhttp_request *request, void *arg)
{
	evhttp_request_set_on_complete_cb(request, on_answered, arg);
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

/* Too many clients wait for an answer: no more are let in for as long as a silent one is kept, so
 * that these are gone by then. */
static struct bufferevent *on_connection(struct event_base *base, void *arg)
{
	struct http_server *server = arg;
	const struct timeval rest = { .tv_sec = HTTP_PATIENCE_S };
	if (++server->waiting == HTTP_CONNECTIONS_MAX) {
		evconnlistener_disable(server->public_listener);
		event_add(server->rested, &rest);
	}
	return bufferevent_socket_new(base, -1, 0);
}

static void on_rested(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct http_server *server = arg;
	server->waiting = 0;
	evconnlistener_enable(server->public_listener);
}

struct http_server *http_server_new(struct event_base *base, const struct http_route *routes,
				    void *arg)
{
	struct http_server *server = NEW(struct http_server);
	server->routes = routes;
	server->arg = arg;
	server->base = base;
	server->rested = evtimer_new(base, on_rested, server);
	server->public = new_evhttp(base, on_public, server);
	server->private = new_evhttp(base, on_private, server);
	evhttp_set_bevcb(server->public, on_connection, server);
	return server;
}

void http_server_free(struct http_server *server)
{
	if (!server)
		return;
	event_free(server->rested);
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
		server->public_listener = listener;
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

int http_listen_tcp(struct http_server *server, const struct addr *address,
		    struct addr *ret_address, struct err *err)
{
	AUTO(fd_close) int fd = addr_listen(address, err);
	if (fd < 0)
		return fd;
	int r = addr_of_socket(fd, ret_address, err);
	return r < 0 ? r : accept_on(server, server->public, &fd, err);
}

static int unix_address(const char *path, struct sockaddr_un *ret, struct err *err)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(ret->sun_path))
		return err_set(err, ENAMETOOLONG, "%s: too long for a socket", path);
	strcpy(ret->sun_path, path);
	return 0;
}

int http_listen_unix(struct http_server *server, const char *path, struct err *err)
{
	struct sockaddr_un addr;
	int r = unix_address(path, &addr, err);
	if (r < 0)
		return r;
	AUTO(fd_close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || fchmod(fd, 0600) < 0 ||
	    bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || chmod(path, 0600) < 0)
		return err_set(err, errno, "listen on %s: %m", path);
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

int http_ask_unix(const char *socket_path, const char *method, const char *path,
		  struct buf *ret_body, struct err *err)
{
	struct sockaddr_un addr;
	int r = unix_address(socket_path, &addr, err);
	if (r < 0)
		return r;
	AUTO(fd_close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct timeval patience = { .tv_sec = HTTP_PATIENCE_S };
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0 ||
	    connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return err_set(err, errno, "%s: %m", socket_path);
	AUTO(buf_done) struct buf text = BUF_INIT, answer = BUF_INIT;
	buf_printf(&text, "%s %s HTTP/1.0\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", method,
		   path);
	r = fd_write_all(fd, buf_data(&text), buf_len(&text));
	if (r < 0)
		return err_set(err, -r, "%s: %m", socket_path);
	r = fd_read_all(fd, ANSWER_MAX, &answer, err);
	return r < 0 ? r : parse_answer(&answer, ret_body, err);
}
