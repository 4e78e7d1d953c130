#include "nodes/resolved_name.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"

static void end_lookup(struct resolved_name *resolved)
{
	struct err err = ERR_INIT;
	event_del(&resolved->on_lookup);
	int r = addr_lookup_end(&resolved->lookup, &resolved->name, resolved->addrs,
				ARRAY_LEN(resolved->addrs), &err);
	resolved->count = r > 0 ? (size_t)r : 0;
	if (r < 0)
		snprintf(resolved->trouble, sizeof(resolved->trouble), "%s", err.msg);
}

static void on_answer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct resolved_name *resolved = arg;
	if (resolved->lookup.fd >= 0)
		end_lookup(resolved);
	resolved->on_done(resolved->arg, resolved);
}

void resolved_name_init(struct resolved_name *resolved, const struct addr_name *name,
			struct event_base *base, resolved_name_fn *on_done, void *arg)
{
	*resolved = (struct resolved_name){
		.name = *name,
		.lookup = ADDR_LOOKUP_INIT,
		.base = base,
		.on_done = on_done,
		.arg = arg,
	};
	bool v6 = strchr(name->host, ':');
	snprintf(resolved->text, sizeof(resolved->text), v6 ? "[%s]:%u" : "%s:%u", name->host,
		 name->port);
	event_assign(&resolved->on_lookup, base, -1, 0, on_answer, resolved);
	resolved->numeric = addr_from_ip(name->host, name->port, &resolved->addrs[0]) == 0;
	resolved->count = resolved->numeric;
}

void resolved_name_done(struct resolved_name *resolved)
{
	if (resolved->lookup.fd >= 0)
		end_lookup(resolved);
	event_del(&resolved->on_lookup);
}

void resolved_name_look_up(struct resolved_name *resolved)
{
	struct err err = ERR_INIT;
	uint64_t now_ns = clock_now_ns();
	if (resolved->count > 0 || resolved->lookup.fd >= 0 ||
	    (resolved->asked_ns && now_ns < ns_add(resolved->asked_ns, RESOLVED_NAME_LOOKUP_NS)))
		return;
	resolved->asked_ns = now_ns;
	int r = addr_lookup_begin(&resolved->name, &resolved->lookup, &err);
	event_assign(&resolved->on_lookup, resolved->base, resolved->lookup.fd, EV_READ, on_answer,
		     resolved);
	if (r == 0) {
		event_add(&resolved->on_lookup, NULL);
		return;
	}
	snprintf(resolved->trouble, sizeof(resolved->trouble), "%s", err.msg);
	event_active(&resolved->on_lookup, EV_TIMEOUT, 1);
}

void resolved_name_forget(struct resolved_name *resolved)
{
	if (!resolved->numeric &&
	    clock_now_ns() >= ns_add(resolved->asked_ns, RESOLVED_NAME_FRESH_NS))
		resolved->count = 0;
}

/* ---- listening ---- */

static int listen_on_all(uint16_t port)
{
	struct addr any;
	addr_from_ip("::", port, &any);
	int fd = addr_try_listen(&any);
	if (fd != -EAFNOSUPPORT && fd != -EADDRNOTAVAIL)
		return fd;
	addr_from_ip("0.0.0.0", port, &any);
	return addr_try_listen(&any);
}

/* Many systems map their own name to a loopback address, which other nodes cannot reach. */
static bool hides_us(const struct resolved_name *resolved, const struct addr *addr)
{
	return addr_is_loopback(addr) && !resolved->numeric &&
	       !str_starts(resolved->name.host, "localhost");
}

static bool is_our_name(const struct resolved_name *resolved)
{
	char host[ADDR_HOST_MAX] = "";
	gethostname(host, sizeof(host) - 1);
	return str_eq(resolved->name.host, host);
}

int resolved_name_listen(const struct resolved_name *resolved, bool must)
{
	int r = -EADDRNOTAVAIL;
	for (size_t i = 0; i < resolved->count && r == -EADDRNOTAVAIL; i++)
		r = hides_us(resolved, &resolved->addrs[i]) ? listen_on_all(resolved->name.port)
							    : addr_try_listen(&resolved->addrs[i]);
	if (r == -EADDRNOTAVAIL && (must || (resolved->count == 0 && is_our_name(resolved))))
		r = listen_on_all(resolved->name.port);
	return r;
}

struct link_target resolved_name_target(const struct resolved_name *resolved)
{
	return (struct link_target){ resolved->addrs, resolved->count, resolved->text };
}
