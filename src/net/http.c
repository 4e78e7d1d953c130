#include "net/http.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#define ANSWER_MAX (16 << 20)

struct http_server {
	const struct http_route *routes;
	void *arg;
	struct evhttp *public,
		*private; /* one each, so that a handler knows which one a request used */
	char *unix_path;
};

/* ---- requests ---- */

static void send_reply(struct evhttp_request *request, struct http_reply *reply)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
	evhttp_add_header(headers, "Content-Type", reply->type);
	evhttp_add_header(headers, "Cache-Control", "no-store");
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

struct http_server *http_server_new(struct event_base *base, const struct http_route *routes,
				    void *arg)
{
	struct http_server *server = NEW(struct http_server);
	server->routes = routes;
	server->arg = arg;
	server->public = new_evhttp(base, on_public, server);
	server->private = new_evhttp(base, on_private, server);
	return server;
}

void http_server_free(struct http_server *server)
{
	if (!server)
		return;
	evhttp_free(server->public);
	evhttp_free(server->private);
	if (server->unix_path)
		unlink(server->unix_path);
	free(server->unix_path);
	free(server);
}

static int accept_on(struct evhttp *http, int *fd, struct err *err)
{
	if (listen(*fd, SOMAXCONN) < 0)
		return err_set(err, errno, "listen: %m");
	if (!evhttp_accept_socket_with_handle(http, *fd))
		return err_set(err, ENOMEM, "cannot watch the listener");
	fd_take(fd); /* libevent closes it */
	return 0;
}

static int bind_one(const struct addrinfo *ai, int *ret_fd)
{
	AUTO(fd_close)
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	static const int on = 1, off = 0;
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (ai->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) < 0)
		return -errno;
	*ret_fd = fd_take(&fd);
	return 0;
}

static uint16_t port_of(int fd)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);
	char port[8];
	uint64_t number = 0;
	if (getsockname(fd, (struct sockaddr *)&addr, &len) == 0 &&
	    getnameinfo((struct sockaddr *)&addr, len, NULL, 0, port, sizeof(port),
			NI_NUMERICSERV) == 0)
		str_to_u64(port, &number);
	return (uint16_t)number;
}

int http_listen_tcp(struct http_server *server, const char *address, uint16_t *ret_port,
		    struct err *err)
{
	const char *colon = strrchr(address, ':'), *port = colon ? colon + 1 : address;
	AUTO_FREE char *host = mem_strndup(address, colon ? (size_t)(colon - address) : 0);
	size_t len = strlen(host);
	char *name = host;
	if (len >= 2 && host[0] == '[' && host[len - 1] == ']') {
		host[len - 1] = '\0';
		name = host + 1;
	}
	uint64_t number;
	if (str_to_u64(port, &number) < 0 || number > UINT16_MAX)
		return err_set(err, EINVAL, "'%s' is not [ADDRESS:]PORT", address);
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV },
			*list;
	if (str_eq(name, "localhost"))
		strcpy(name = host, "127.0.0.1"); /* same length as "localhost" */
	if (getaddrinfo(*name ? name : NULL, port, &hints, &list) != 0)
		return err_set(err, EINVAL, "'%s' is not a numeric address", name);
	AUTO(fd_close) int fd = -1;
	int r = -EADDRNOTAVAIL;
	for (const struct addrinfo *ai = list; ai && r < 0; ai = ai->ai_next)
		r = bind_one(ai, &fd);
	freeaddrinfo(list);
	if (r < 0)
		return err_set(err, -r, "listen on %s: %m", address);
	*ret_port = port_of(fd);
	return accept_on(server->public, &fd, err);
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
	return accept_on(server->private, &fd, err);
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
