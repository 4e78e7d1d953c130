#include "watch/socket.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/acceptor.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/unix_socket.h"
#include "proto/watch_msg.h"

#define MESSAGES_PER_TURN 256 /* of one client; then the others get their turn */

struct watch_socket {
	struct event_base *base;
	struct watchdog *watchdog;
	struct worker_pages *pages;
	struct keeps *keeps;
	struct watchdog_channel channel;
	char *path;
	struct acceptor acceptor;
	struct list clients;
	size_t client_count;
	bool told_malformed;
};

struct client {
	struct list link;
	struct watch_socket *server;
	pid_t pid;
	int fd;
	struct event *readable;
};

static void client_free(struct client *client)
{
	list_unlink(&client->link);
	client->server->client_count--;
	event_free(client->readable);
	fd_close(&client->fd);
	free(client);
}

/* ---- requests ---- */

/* A client that does not read its replies loses them. */
static void reply(struct client *client, int result, int fd)
{
	struct watch_reply body = { .result = result };
	struct iovec iov = { .iov_base = &body, .iov_len = sizeof(body) };
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	if (fd >= 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
		struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	}
	sendmsg(client->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void give_page(struct client *client)
{
	size_t rank;
	int r = watchdog_rank_of(client->server->watchdog, client->pid, &rank);
	int fd = r == 0 ? worker_pages_fd(client->server->pages, rank, NULL) : -1;
	reply(client, r < 0 ? r : fd < 0 ? fd : 0, fd);
}

static void give_keep(struct client *client, const char *name, uint64_t size)
{
	size_t rank;
	int r = watchdog_rank_of(client->server->watchdog, client->pid, &rank);
	int fd = r == 0 ? keeps_fd(client->server->keeps, rank, name, size, NULL) : -1;
	reply(client, r < 0 ? r : fd < 0 ? fd : 0, fd);
}

static int obey(struct client *client, const struct watch_msg *msg, const char *scope)
{
	struct watchdog *watchdog = client->server->watchdog;
	bool whole_worker = msg->flags & WATCH_FLAG_WORKER;
	if (msg->op == WATCH_OP_RELEASE)
		return watchdog_release(watchdog, client->pid, whole_worker, scope);
	if (msg->signal >= NSIG)
		return -EINVAL;
	return watchdog_acquire(watchdog, client->pid, whole_worker, scope,
				msg->flags & WATCH_FLAG_NEST ? DEADLINE_NEST : DEADLINE_RENEW,
				msg->signal, ns_add(clock_now_ns(), msg->duration_ns));
}

static int malformed(struct watch_socket *server)
{
	watchdog_reject(server->watchdog, REJECT_LINE,
			server->told_malformed ? NULL : "not a message of the watchdog socket");
	server->told_malformed = true;
	return -EBADMSG;
}

static void take_message(struct client *client, const struct watch_msg *msg, size_t len)
{
	char scope[WATCH_MSG_SCOPE_MAX + 1];
	int r;
	if (!watch_msg_check(msg, len, scope))
		r = malformed(client->server);
	else if (msg->op == WATCH_OP_PAGE)
		return give_page(client);
	else if (msg->op == WATCH_OP_KEEP)
		return give_keep(client, scope, msg->duration_ns);
	else
		r = obey(client, msg, scope);
	if (len >= WATCH_MSG_HEAD && msg->flags & WATCH_FLAG_REPLY)
		reply(client, r, -1);
}

/* Returns false when the client is gone, and freed. */
static bool read_client(struct client *client)
{
	/* One byte more than a message, to detect one that is too long. */
	union {
		struct watch_msg msg;
		char bytes[sizeof(struct watch_msg) + 1];
	} in;
	for (int turn = 0; turn < MESSAGES_PER_TURN; turn++) {
		ssize_t n = recv(client->fd, &in, sizeof(in.bytes), MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return true;
		if (n <= 0) {
			client_free(client);
			return false;
		}
		take_message(client, &in.msg, (size_t)n);
	}
	return true;
}

static void on_readable(UNUSED evutil_socket_t fd, UNUSED short what, void *arg)
{
	read_client(arg);
}

static void drain(struct watchdog_channel *channel)
{
	struct watch_socket *server = container_of(channel, struct watch_socket, channel);
	list_foreach(link, &server->clients) read_client(list_entry(link, struct client, link));
}

static void set_event(struct event *event, bool on)
{
	if (on)
		event_add(event, NULL);
	else
		event_del(event);
}

static void listen_to_all(struct watchdog_channel *channel, bool on)
{
	struct watch_socket *server = container_of(channel, struct watch_socket, channel);
	acceptor_listen(&server->acceptor, on);
	list_foreach(link, &server->clients)
		set_event(list_entry(link, struct client, link)->readable, on);
}

/* ---- connections ---- */

static void on_accept(void *arg, int connection, const struct sockaddr_storage *peer UNUSED)
{
	struct watch_socket *server = arg;
	AUTO(fd_close) int fd = connection;
	struct ucred cred;
	socklen_t len = sizeof(cred);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 ||
	    server->client_count >= SOCKET_CLIENTS_MAX)
		return;
	struct client *client = NEW(struct client);
	client->server = server;
	client->pid = cred.pid;
	client->fd = fd_take(&fd);
	client->readable =
		event_new(server->base, client->fd, EV_READ | EV_PERSIST, on_readable, client);
	event_add(client->readable, NULL);
	list_append(&server->clients, &client->link);
	server->client_count++;
}

static const struct acceptor_handler acceptor_handler = { .on_accept = on_accept };

int watch_socket_new(struct event_base *base, struct watchdog *watchdog, struct worker_pages *pages,
		     struct keeps *keeps, const char *path, struct watch_socket **ret,
		     struct err *err)
{
	int fd = unix_listen(path, SOCK_SEQPACKET, err);
	if (fd < 0)
		return fd;
	struct watch_socket *server = NEW(struct watch_socket);
	server->base = base;
	server->watchdog = watchdog;
	server->pages = pages;
	server->keeps = keeps;
	server->path = mem_strdup(path);
	list_init(&server->clients);
	acceptor_init(&server->acceptor, base, fd, &acceptor_handler, server);
	server->channel.drain = drain;
	server->channel.listen = listen_to_all;
	watchdog_add_channel(watchdog, &server->channel);
	*ret = server;
	return 0;
}

void watch_socket_free(struct watch_socket *server)
{
	if (!server)
		return;
	watchdog_remove_channel(&server->channel);
	list_foreach(link, &server->clients) client_free(list_entry(link, struct client, link));
	acceptor_done(&server->acceptor);
	unlink(server->path);
	free(server->path);
	free(server);
}
