#include "run/round_store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/store_server.h"

#define LOOKUP_NS (10 * NS_PER_S)
#define HIDDEN_TEXT_MAX 48

void round_store_init(struct round_store *store, struct event_base *base, uint16_t port,
		      enum store_access access)
{
	*store = ROUND_STORE_INIT;
	store->base = base;
	store->port = port;
	store->access = access;
}

int round_store_place(struct round_store *store, const char *host, const struct addr *addr,
		      struct err *err)
{
	if (store->named)
		return 0;
	store->local_count = 0;
	/* A loopback address needs no list of allowed hosts. */
	if (store->access == STORE_ACCESS_MEMBERS && !addr_is_loopback(addr)) {
		int r = addr_of_interfaces(store->local, ARRAY_LEN(store->local), err);
		if (r < 0)
			return r;
		store->local_count = (size_t)r;
	}
	snprintf(store->host, sizeof(store->host), "%s", host);
	store->addr = *addr;
	addr_set_port(&store->addr, store->port);
	return 0;
}

int round_store_name(struct round_store *store, const char *host, struct err *err)
{
	struct addr_name name = { .port = store->port };
	struct addr addr;
	if ((size_t)snprintf(name.host, sizeof(name.host), "%s", host) >= sizeof(name.host))
		return err_set(err, EINVAL, "the host name of the workers' store is too long");
	int r = addr_resolve(&name, ns_add(clock_now_ns(), LOOKUP_NS), &addr, 1, err);
	if (r < 0)
		return err_wrap(err, "the workers' store");
	r = round_store_place(store, host, &addr, err);
	store->named = r == 0;
	return r;
}

void round_store_usage(const struct round_store *store, uint64_t ret_executed[C10D_QUERY_COUNT],
		       size_t *ret_connections)
{
	struct store_server_stats stats = { 0 };
	if (store->server)
		store_server_stats(store->server, &stats);
	for (size_t i = 0; i < C10D_QUERY_COUNT; i++)
		ret_executed[i] = store->executed[i] + stats.executed[i];
	*ret_connections = stats.connections;
}

static void end_server(struct round_store *store)
{
	size_t connections;
	round_store_usage(store, store->executed, &connections);
	store_server_free(store->server);
	store->server = NULL;
}

static void end_round(struct round_store *store)
{
	end_server(store);
	fd_close(&store->listen_fd);
	store->peer_count = 0;
}

/* Returns the port. */
static int open_port(struct round_store *store, struct err *err)
{
	AUTO(fd_close) int fd = addr_listen(&store->addr, err);
	if (fd < 0)
		return err_wrap(err, "the workers' store");
	struct addr bound;
	int r = addr_of_socket(fd, &bound, err);
	if (r < 0)
		return r;
	store->listen_fd = fd_take(&fd);
	return addr_port(&bound);
}

int round_store_offer(struct round_store *store, bool keep, uint16_t *ret_port, struct err *err)
{
	AUTO(fd_close) int unused = -1;
	int r = -ENOENT;
	*ret_port = store->port;
	/* While the last port is taken, so that the next one is another. */
	if (!store->port && !store->shares_port) {
		unused = fd_take(&store->listen_fd);
		r = open_port(store, NULL);
	}
	if (!keep) {
		end_server(store);
		store->peer_count = 0;
	}
	/* A port of the user's choice is free again when the kept store has ended. */
	if (store->shares_port || (store->server && store->port))
		return 0;
	if (r < 0) {
		fd_close(&store->listen_fd);
		r = open_port(store, err);
	}
	if (r < 0)
		return r;
	*ret_port = (uint16_t)r;
	return 0;
}

static bool is_member(const struct round_store *store, const struct addr *peer)
{
	if (addr_is_loopback(peer) || addr_same_host(peer, &store->addr))
		return true;
	for (size_t i = 0; i < store->local_count; i++)
		if (addr_same_host(peer, &store->local[i]))
			return true;
	for (size_t i = 0; i < store->peer_count; i++)
		if (addr_same_host(peer, &store->peers[i]))
			return true;
	return false;
}

void round_store_admit(struct round_store *store, const struct msg_peers *peers)
{
	if (peers->first)
		store->peer_count = 0;
	for (size_t i = 0; i < peers->count; i++) {
		ARRAY_RESERVE(store->peers, store->peer_count, store->peer_cap);
		addr_of_msg(&peers->addrs[i], &store->peers[store->peer_count++]);
	}
}

static bool is_told(struct round_store_news *news, char ret_hidden[HIDDEN_TEXT_MAX])
{
	uint64_t now_ns = clock_now_ns();
	if (now_ns < news->next_ns) {
		news->hidden++;
		return false;
	}
	ret_hidden[0] = '\0';
	if (news->hidden > 0)
		snprintf(ret_hidden, HIDDEN_TEXT_MAX, " (and %llu more before)",
			 (unsigned long long)news->hidden);
	*news = (struct round_store_news){ .next_ns = now_ns + ROUND_STORE_TELL_NS };
	return true;
}

static bool on_connect(void *arg, const struct addr *peer)
{
	struct round_store *store = arg;
	if (store->access == STORE_ACCESS_ANY || is_member(store, peer))
		return true;
	char text[ADDR_TEXT_MAX], hidden[HIDDEN_TEXT_MAX];
	addr_format_ip(peer, text);
	if (is_told(&store->refused, hidden))
		log_warn("the workers' store refused %s, which is not a host of this job; "
			 "--store-access=any lets it in%s",
			 text, hidden);
	return false;
}

static void on_drop(void *arg, const struct addr *peer, const char *reason)
{
	struct round_store *store = arg;
	char text[ADDR_TEXT_MAX], hidden[HIDDEN_TEXT_MAX];
	addr_format(peer, text);
	if (is_told(&store->dropped, hidden))
		log_warn("the workers' store dropped its client %s: %s%s", text, reason, hidden);
}

void round_store_adopt(struct round_store *store, int fd, const struct addr *peer)
{
	if (store->server) {
		store_server_adopt(store->server, fd, peer);
		return;
	}
	if (store->caller_count == ROUND_STORE_CALLERS_MAX) {
		fd_close(&fd);
		return;
	}
	ARRAY_RESERVE(store->callers, store->caller_count, store->caller_cap);
	store->callers[store->caller_count++] = (struct round_store_caller){ fd, *peer };
}

/* Connections of workers that have died meanwhile are dropped when they are read. */
static void let_in(struct round_store *store)
{
	for (size_t i = 0; i < store->caller_count; i++)
		store_server_adopt(store->server, store->callers[i].fd, &store->callers[i].peer);
	store->caller_count = 0;
}

static void send_away(struct round_store *store)
{
	for (size_t i = 0; i < store->caller_count; i++)
		fd_close(&store->callers[i].fd);
	store->caller_count = 0;
}

int round_store_begin(struct round_store *store, bool serve, struct err *err)
{
	end_server(store);
	if (!serve) {
		fd_close(&store->listen_fd);
		send_away(store);
		return 0;
	}
	if (store->listen_fd < 0 && !store->shares_port) {
		/* The port was taken when it was offered, perhaps by the kept store: try again. */
		int r = store->port ? open_port(store, err)
				    : err_set(err, EADDRNOTAVAIL, "the workers' store has no port");
		if (r < 0)
			return r;
	}
	struct store_server_config config = STORE_SERVER_CONFIG_DEFAULT;
	config.any_user = store->access == STORE_ACCESS_ANY;
	config.on_connect = on_connect;
	config.on_drop = on_drop;
	config.arg = store;
	store->server = store_server_new(store->base, fd_take(&store->listen_fd), &config);
	let_in(store);
	return 0;
}

void round_store_done(struct round_store *store)
{
	end_round(store);
	send_away(store);
	free(store->callers);
	free(store->peers);
	store->callers = NULL;
	store->peers = NULL;
}
