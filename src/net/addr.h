/* Socket addresses: from text, to text, and listening on one.
 *
 * An IP address stays as typed; names are resolved in a child with a deadline, and addresses are
 * never resolved to names: a slow resolver must not stop a loop. */
#ifndef NET_ADDR_H
#define NET_ADDR_H

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/util.h"
#include "core/rounds/msg.h"

#define ADDR_HOST_MAX 256 /* a host name and its NUL */
#define ADDR_TEXT_MAX 80  /* "[v6%scope]:65535" and its NUL */

struct addr {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	};
};

/* The peer of a connection as base/acceptor.h tells it. One on a Unix socket is on this host. */
static inline struct addr addr_of_peer(const struct sockaddr_storage *peer)
{
	struct addr addr;
	memcpy(&addr, peer, sizeof(addr));
	if (addr.any.sa_family == AF_UNIX)
		addr.v4 = (struct sockaddr_in){ .sin_family = AF_INET,
						.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	return addr;
}

/* A host as typed, name or IP, with a port. */
struct addr_name {
	char host[ADDR_HOST_MAX]; /* without brackets; empty if none was given */
	uint16_t port;
};

/* "host", "host:port", ":port", "1.2.3.4:port", "[v6]", "[v6]:port", or a bare v6 address. The port
 * is `default_port` if none is given. */
int addr_name_parse(const char *text, uint16_t default_port, struct addr_name *ret_name,
		    struct err *err);

/* An IP address in text, no names: -EINVAL. */
int addr_from_ip(const char *ip, uint16_t port, struct addr *ret_addr);

socklen_t addr_len(const struct addr *addr);
uint16_t addr_port(const struct addr *addr);
void addr_set_port(struct addr *addr, uint16_t port);

/* "1.2.3.4:80", "[::1]:80"; an IPv4 address seen through an IPv6 socket is shown as IPv4. */
void addr_format(const struct addr *addr, char text[ADDR_TEXT_MAX]);
void addr_format_ip(const struct addr *addr,
		    char text[ADDR_TEXT_MAX]); /* without port and brackets */

/* An address without its port, as in messages (core/rounds/msg.h), and back. */
void addr_to_msg(const struct addr *addr, struct msg_addr *ret_addr);
void addr_of_msg(const struct msg_addr *msg, struct addr *ret_addr);

/* The same host address, whatever the ports and whether IPv4 is mapped into IPv6 or not. */
bool addr_same_host(const struct addr *a, const struct addr *b);
bool addr_is_loopback(const struct addr *addr);

/* The addresses of a name or IP, at most `max`, IPv4 before IPv6. Returns their number (at least
 * 1). -ETIMEDOUT after the deadline; -ENOENT if there is no such name. */
int addr_resolve(const struct addr_name *name, uint64_t deadline_ns, struct addr *ret_addrs,
		 size_t max, struct err *err);

/* The same without blocking: `fd` becomes readable when there is an answer. */
struct addr_lookup {
	pid_t pid;
	int fd; /* -1: none under way */
};

#define ADDR_LOOKUP_INIT ((struct addr_lookup){ .fd = -1 })

int addr_lookup_begin(const struct addr_name *name, struct addr_lookup *ret_lookup,
		      struct err *err);

/* Takes the answer; before there is one, cancels the look-up: -ETIMEDOUT. Ends it in any case. */
int addr_lookup_end(struct addr_lookup *lookup, const struct addr_name *name,
		    struct addr *ret_addrs, size_t max, struct err *err);

/* A listening TCP socket, non-blocking, CLOEXEC; port 0 lets the kernel choose (addr_of_socket
 * tells).
 * "::" also takes IPv4. When the port is taken, the message names the process that holds it. */
int addr_listen(const struct addr *addr, struct err *err);

/* The same for a host as typed: an empty one means all interfaces. */
int addr_listen_name(const struct addr_name *name, uint64_t deadline_ns, struct err *err);

/* The same for an address that may not be local: no message, no search for the port's holder. */
int addr_try_listen(const struct addr *addr);

/* Sets the port to one that is free there now, below those that the kernel gives to outgoing
 * connections. False: it has found none, or the address is not local. */
bool addr_find_port(struct addr *addr);

/* No delay, and keep-alive probes that give up a silent peer after two minutes. Accepted sockets
 * inherit them from the listener, without a system call each. */
void addr_set_options(int fd);

int addr_of_socket(int fd, struct addr *ret_addr, struct err *err); /* the local end */

/* The local address towards `peer`; sends nothing. */
int addr_towards(const struct addr *peer, struct addr *ret_addr, struct err *err);

/* The addresses of this host's interfaces that are up, without loopback; at most `max`. Returns
 * their number. */
int addr_of_interfaces(struct addr *ret_addrs, size_t max, struct err *err);

/* The process that listens on a TCP port: "python3 (pid 123)", "a process of user 1000", or "an
 * unknown process" (in another network or pid name space). */
#define ADDR_HOLDER_MAX 96
void addr_port_holder(uint16_t port, char text[ADDR_HOLDER_MAX]);

#endif
