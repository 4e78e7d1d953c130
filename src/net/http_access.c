/* Who may have what: tokens, users of this host, and the name that was asked for. */
#include <sodium.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/peer_user.h"
#include "base/str.h"
#include "net/http_private.h"

/* The token of guarded routes, made when it is first asked for. Until then they refuse everybody.
 */
static const char *token_of(struct http_server *server)
{
	unsigned char random[HTTP_TOKEN_BYTES];
	if (!*server->token) {
		randombytes_buf(random, sizeof(random));
		sodium_bin2hex(server->token, sizeof(server->token), random, sizeof(random));
	}
	return server->token;
}

/* Whether it stands for all interfaces; browsers need a name then. */
static bool is_any(const struct addr *address)
{
	char text[ADDR_TEXT_MAX];
	addr_format_ip(address, text);
	return str_eq(text, "0.0.0.0") || str_eq(text, "::");
}

void http_page_address(struct http_server *server, const struct addr *there, const char *host,
		       struct buf *out)
{
	char text[ADDR_TEXT_MAX];
	addr_format(there, text);
	if (is_any(there) && *host)
		buf_printf(out, "http://%.200s:%u", host, addr_port(there));
	else
		buf_printf(out, "http://%s", text);
	buf_printf(out, "/#token=%s", token_of(server));
}

static const char *header(struct evhttp_request *request, const char *name)
{
	return evhttp_find_header(evhttp_request_get_input_headers(request), name);
}

static bool has_token(const struct http_server *server, struct evhttp_request *request)
{
	static const char scheme[] = "Bearer ";
	const char *text = header(request, "Authorization");
	if (!*server->token || !text || !str_starts(text, scheme))
		return false;
	text += strlen(scheme);
	return strlen(text) == strlen(server->token) &&
	       sodium_memcmp(text, server->token, strlen(server->token)) == 0;
}

/* Its own name, short or, beyond the loopback interface, with a domain. */
static bool is_own_name(const struct http_server *server, const char *name)
{
	char own[HTTP_HOST_MAX] = "";
	gethostname(own, sizeof(own) - 1);
	size_t len = strlen(own);
	return len > 0 && strncasecmp(name, own, len) == 0 &&
	       (!name[len] || (server->beyond_loopback && name[len] == '.'));
}

/* A page of another site can have its name resolve to this host's address, and ask as if it were
 * ours; but the browser then says that name. */
static bool is_host_ours(const struct http_server *server, const char *text)
{
	struct addr_name name;
	struct addr ip;
	if (!text)
		return true; /* not a browser */
	if (addr_name_parse(text, 80, &name, NULL) < 0)
		return false;
	return strcasecmp(name.host, "localhost") == 0 || is_own_name(server, name.host) ||
	       addr_from_ip(name.host, name.port, &ip) == 0;
}

static bool is_other_user(struct evhttp_request *request, struct http_reply *reply)
{
	struct evhttp_connection *connection = evhttp_request_get_connection(request);
	int fd = bufferevent_getfd(evhttp_connection_get_bufferevent(connection));
	char text[PEER_USER_TEXT_MAX];
	if (!peer_is_other_user(fd, text))
		return false;
	reply->code = 403;
	buf_printf(&reply->body, "this page is for the job's own user; %s\n", text);
	return true;
}

bool http_may_have(struct http_server *server, struct evhttp_request *request,
		   const struct http_route *route, struct http_reply *reply)
{
	bool closed = server->access == HTTP_OWN_USER;
	if (closed && is_other_user(request, reply))
		return false;
	if ((!route->guarded && !route->scraped) || has_token(server, request))
		return true;
	if (route->guarded || closed) {
		reply->code = 401;
		buf_append_str(&reply->body, "the token is missing or wrong; 'muster dash JOB' "
					     "prints an address with it\n");
		return false;
	}
	if (is_host_ours(server, header(request, "Host")))
		return true;
	reply->code = 421;
	buf_append_str(&reply->body, "this is not the name of this host in 'Host:'; ask for its "
				     "address, or send the token\n");
	return false;
}
