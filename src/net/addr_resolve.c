/* Name look-ups in a child: getaddrinfo() has no deadline, and a resolver that does not answer must
 * not block the caller. The child writes the addresses into a pipe and ends; past the deadline it
 * is killed. An IP address needs no child. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/fd.h"
#include "net/addr.h"

#define RESOLVE_MAX 16
#define ANSWER_FD 3 /* in the child: behind its stdio */

/* The child's answer: a getaddrinfo() code, then the addresses. */
struct answer {
	int code;
	size_t count;
	struct addr addrs[RESOLVE_MAX];
};

static void add_family(const struct addrinfo *list, int family, uint16_t port,
		       struct answer *answer)
{
	for (const struct addrinfo *it = list; it && answer->count < RESOLVE_MAX;
	     it = it->ai_next) {
		if (it->ai_family != family)
			continue;
		struct addr *addr = &answer->addrs[answer->count++];
		memcpy(addr, it->ai_addr, MIN(it->ai_addrlen, sizeof(*addr)));
		addr_set_port(addr, port);
	}
}

static void look_up(const struct addr_name *name, struct answer *answer)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list = NULL;
	answer->code = getaddrinfo(name->host, NULL, &hints, &list);
	if (answer->code != 0)
		return;
	add_family(list, AF_INET, name->port, answer);
	add_family(list, AF_INET6, name->port, answer);
	freeaddrinfo(list);
}

/* In the child. A resolver may take its time: so the child keeps nothing of ours open, no listener
 * and no pipe, and ends with us. */
static _Noreturn void look_up_alone(const struct addr_name *name, int to, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* it died before the line above */
		_exit(1);
	dup2(to, ANSWER_FD);
	close_range(ANSWER_FD + 1, ~0U, 0);
	struct answer found = { .count = 0 };
	look_up(name, &found);
	fd_write_all(ANSWER_FD, &found, sizeof(found));
	_exit(0);
}

int addr_lookup_begin(const struct addr_name *name, struct addr_lookup *ret_lookup, struct err *err)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set(err, errno, "pipe: %m");
	AUTO(fd_close) int from = fds[0];
	AUTO(fd_close) int to = fds[1];
	pid_t parent = getpid(), pid = child_fork();
	if (pid < 0)
		return err_set(err, errno, "fork: %m");
	if (pid == 0)
		look_up_alone(name, to, parent);
	fd_set_nonblock(from, true);
	*ret_lookup = (struct addr_lookup){ .pid = pid, .fd = fd_take(&from) };
	return 0;
}

static_assert(sizeof(struct answer) <= PIPE_BUF, "an answer is written, and read, whole");

int addr_lookup_end(struct addr_lookup *lookup, const struct addr_name *name,
		    struct addr *ret_addrs, size_t max, struct err *err)
{
	struct answer answer;
	ssize_t n = read(lookup->fd, &answer, sizeof(answer));
	kill(lookup->pid, SIGKILL);
	child_wait(lookup->pid);
	fd_close(&lookup->fd);
	if (n != sizeof(answer))
		return err_set(err, ETIMEDOUT, "the look-up of '%s' got no answer in time",
			       name->host);
	if (answer.code != 0 || answer.count == 0)
		return err_set(err, ENOENT, "look-up of '%s': %s", name->host,
			       answer.code ? gai_strerror(answer.code) : "no addresses");
	size_t count = MIN(answer.count, max);
	memcpy(ret_addrs, answer.addrs, count * sizeof(*ret_addrs));
	return (int)count;
}

int addr_resolve(const struct addr_name *name, uint64_t deadline_ns, struct addr *ret_addrs,
		 size_t max, struct err *err)
{
	if (max > 0 && addr_from_ip(name->host, name->port, &ret_addrs[0]) == 0)
		return 1;
	struct addr_lookup lookup;
	int r = addr_lookup_begin(name, &lookup, err);
	if (r < 0)
		return r;
	fd_wait(lookup.fd, POLLIN, deadline_ns);
	return addr_lookup_end(&lookup, name, ret_addrs, max, err);
}

static int listen_anywhere(uint16_t port, struct err *err)
{
	struct addr addr;
	addr_from_ip("::", port, &addr);
	int fd = addr_listen(&addr, err);
	if (fd != -EAFNOSUPPORT)
		return fd;
	addr_from_ip("0.0.0.0", port, &addr);
	return addr_listen(&addr, err);
}

int addr_listen_name(const struct addr_name *name, uint64_t deadline_ns, struct err *err)
{
	if (!*name->host)
		return listen_anywhere(name->port, err);
	struct addr addr;
	int r = addr_resolve(name, deadline_ns, &addr, 1, err);
	return r < 0 ? r : addr_listen(&addr, err);
}
