#include "net/store_server.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/acceptor.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/peer_user.h"
#include "base/random.h"

#define SCRATCH_SIZE ((size_t)256 << 10) /* most requests fit: read once, parsed in place */
#define REPLIES_KEPT ((size_t)1 << 20)	 /* a larger buffer is not kept for the next replies */
#define TRIM_STEP ((size_t)32 << 20)	 /* freed: worth returning to the system */
#define REASON_MAX 256

struct store_server {
	struct store_server_config config;
	struct store_table table;
	struct event_base *base;
	struct acceptor acceptor;
	struct list connections;
	size_t connection_count;
	size_t pending; /* bytes of all in and out buffers */
	size_t high;	/* most bytes held since memory was last returned to the system */
	uint64_t accepted, dropped;
	uint64_t executed[C10D_QUERY_COUNT];
	uint64_t report_second; /* which second of the clock, and how many reports in it */
	unsigned reports;
	unsigned char *scratch;
	struct buf replies; /* of the connection being served, until they are sent */
};

struct conn {
	struct store_server *server;
	struct store_session session;
	struct list link;
	uint64_t due_ns; /* when what it owes must be done; 0: it owes nothing */
	struct event readable;
	struct event writable;
	struct event stall_timer;
	int fd;
	struct addr peer;
	size_t charged; /* its share of server->pending */
	struct buf in;	/* half a request, or requests that wait for replies to be read */
	struct buf out; /* replies that the socket did not take */
};

/* ---- leaving ---- */

static void report(struct store_server *server, const struct addr *peer, const char *reason)
{
	server->dropped++;
	if (!server->config.on_drop)
		return;
	uint64_t second = clock_now_ns() / NS_PER_S;
	if (second != server->report_second) {
		server->report_second = second;
		server->reports = 0;
	}
	if (server->reports++ < STORE_REPORTS_PER_S)
		server->config.on_drop(server->config.arg, peer, reason);
}

static void conn_free(struct conn *conn)
{
	struct store_server *server = conn->server;
	event_del(&conn->readable);
	event_del(&conn->writable);
	event_del(&conn->stall_timer);
	store_session_done(&conn->session, &server->table);
	list_unlink(&conn->link);
	fd_close(&conn->fd);
	buf_done(&conn->in);
	buf_done(&conn->out);
	server->pending -= conn->charged;
	server->connection_count--;
	free(conn);
}

PRINTF_LIKE(2, 3) static void drop(struct conn *conn, const char *fmt, ...)
{
	char reason[REASON_MAX];
	va_list args;
	va_start(args, fmt);
	vsnprintf(reason, sizeof(reason), fmt, args);
	va_end(args);
	report(conn->server, &conn->peer, reason);
	conn_free(conn);
}

/* ---- what a connection owes, in time and in memory ---- */

static bool owes(const struct conn *conn)
{
	return !conn->session.validated || buf_len(&conn->in) > 0 || buf_len(&conn->out) > 0;
}

/* The timer may fire early, never late: on_stall_timer() looks at due_ns. */
static void arm_stall_timer(struct conn *conn, uint64_t now_ns)
{
	if (event_pending(&conn->stall_timer, EV_TIMEOUT, NULL))
		return;
	const struct timeval left = clock_left(conn->due_ns, now_ns);
	event_add(&conn->stall_timer, &left);
}

/* The handshake or a request is done, or all replies are read: its clock starts again. */
static void restart_clock(struct conn *conn)
{
	conn->due_ns = 0;
}

/* After `moved` bytes of half a request or of unread replies: frees empty buffers, and gives the
 * connection the time that these bytes take at STORE_RATE_MIN, but never more than stall_ns. */
static void settle(struct conn *conn, size_t moved)
{
	struct store_server *server = conn->server;
	if (buf_len(&conn->in) == 0)
		buf_done(&conn->in);
	if (buf_len(&conn->out) == 0)
		buf_done(&conn->out);
	size_t charge = conn->in.cap + conn->out.cap;
	server->pending += charge - conn->charged;
	conn->charged = charge;

	if (!owes(conn)) {
		conn->due_ns = 0;
		return;
	}
	uint64_t now_ns = clock_now_ns();
	uint64_t latest_ns = ns_add(now_ns, server->config.stall_ns);
	uint64_t earned_ns = moved * NS_PER_S / STORE_RATE_MIN;
	conn->due_ns = conn->due_ns ? MIN(ns_add(conn->due_ns, earned_ns), latest_ns) : latest_ns;
	arm_stall_timer(conn, now_ns);
}

static void drop_stalled(struct conn *conn)
{
	char limit[CLOCK_HUMAN_MAX];
	clock_human(conn->server->config.stall_ns, limit);
	if (buf_len(&conn->out) > 0)
		drop(conn, "it has not read its replies for %s (%zu bytes wait)", limit,
		     buf_len(&conn->out));
	else if (!conn->session.validated)
		drop(conn, "no handshake within %s", limit);
	else
		drop(conn, "half a request (%zu of at least %zu bytes) after %s",
		     buf_len(&conn->in), conn->session.parser.need, limit);
}

static void on_stall_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct conn *conn = arg;
	uint64_t now_ns = clock_now_ns();
	if (conn->due_ns > now_ns)
		arm_stall_timer(conn, now_ns);
	else if (conn->due_ns)
		drop_stalled(conn);
}

/* Whom the server can best do without: the connection that must be done first. One that makes
 * progress has almost all of stall_ns left, however much it holds. */
static struct conn *find_slowest(struct store_server *server)
{
	struct conn *slowest = NULL;
	list_foreach(link, &server->connections)
	{
		struct conn *conn = list_entry(link, struct conn, link);
		if (conn->charged > 0 && (!slowest || conn->due_ns < slowest->due_ns))
			slowest = conn;
	}
	return slowest;
}

static void enforce_pending_max(struct store_server *server)
{
	while (server->pending > server->config.pending_max) {
		struct conn *slowest = find_slowest(server);
		drop(slowest,
		     "it is the slowest of those whose half requests and unread replies take %zu "
		     "bytes (its own: %zu); the limit is %zu",
		     server->pending, slowest->charged, server->config.pending_max);
	}
}

/* ---- serving ---- */

/* Sends as much as the socket takes; the number of bytes, or -errno when the connection is lost. */
static ssize_t send_some(const struct conn *conn, const void *data, size_t len)
{
	ssize_t n = send(conn->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n >= 0)
		return n;
	return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

/* From now on the peer must read replies before it may send more requests. */
static void stop_reading(struct conn *conn)
{
	event_del(&conn->readable);
	event_add(&conn->writable, NULL);
}

/* Sends server->replies, keeping what the socket does not take. */
static int send_replies(struct conn *conn)
{
	struct buf *replies = &conn->server->replies;
	if (buf_len(replies) == 0)
		return 0;
	ssize_t n = send_some(conn, buf_data(replies), buf_len(replies));
	if (n < 0)
		return (int)n;
	if ((size_t)n < buf_len(replies)) {
		buf_append(&conn->out, buf_data(replies) + n, buf_len(replies) - (size_t)n);
		stop_reading(conn);
	}
	return 0;
}

/* Executes the whole requests in `data`; returns the bytes consumed, or -errno with the connection
 * gone. */
static ssize_t serve(struct conn *conn, const void *data, size_t len)
{
	struct store_server *server = conn->server;
	struct err err = ERR_INIT;
	buf_clear(&server->replies);
	ssize_t consumed =
		store_session_feed(&conn->session, &server->table, &server->config.session, data,
				   len, &server->replies, &err);
	bool more_waits = buf_len(&server->replies) >= server->config.session.replies_high;
	int r = send_replies(conn);
	if (server->replies.cap > REPLIES_KEPT)
		buf_done(&server->replies);
	if (consumed < 0) {
		drop(conn, "%s", err.msg);
		return consumed;
	}
	if (r < 0) {
		conn_free(conn); /* the peer is gone: nothing to report */
		return r;
	}
	if (more_waits && (size_t)consumed < len && buf_len(&conn->out) == 0)
		stop_reading(conn); /* continue in the next turn of the loop: others come first */
	return consumed;
}

static void serve_kept(struct conn *conn, size_t moved)
{
	ssize_t consumed = serve(conn, buf_data(&conn->in), buf_len(&conn->in));
	if (consumed < 0)
		return;
	if (consumed > 0)
		restart_clock(conn);
	buf_consume(&conn->in, (size_t)consumed);
	settle(conn, moved);
}

/* Answers the clients whose waits have ended. */
static void tell_released(struct store_server *server)
{
	for (struct store_waiter *waiter; (waiter = store_table_next_released(&server->table));) {
		struct conn *conn = container_of(waiter, struct conn, session.waiter);
		if (buf_len(&conn->out) == 0) {
			ssize_t n = send_some(conn, &(unsigned char){ STORE_RELEASED_BYTE }, 1);
			if (n < 0)
				conn_free(conn);
			if (n != 0)
				continue;
			stop_reading(conn);
		}
		buf_append_char(&conn->out, STORE_RELEASED_BYTE);
		settle(conn, 0);
	}
}

/* The allocator keeps freed memory; a supervisor that lives for weeks should not. */
static void give_back(struct store_server *server)
{
	size_t held = server->table.bytes + server->pending;
	if (held >= server->high) {
		server->high = held;
	} else if (server->high - held > TRIM_STEP) {
		malloc_trim(0);
		server->high = held;
	}
}

static void after_turn(struct store_server *server)
{
	tell_released(server);
	enforce_pending_max(server);
	give_back(server);
}

/* The usual case: nothing is buffered, and the input is whole requests. */
static ssize_t read_fresh(struct conn *conn)
{
	struct store_server *server = conn->server;
	ssize_t n = recv(conn->fd, server->scratch, SCRATCH_SIZE, MSG_DONTWAIT);
	if (n <= 0)
		return n;
	bool was_settled = !owes(conn);
	ssize_t consumed = serve(conn, server->scratch, (size_t)n);
	if (consumed < 0)
		return 1; /* gone already */
	if (consumed > 0)
		restart_clock(conn);
	if (consumed < n)
		buf_append(&conn->in, server->scratch + consumed, (size_t)(n - consumed));
	if (!was_settled || owes(conn))
		settle(conn, (size_t)n);
	return n;
}

/* Reads the rest of a request, in place once it is large. The buffer grows with the data that came,
 * never with what the client announces. */
static ssize_t read_rest(struct conn *conn)
{
	size_t have = buf_len(&conn->in), need = conn->session.parser.need;
	size_t want = need > have ? MIN(need - have, SCRATCH_SIZE) : SCRATCH_SIZE;
	bool in_place = have >= want;
	unsigned char *to = in_place ? buf_reserve(&conn->in, want) : conn->server->scratch;
	ssize_t n = recv(conn->fd, to, want, MSG_DONTWAIT);
	if (n <= 0)
		return n;
	if (in_place)
		buf_commit(&conn->in, (size_t)n);
	else
		buf_append(&conn->in, to, (size_t)n);
	if (buf_len(&conn->in) < need)
		settle(conn, (size_t)n);
	else
		serve_kept(conn, (size_t)n);
	return n;
}

static void on_readable(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct conn *conn = arg;
	struct store_server *server = conn->server;
	ssize_t n = buf_len(&conn->in) == 0 ? read_fresh(conn) : read_rest(conn);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		conn_free(conn);
	after_turn(server);
}

static void on_writable(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct conn *conn = arg;
	struct store_server *server = conn->server;
	if (buf_len(&conn->out) > 0) {
		ssize_t n = send_some(conn, buf_data(&conn->out), buf_len(&conn->out));
		if (n < 0) {
			conn_free(conn);
			return;
		}
		buf_consume(&conn->out, (size_t)n);
		if (buf_len(&conn->out) == 0)
			restart_clock(conn);
		settle(conn, (size_t)n);
	}
	if (buf_len(&conn->out) > 0)
		return;
	event_del(&conn->writable);
	event_add(&conn->readable, NULL);
	if (buf_len(&conn->in) > 0)
		serve_kept(conn, 0);
	after_turn(server);
}

/* ---- arriving ---- */

static void add_conn(struct store_server *server, int fd, const struct addr *peer)
{
	struct conn *conn = NEW(struct conn);
	conn->server = server;
	conn->fd = fd;
	conn->peer = *peer;
	conn->in = conn->out = BUF_INIT;
	store_session_init(&conn->session, server->executed);
	list_init(&conn->link);
	list_append(&server->connections, &conn->link);
	server->connection_count++;
	server->accepted++;
	event_assign(&conn->readable, server->base, fd, EV_READ | EV_PERSIST, on_readable, conn);
	event_assign(&conn->writable, server->base, fd, EV_WRITE | EV_PERSIST, on_writable, conn);
	evtimer_assign(&conn->stall_timer, server->base, on_stall_timer, conn);
	event_add(&conn->readable, NULL);
	settle(conn, 0);
}

/* One that has left already says nothing that anybody waits for. */
static bool is_stranger(struct store_server *server, int fd, const struct addr *peer)
{
	char text[PEER_USER_TEXT_MAX];
	if (server->config.any_user || !peer_is_other_user(fd, text))
		return false;
	if (*text)
		report(server, peer, text);
	else
		server->dropped++;
	return true;
}

void store_server_adopt(struct store_server *server, int fd, const struct addr *peer)
{
	AUTO(fd_close) int owned_fd = fd;
	if (is_stranger(server, fd, peer))
		return;
	if (server->config.on_connect && !server->config.on_connect(server->config.arg, peer))
		server->dropped++;
	else if (server->connection_count >= server->config.connections_max)
		report(server, peer, "too many connections");
	else
		add_conn(server, fd_take(&owned_fd), peer);
}

static void on_accept(void *arg, int fd, const struct sockaddr_storage *storage)
{
	struct addr peer = addr_of_peer(storage);
	store_server_adopt(arg, fd, &peer);
}

static void on_refused(void *arg, int fd UNUSED, const struct sockaddr_storage *storage)
{
	struct addr peer = addr_of_peer(storage);
	report(arg, &peer, "no descriptor is left for it; raise the hard limit of open files");
}

static const struct acceptor_handler acceptor_handler = { .on_accept = on_accept,
							  .on_refused = on_refused };

struct store_server *store_server_new(struct event_base *base, int listen_fd,
				      const struct store_server_config *config)
{
	uint64_t hash_key[2] = { random_u64(), random_u64() };
	struct store_server *server = NEW(struct store_server);
	server->config = *config;
	server->base = base;
	server->scratch = mem_alloc(SCRATCH_SIZE);
	store_table_init(&server->table, config->table_max, hash_key);
	list_init(&server->connections);
	acceptor_init(&server->acceptor, base, listen_fd, &acceptor_handler, server);
	return server;
}

void store_server_free(struct store_server *server)
{
	if (!server)
		return;
	acceptor_done(&server->acceptor);
	list_foreach(link, &server->connections) conn_free(list_entry(link, struct conn, link));
	store_table_done(&server->table);
	buf_done(&server->replies);
	free(server->scratch);
	if (server->high > TRIM_STEP)
		malloc_trim(0);
	free(server);
}

void store_server_stats(const struct store_server *server, struct store_server_stats *ret_stats)
{
	*ret_stats = (struct store_server_stats){
		.connections = server->connection_count,
		.keys = server->table.key_count,
		.table_bytes = server->table.bytes,
		.pending_bytes = server->pending,
		.accepted = server->accepted,
		.dropped = server->dropped,
	};
	memcpy(ret_stats->executed, server->executed, sizeof(server->executed));
}
