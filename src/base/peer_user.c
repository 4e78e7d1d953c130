#include "base/peer_user.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/procfs.h"
#include "base/str.h"

#define TABLE_MAX ((size_t)64 << 20)
#define NOBODY_LEFT ((uid_t)-1)

/* One end of a connection as the kernel knows it. */
struct end {
	uid_t user;
	uint64_t inode; /* 0: no process has it any more, and `user` says nothing */
	unsigned state;
};

/* Both addresses of a connection, seen from the end that is looked for. */
struct ends {
	sa_family_t family;
	uint32_t from[4], to[4];
	in_port_t from_port, to_port;
};

static void unpack(const struct sockaddr_storage *addr, sa_family_t *ret_family, uint32_t ret_ip[4],
		   in_port_t *ret_port)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)addr;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)addr;
	bool mapped = addr->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
	memset(ret_ip, 0, 4 * sizeof(*ret_ip));
	*ret_family = mapped ? AF_INET : addr->ss_family;
	*ret_port = addr->ss_family == AF_INET ? v4->sin_port : v6->sin6_port;
	if (addr->ss_family == AF_INET)
		memcpy(ret_ip, &v4->sin_addr, sizeof(v4->sin_addr));
	else if (mapped)
		memcpy(ret_ip, &v6->sin6_addr.s6_addr[12], sizeof(v4->sin_addr));
	else
		memcpy(ret_ip, &v6->sin6_addr, sizeof(v6->sin6_addr));
}

static struct ends turned(const struct ends *ends)
{
	struct ends back = { .family = ends->family,
			     .from_port = ends->to_port,
			     .to_port = ends->from_port };
	memcpy(back.from, ends->to, sizeof(back.from));
	memcpy(back.to, ends->from, sizeof(back.to));
	return back;
}

/* ---- sock_diag ---- */

struct diag_request {
	struct nlmsghdr head;
	struct inet_diag_req_v2 ask;
};

static void put_request(const struct ends *ends, struct diag_request *ret)
{
	*ret = (struct diag_request){
		.head = { .nlmsg_len = sizeof(*ret),
			  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			  .nlmsg_flags = NLM_F_REQUEST },
		.ask = { .sdiag_family = (uint8_t)ends->family,
			 .sdiag_protocol = IPPROTO_TCP,
			 .idiag_states = ~0u,
			 .id = { .idiag_sport = ends->from_port,
				 .idiag_dport = ends->to_port,
				 .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } } },
	};
	memcpy(ret->ask.id.idiag_src, ends->from, sizeof(ends->from));
	memcpy(ret->ask.id.idiag_dst, ends->to, sizeof(ends->to));
}

/* -ENOENT: there is none, or the kernel has no sock_diag; it says the same of both. */
static int ask_kernel(int diag, const struct ends *ends, struct end *ret)
{
	struct diag_request request;
	struct {
		struct nlmsghdr head;
		struct inet_diag_msg msg;
		char attributes[512];
	} answer;
	put_request(ends, &request);
	if (send(diag, &request, sizeof(request), 0) < 0)
		return -errno;
	ssize_t len = recv(diag, &answer, sizeof(answer), 0);
	if (len < (ssize_t)(sizeof(answer.head) + sizeof(answer.msg)) ||
	    answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return -ENOENT;
	/* Without such a connection, the kernel answers with what listens at that port. */
	if (answer.msg.id.idiag_dport != ends->to_port || answer.msg.idiag_state == TCP_LISTEN)
		return -ENOENT;
	*ret = (struct end){ .user = answer.msg.idiag_uid,
			     .inode = answer.msg.idiag_inode,
			     .state = answer.msg.idiag_state };
	return 0;
}

/* ---- /proc/net, where there is no sock_diag ---- */

static void put_address(const struct ends *ends, const uint32_t ip[4], in_port_t port, bool v6,
			char text[48])
{
	static const uint32_t mapped[3] = { 0, 0, 0 };
	uint32_t words[4] = { mapped[0], mapped[1], htonl(0xffff), ip[0] };
	const uint32_t *shown = ends->family == AF_INET6 ? ip : words;
	if (v6)
		snprintf(text, 48, "%08X%08X%08X%08X:%04X", shown[0], shown[1], shown[2], shown[3],
			 ntohs(port));
	else
		snprintf(text, 48, "%08X:%04X", ip[0], ntohs(port));
}

static int search_table(const struct ends *ends, bool v6, struct end *ret)
{
	AUTO(buf_done) struct buf table = BUF_INIT;
	char from[48], to[48];
	if (file_read(v6 ? "/proc/net/tcp6" : "/proc/net/tcp", TABLE_MAX, &table, NULL) < 0)
		return -ENOENT;
	put_address(ends, ends->from, ends->from_port, v6, from);
	put_address(ends, ends->to, ends->to_port, v6, to);
	const char *rest = buf_str(&table), *line;
	size_t len;
	while ((line = str_split(&rest, '\n', &len))) {
		char a[48], b[48];
		struct end end;
		if (sscanf(line, "%*d: %47s %47s %x %*x:%*x %*x:%*x %*x %u %*d %" SCNu64, a, b,
			   &end.state, &end.user, &end.inode) != 5)
			continue;
		if (str_eq(a, from) && str_eq(b, to)) {
			*ret = end;
			return 0;
		}
	}
	return -ENOENT;
}

static int read_tables(const struct ends *ends, struct end *ret)
{
	if (ends->family == AF_INET && search_table(ends, false, ret) == 0)
		return 0;
	return search_table(ends, true, ret);
}

/* ---- who it is ---- */

static int find_both(const struct ends *peer, struct end *ret_peer, struct end *ret_own)
{
	struct ends own = turned(peer);
	AUTO(fd_close)
	int diag = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	ret_own->state = 0;
	if (diag >= 0 && ask_kernel(diag, peer, ret_peer) == 0)
		return 0;
	/* This end exists: if it is not found, sock_diag does not work here. */
	if (diag >= 0 && ask_kernel(diag, &own, ret_own) == 0)
		return -ENOENT;
	int r = read_tables(peer, ret_peer);
	if (r < 0)
		read_tables(&own, ret_own);
	return r;
}

/* 0, or -ENOENT: it is elsewhere, or the kernel cannot tell. */
static int user_of_tcp(int fd, const struct sockaddr_storage *far, uid_t *ret_user)
{
	struct sockaddr_storage near;
	struct ends peer;
	struct end found, own;
	socklen_t len = sizeof(near);
	if (getsockname(fd, (struct sockaddr *)&near, &len) < 0)
		return -ENOENT;
	unpack(far, &peer.family, peer.from, &peer.from_port);
	unpack(&near, &peer.family, peer.to, &peer.to_port);
	int r = find_both(&peer, &found, &own);
	/* Who sends and leaves at once has no process that could be asked after: to the kernel such
	 * a socket is root's, or is not there while ours is half closed. */
	bool left = r == 0 ? found.inode == 0 : own.state && own.state != TCP_ESTABLISHED;
	*ret_user = left ? NOBODY_LEFT : found.user;
	return left ? 0 : r;
}

static int user_of(int fd, uid_t *ret_user)
{
	struct sockaddr_storage peer = { .ss_family = AF_UNSPEC };
	struct ucred credentials;
	socklen_t len = sizeof(peer), size = sizeof(credentials);
	if (getpeername(fd, (struct sockaddr *)&peer, &len) < 0) {
		*ret_user = NOBODY_LEFT;
		return errno == ENOTCONN ? 0 : -ENOENT;
	}
	if (peer.ss_family == AF_INET || peer.ss_family == AF_INET6)
		return user_of_tcp(fd, &peer, ret_user);
	if (peer.ss_family != AF_UNIX ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0)
		return -ENOENT;
	*ret_user = credentials.uid;
	return 0;
}

/* ---- workers that have become somebody else ---- */

static bool descends_from_us(pid_t pid)
{
	struct proc_stat stat;
	for (pid_t self = getpid(); pid > 1 && procfs_stat(pid, &stat) == 0; pid = stat.ppid)
		if (stat.ppid == self)
			return true;
	return false;
}

static bool runs_below_us(uid_t user)
{
	AUTO(pids_done) struct pids all = PIDS_INIT;
	procfs_processes(&all);
	for (size_t i = 0; i < all.count; i++) {
		char path[32];
		struct stat st;
		snprintf(path, sizeof(path), "/proc/%d", (int)all.items[i]);
		if (stat(path, &st) == 0 && st.st_uid == user && descends_from_us(all.items[i]))
			return true;
	}
	return false;
}

/* Looking costs too much to be had for every connection of somebody who just tries. */
static bool may_look(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static uint64_t second;
	static unsigned looks;
	uint64_t now = clock_now_ns() / NS_PER_S;
	pthread_mutex_lock(&lock);
	looks = now == second ? looks + 1 : 1;
	second = now;
	bool may = looks <= PEER_USER_LOOKS_PER_S;
	pthread_mutex_unlock(&lock);
	return may;
}

bool peer_is_other_user(int fd, char ret_text[PEER_USER_TEXT_MAX])
{
	const char *any = getenv(PEER_USER_VARIABLE);
	uid_t user;
	if ((any && str_eq(any, "1")) || user_of(fd, &user) < 0)
		return false;
	if (user == geteuid() || user == 0)
		return false;
	*ret_text = '\0';
	if (user == NOBODY_LEFT)
		return true;
	if (may_look() && runs_below_us(user))
		return false;
	snprintf(ret_text, PEER_USER_TEXT_MAX,
		 "it is of user %u of this host; " PEER_USER_VARIABLE "=1 lets all in", user);
	return true;
}
