#include "net/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"

/* Below the ports that the kernel gives to outgoing connections. */
#define PORT_FIRST 16384
#define PORT_COUNT 16384
#define PORT_TRIES 64

/* ---- text ---- */

static int parse_port(const char *text, const char *whole, uint16_t *ret_port, struct err *err)
{
	uint64_t port;
	if (str_to_u64(text, &port) < 0 || port > UINT16_MAX)
		return err_set(err, EINVAL, "'%s': the port must be a number from 0 to 65535",
			       whole);
	*ret_port = (uint16_t)port;
	return 0;
}

int addr_name_parse(const char *text, uint16_t default_port, struct addr_name *ret_name,
		    struct err *err)
{
	struct addr_name name = { .port = default_port };
	const char *begin = text, *end, *port = NULL;
	if (*text == '[') {
		begin++;
		end = strchr(text, ']');
		if (!end || (end[1] != '\0' && end[1] != ':'))
			return err_set(err, EINVAL,
				       "'%s': an IPv6 address is written [ADDRESS]:PORT", text);
		port = end[1] == ':' ? end + 2 : NULL;
	} else {
		end = strchr(text, ':');
		bool bare_v6 = end && strchr(end + 1, ':');
		port = end && !bare_v6 ? end + 1 : NULL;
		if (!port)
			end = text + strlen(text);
	}
	size_t len = (size_t)(end - begin);
	if (len >= sizeof(name.host))
		return err_set(err, EINVAL, "'%.40s...': the host name is too long", text);
	memcpy(name.host, begin, len);
	if (port) {
		int r = parse_port(port, text, &name.port, err);
		if (r < 0)
			return r;
	}
	*ret_name = name;
	return 0;
}

/* "fe80::1%eth0" */
static int parse_scoped_v6(const char *ip, struct sockaddr_in6 *v6)
{
	const char *percent = strchr(ip, '%');
	char bare[INET6_ADDRSTRLEN];
	size_t len = percent ? (size_t)(percent - ip) : strlen(ip);
	if (len >= sizeof(bare))
		return -EINVAL;
	memcpy(bare, ip, len);
	bare[len] = '\0';
	if (inet_pton(AF_INET6, bare, &v6->sin6_addr) != 1)
		return -EINVAL;
	if (percent) {
		v6->sin6_scope_id = if_nametoindex(percent + 1);
		if (v6->sin6_scope_id == 0)
			return -EINVAL;
	}
	v6->sin6_family = AF_INET6;
	return 0;
}

int addr_from_ip(const char *ip, uint16_t port, struct addr *ret_addr)
{
	struct addr addr = { .v6 = { .sin6_family = AF_UNSPEC } };
	if (inet_pton(AF_INET, ip, &addr.v4.sin_addr) == 1)
		addr.v4.sin_family = AF_INET;
	else if (parse_scoped_v6(ip, &addr.v6) < 0)
		return -EINVAL;
	addr_set_port(&addr, port);
	*ret_addr = addr;
	return 0;
}

socklen_t addr_len(const struct addr *addr)
{
	return addr->any.sa_family == AF_INET ? sizeof(addr->v4) : sizeof(addr->v6);
}

uint16_t addr_port(const struct addr *addr)
{
	return ntohs(addr->any.sa_family == AF_INET ? addr->v4.sin_port : addr->v6.sin6_port);
}

void addr_set_port(struct addr *addr, uint16_t port)
{
	if (addr->any.sa_family == AF_INET)
		addr->v4.sin_port = htons(port);
	else
		addr->v6.sin6_port = htons(port);
}

/* An IPv4 address that was mapped into IPv6, as IPv4. */
static struct addr unmapped(const struct addr *addr)
{
	if (addr->any.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&addr->v6.sin6_addr))
		return *addr;
	struct addr v4 = { .v4 = { .sin_family = AF_INET, .sin_port = addr->v6.sin6_port } };
	memcpy(&v4.v4.sin_addr, &addr->v6.sin6_addr.s6_addr[12], 4);
	return v4;
}

void addr_format_ip(const struct addr *addr, char text[ADDR_TEXT_MAX])
{
	struct addr plain = unmapped(addr);
	if (plain.any.sa_family == AF_INET) {
		inet_ntop(AF_INET, &plain.v4.sin_addr, text, ADDR_TEXT_MAX);
		return;
	}
	inet_ntop(AF_INET6, &plain.v6.sin6_addr, text, ADDR_TEXT_MAX);
	char scope[IF_NAMESIZE];
	size_t len = strlen(text);
	if (plain.v6.sin6_scope_id && if_indextoname(plain.v6.sin6_scope_id, scope))
		snprintf(text + len, ADDR_TEXT_MAX - len, "%%%s", scope);
}

void addr_format(const struct addr *addr, char text[ADDR_TEXT_MAX])
{
	char ip[ADDR_TEXT_MAX];
	addr_format_ip(addr, ip);
	snprintf(text, ADDR_TEXT_MAX, strchr(ip, ':') ? "[%s]:%u" : "%s:%u", ip, addr_port(addr));
}

void addr_to_msg(const struct addr *addr, struct msg_addr *ret_addr)
{
	struct addr plain = unmapped(addr);
	bool v4 = plain.any.sa_family == AF_INET;
	*ret_addr = (struct msg_addr){ .family = v4 ? 4 : 6 };
	memcpy(ret_addr->bytes, v4 ? (void *)&plain.v4.sin_addr : (void *)&plain.v6.sin6_addr,
	       v4 ? 4 : 16);
}

void addr_of_msg(const struct msg_addr *msg, struct addr *ret_addr)
{
	bool v4 = msg->family == 4;
	*ret_addr = (struct addr){ .v6 = { .sin6_family = AF_INET6 } };
	if (v4)
		ret_addr->v4 = (struct sockaddr_in){ .sin_family = AF_INET };
	memcpy(v4 ? (void *)&ret_addr->v4.sin_addr : (void *)&ret_addr->v6.sin6_addr, msg->bytes,
	       v4 ? 4 : 16);
}

bool addr_same_host(const struct addr *a, const struct addr *b)
{
	struct addr x = unmapped(a), y = unmapped(b);
	if (x.any.sa_family != y.any.sa_family)
		return false;
	if (x.any.sa_family == AF_INET)
		return x.v4.sin_addr.s_addr == y.v4.sin_addr.s_addr;
	return memcmp(&x.v6.sin6_addr, &y.v6.sin6_addr, sizeof(x.v6.sin6_addr)) == 0;
}

bool addr_is_loopback(const struct addr *addr)
{
	struct addr plain = unmapped(addr);
	if (plain.any.sa_family == AF_INET)
		return ntohl(plain.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&plain.v6.sin6_addr);
}

/* ---- sockets ---- */

#define KEEPALIVE_IDLE_S 60
#define KEEPALIVE_INTERVAL_S 20
#define KEEPALIVE_PROBES 3

void addr_set_options(int fd)
{
	const int on = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &(int){ KEEPALIVE_IDLE_S }, sizeof(int));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &(int){ KEEPALIVE_INTERVAL_S }, sizeof(int));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &(int){ KEEPALIVE_PROBES }, sizeof(int));
}

int addr_try_listen(const struct addr *addr)
{
	AUTO(fd_close)
	int fd = socket(addr->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
	if (addr->any.sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){ 0 }, sizeof(int));
	addr_set_options(fd);
	if (bind(fd, &addr->any, addr_len(addr)) < 0 || listen(fd, SOMAXCONN) < 0)
		return -errno;
	return fd_take(&fd);
}

bool addr_find_port(struct addr *addr)
{
	for (int i = 0; i < PORT_TRIES; i++) {
		addr_set_port(addr, (uint16_t)(PORT_FIRST + random_u64() % PORT_COUNT));
		AUTO(fd_close) int fd = addr_try_listen(addr);
		if (fd >= 0)
			return true;
	}
	return false;
}

int addr_listen(const struct addr *addr, struct err *err)
{
	char text[ADDR_TEXT_MAX], holder[ADDR_HOLDER_MAX];
	int fd = addr_try_listen(addr);
	if (fd >= 0)
		return fd;
	addr_format(addr, text);
	if (fd != -EADDRINUSE)
		return err_set(err, -fd, "listen on %s: %m", text);
	addr_port_holder(addr_port(addr), holder);
	return err_set(err, EADDRINUSE, "listen on %s: the port is taken by %s", text, holder);
}

int addr_of_socket(int fd, struct addr *ret_addr, struct err *err)
{
	struct addr addr;
	socklen_t len = sizeof(addr);
	if (getsockname(fd, &addr.any, &len) < 0)
		return err_set(err, errno, "getsockname: %m");
	*ret_addr = addr;
	return 0;
}

int addr_towards(const struct addr *peer, struct addr *ret_addr, struct err *err)
{
	char text[ADDR_TEXT_MAX];
	addr_format(peer, text);
	AUTO(fd_close) int fd = socket(peer->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct addr to = *peer;
	if (addr_port(&to) == 0)
		addr_set_port(&to, 9); /* any port will do: a datagram socket only picks a route */
	if (fd < 0 || connect(fd, &to.any, addr_len(&to)) < 0)
		return err_set(err, errno, "no route to %s: %m", text);
	int r = addr_of_socket(fd, ret_addr, err);
	if (r == 0)
		addr_set_port(ret_addr, 0);
	return r;
}

static void free_interfaces(struct ifaddrs **list)
{
	if (*list)
		freeifaddrs(*list);
}

int addr_of_interfaces(struct addr *ret_addrs, size_t max, struct err *err)
{
	AUTO(free_interfaces) struct ifaddrs *list = NULL;
	if (getifaddrs(&list) < 0)
		return err_set(err, errno, "getifaddrs: %m");
	size_t count = 0;
	for (const struct ifaddrs *it = list; it && count < max; it = it->ifa_next) {
		if (!it->ifa_addr || !(it->ifa_flags & IFF_UP) || (it->ifa_flags & IFF_LOOPBACK))
			continue;
		struct addr addr = { .v6 = { .sin6_family = it->ifa_addr->sa_family } };
		if (addr.any.sa_family != AF_INET && addr.any.sa_family != AF_INET6)
			continue;
		memcpy(&addr, it->ifa_addr, addr_len(&addr));
		ret_addrs[count++] = addr;
	}
	return (int)count;
}
