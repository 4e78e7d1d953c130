/* Whether other hosts can be reached from this one: by name, through which interface, and whether
 * something on the way drops connections. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "sys/checks/checks_private.h"

#define PORT "29500" /* the default of jobs; that nothing listens there is an answer, too */
#define INTERFACES_MAX 8
#define WAIT_NS (4 * NS_PER_S) /* the kernel there answers: a first packet and two more */

struct peer {
	const char *name;
	int fd;	   /* under way; -1: not any more */
	int error; /* of the connection */
	bool known;
	char address[INET6_ADDRSTRLEN];
	struct sockaddr_storage own; /* the address it is reached from */
};

static void begin(struct peer *peer, struct check_result *result)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
	socklen_t len = sizeof(peer->own);
	int r = getaddrinfo(peer->name, PORT, &hints, &found);
	if (r != 0) {
		check_find(result, CHECK_WARNING,
			   "add the name to /etc/hosts or the name server of this host",
			   "%s has no address here: %s", peer->name, gai_strerror(r));
		return;
	}
	peer->known = true;
	getnameinfo(found->ai_addr, found->ai_addrlen, peer->address, sizeof(peer->address), NULL,
		    0, NI_NUMERICHOST);
	peer->fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (peer->fd < 0 || connect(peer->fd, found->ai_addr, found->ai_addrlen) < 0)
		peer->error = errno;
	freeaddrinfo(found);
	getsockname(peer->fd, (struct sockaddr *)&peer->own, &len);
	if (peer->error != EINPROGRESS)
		fd_close(&peer->fd);
}

/* What has no answer by the deadline keeps EINPROGRESS. */
static void await(struct peer *peers, size_t count, uint64_t deadline_ns)
{
	AUTO_FREE struct pollfd *fds = NEW_ARRAY(struct pollfd, count + 1);
	for (;;) {
		size_t left = 0;
		uint64_t now_ns = clock_now_ns();
		for (size_t i = 0; i < count; i++) {
			fds[i] = (struct pollfd){ .fd = peers[i].fd, .events = POLLOUT };
			left += peers[i].fd >= 0;
		}
		if (left == 0)
			return;
		/* A last look after the deadline: who answered while this process had to wait did
		 * answer. */
		bool late = now_ns >= deadline_ns;
		if (poll(fds, count, clock_left_ms(deadline_ns, now_ns)) < 0 && errno != EINTR)
			return;
		for (size_t i = 0; i < count; i++) {
			socklen_t len = sizeof(peers[i].error);
			if (peers[i].fd < 0 || !fds[i].revents)
				continue;
			getsockopt(peers[i].fd, SOL_SOCKET, SO_ERROR, &peers[i].error, &len);
			fd_close(&peers[i].fd);
		}
		if (late)
			return;
	}
}

static bool is_reached(const struct peer *peer)
{
	return peer->known && (peer->error == 0 || peer->error == ECONNREFUSED);
}

static bool is_same(const struct sockaddr *a, const struct sockaddr_storage *b)
{
	if (!a || a->sa_family != b->ss_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return a->sa_family == AF_INET6 &&
	       memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
		      &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

static void say_interfaces(const struct peer *peers, size_t count, struct check_result *result)
{
	const char *names[INTERFACES_MAX];
	size_t hosts[INTERFACES_MAX] = { 0 }, known = 0;
	struct ifaddrs *all = NULL;
	if (getifaddrs(&all) < 0)
		return;
	for (size_t i = 0; i < count; i++) {
		const char *name = NULL;
		for (const struct ifaddrs *at = all; at && !name; at = at->ifa_next)
			if (is_reached(&peers[i]) && is_same(at->ifa_addr, &peers[i].own))
				name = at->ifa_name;
		size_t n = 0;
		while (n < known && name && !str_eq(names[n], name))
			n++;
		if (!name || n == INTERFACES_MAX)
			continue;
		names[n] = name;
		hosts[n]++;
		known = MAX(known, n + 1);
	}
	for (size_t n = 0; n < known; n++)
		check_say(result, "%s reaches %zu host%s", names[n], hosts[n],
			  hosts[n] == 1 ? "" : "s");
	freeifaddrs(all);
}

void check_reach(const struct check_place *place, struct check_result *result)
{
	size_t count = place->spec->reach.count;
	AUTO_FREE struct peer *peers = NEW_ARRAY(struct peer, count + 1);
	/* At most half of the time, so that what was found is told within it. */
	uint64_t wait_ns = MIN(place->timeout_ns / 2, WAIT_NS);
	for (size_t i = 0; i < count; i++) {
		peers[i] = (struct peer){ .name = place->spec->reach.items[i], .fd = -1 };
		begin(&peers[i], result);
	}
	await(peers, count, ns_add(clock_now_ns(), wait_ns));
	for (size_t i = 0; i < count; i++) {
		fd_close(&peers[i].fd);
		if (!peers[i].known || is_reached(&peers[i]))
			continue;
		check_find(result, CHECK_WARNING,
			   "look at firewalls and at the route ('ip route get ADDRESS'): the hosts "
			   "of a job connect to each other",
			   "%s (%s) does not answer: %s", peers[i].name, peers[i].address,
			   peers[i].error == EINPROGRESS ? "connections are dropped on the way"
							 : strerror(peers[i].error));
	}
	say_interfaces(peers, count, result);
}
