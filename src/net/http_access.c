/* Who may have what: tokens. */
#include <sodium.h>
#include <string.h>

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

bool http_may_have(struct http_server *server, struct evhttp_request *request,
		   const struct http_route *route, struct http_reply *reply)
{
	if (!route->guarded || has_token(server, request))
		return true;
	reply->code = 401;
	buf_append_str(&reply->body, "the token is missing or wrong; 'muster dash JOB' "
				     "prints an address with it\n");
	return false;
}
