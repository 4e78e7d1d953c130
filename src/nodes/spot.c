#include "nodes/spot.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"

static void end_lookup(struct spot *spot)
{
	struct err err = ERR_INIT;
	event_del(&spot->on_lookup);
	int r = addr_lookup_end(&spot->lookup, &spot->name, spot->addrs, ARRAY_LEN(spot->addrs),
				&err);
	spot->count = r > 0 ? (size_t)r : 0;
	if (r < 0)
		snprintf(spot->trouble, sizeof(spot->trouble), "%s", err.msg);
}

static void on_answer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct spot *spot = arg;
	if (spot->lookup.fd >= 0)
		end_lookup(spot);
	spot->on_done(spot->arg, spot);
}

void spot_init(struct spot *spot, const struct addr_name *name, struct event_base *base,
	       spot_fn *on_done, void *arg)
{
	*spot = (struct spot){
		.name = *name,
		.lookup = ADDR_LOOKUP_INIT,
		.base = base,
		.on_done = on_done,
		.arg = arg,
	};
	bool v6 = strchr(name->host, ':');
	snprintf(spot->text, sizeof(spot->text), v6 ? "[%s]:%u" : "%s:%u", name->host, name->port);
	event_assign(&spot->on_lookup, base, -1, 0, on_answer, spot);
	spot->numeric = addr_from_ip(name->host, name->port, &spot->addrs[0]) == 0;
	spot->count = spot->numeric;
}

void spot_done(struct spot *spot)
{
	if (spot->lookup.fd >= 0)
		end_lookup(spot);
	event_del(&spot->on_lookup);
}

void spot_look_up(struct spot *spot)
{
	struct err err = ERR_INIT;
	uint64_t now_ns = clock_now_ns();
	if (spot->count > 0 || spot->lookup.fd >= 0 ||
	    (spot->asked_ns && now_ns < ns_add(spot->asked_ns, SPOT_LOOKUP_NS)))
		return;
	spot->asked_ns = now_ns;
	int r = addr_lookup_begin(&spot->name, &spot->lookup, &err);
	event_assign(&spot->on_lookup, spot->base, spot->lookup.fd, EV_READ, on_answer, spot);
	if (r == 0) {
		event_add(&spot->on_lookup, NULL);
		return;
	}
	snprintf(spot->trouble, sizeof(spot->trouble), "%s", err.msg);
	event_active(&spot->on_lookup, EV_TIMEOUT, 1);
}

void spot_forget(struct spot *spot)
{
	if (!spot->numeric && clock_now_ns() >= ns_add(spot->asked_ns, SPOT_FRESH_NS))
		spot->count = 0;
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
static bool hides_us(const struct spot *spot, const struct addr *addr)
{
	return addr_is_loopback(addr) && !spot->numeric &&
	       !str_starts(spot->name.host, "localhost");
}

static bool is_our_name(const struct spot *spot)
{
	char host[ADDR_HOST_MAX] = "";
	gethostname(host, sizeof(host) - 1);
	return str_eq(spot->name.host, host);
}

int spot_listen(const struct spot *spot, bool must)
{
	int r = -EADDRNOTAVAIL;
	for (size_t i = 0; i < spot->count && r == -EADDRNOTAVAIL; i++)
		r = hides_us(spot, &spot->addrs[i]) ? listen_on_all(spot->name.port)
						    : addr_try_listen(&spot->addrs[i]);
	if (r == -EADDRNOTAVAIL && (must || (spot->count == 0 && is_our_name(spot))))
		r = listen_on_all(spot->name.port);
	return r;
}

struct link_target spot_target(const struct spot *spot)
{
	return (struct link_target){ spot->addrs, spot->count, spot->text };
}
