/* Names, ports and interfaces, through which the workers of several hosts find each other. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "sys/checks/checks_private.h"

#define DEFAULT_PORT 29500 /* of torchrun, and of muster's --rdzv-endpoint */
#define NAME_MAX_BYTES 256

static bool is_loopback(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)addr)->sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)addr)->sin6_addr);
}

void check_names(const struct check_place *place UNUSED, struct check_result *result)
{
	static const char remedy[] = "for jobs on several hosts: correct /etc/hosts or the name "
				     "server, or give --local-addr=ADDRESS to muster run";
	char name[NAME_MAX_BYTES] = "", text[INET6_ADDRSTRLEN] = "";
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
	gethostname(name, sizeof(name) - 1);
	int r = getaddrinfo(name, NULL, &hints, &found);
	if (r != 0) {
		check_find(result, CHECK_WARNING, remedy, "this host's name %s has no address: %s",
			   name, gai_strerror(r));
		return;
	}
	bool reachable = false;
	for (const struct addrinfo *at = found; at; at = at->ai_next) {
		bool outside = !is_loopback(at->ai_addr);
		if (outside && !reachable)
			getnameinfo(at->ai_addr, at->ai_addrlen, text, sizeof(text), NULL, 0,
				    NI_NUMERICHOST);
		reachable |= outside;
	}
	freeaddrinfo(found);
	if (reachable)
		check_say(result, "%s is %s", name, text);
	else
		check_find(result, CHECK_WARNING, remedy,
			   "this host's name %s means only itself (a loopback address)", name);
}

/* A listener at the port, 0: any; -errno. */
static int listen_at(uint32_t address, uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(port),
				    .sin_addr.s_addr = htonl(address) };
	AUTO(fd_close) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, 1) < 0)
		return -errno;
	return fd_take(&fd);
}

static int connect_to(int listener)
{
	struct sockaddr_in addr;
	socklen_t len = sizeof(addr);
	AUTO(fd_close) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || getsockname(listener, (struct sockaddr *)&addr, &len) < 0 ||
	    connect(fd, (struct sockaddr *)&addr, len) < 0)
		return -errno;
	return 0;
}

void check_ports(const struct check_place *place UNUSED, struct check_result *result)
{
	AUTO(fd_close) int own = listen_at(INADDR_LOOPBACK, 0);
	int r = own < 0 ? own : connect_to(own);
	if (r < 0)
		check_find(result, CHECK_BAD, "look at the firewall and the loopback interface",
			   "no connection within this host: %s", strerror(-r));
	AUTO(fd_close) int common = listen_at(INADDR_ANY, DEFAULT_PORT);
	if (common < 0)
		check_find(result, CHECK_WARNING,
			   "another job may run here: name another port with --master-port or "
			   "--rdzv-endpoint",
			   "port %d, the default, cannot be had: %s", DEFAULT_PORT,
			   strerror(-common));
	else
		check_say(result, "port %d is free", DEFAULT_PORT);
}

static void put_interface(const struct ifaddrs *at, struct check_result *result)
{
	char text[INET6_ADDRSTRLEN], path[IF_NAMESIZE + 64];
	AUTO(buf_done) struct buf speed = BUF_INIT;
	int64_t mbits = 0;
	getnameinfo(at->ifa_addr, sizeof(struct sockaddr_in), text, sizeof(text), NULL, 0,
		    NI_NUMERICHOST);
	snprintf(path, sizeof(path), "/sys/class/net/%.*s/speed", IF_NAMESIZE, at->ifa_name);
	if (file_read(path, sizeof(path), &speed, NULL) == 0) {
		AUTO_FREE char *word = mem_strndup(buf_str(&speed), strcspn(buf_str(&speed), "\n"));
		str_to_i64(word, &mbits);
	}
	if (mbits > 0)
		check_say(result, "%s has %s (%lld Mbit/s)", at->ifa_name, text, (long long)mbits);
	else
		check_say(result, "%s has %s", at->ifa_name, text);
}

void check_interfaces(const struct check_place *place UNUSED, struct check_result *result)
{
	struct ifaddrs *all = NULL;
	size_t count = 0;
	if (getifaddrs(&all) < 0) {
		check_find(result, CHECK_UNKNOWN, "", "interfaces cannot be listed: %s",
			   strerror(errno));
		return;
	}
	for (const struct ifaddrs *at = all; at; at = at->ifa_next) {
		bool up = (at->ifa_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
		if (!up || at->ifa_flags & IFF_LOOPBACK || !at->ifa_addr ||
		    at->ifa_addr->sa_family != AF_INET)
			continue;
		put_interface(at, result);
		count++;
	}
	freeifaddrs(all);
	if (count == 0)
		check_find(
			result, CHECK_WARNING,
			"for jobs on several hosts: bring an interface up and give it an address",
			"no interface leads to other hosts");
	check_measure(result, "interfaces", (double)count, "");
}
