/* The store's server and clients that hold half a request, over real sockets in one loop. */
#include "net/store_server.h"

#include <errno.h>
#include <event2/event.h>
#include <unistd.h>

#include "base/fd.h"
#include "loop.h"
#include "unit.h"

#define KIB ((size_t)1 << 10)

struct world {
	struct event_base *base;
	struct store_server *server;
	struct addr addr;
	int drops;
	struct addr dropped; /* the last one */
};

static void on_drop(void *arg, const struct addr *peer, const char *reason UNUSED)
{
	struct world *w = arg;
	w->drops++;
	w->dropped = *peer;
}

static void world_init(struct world *w, size_t pending_max)
{
	*w = (struct world){ .base = event_base_new() };
	addr_from_ip("127.0.0.1", 0, &w->addr);
	int fd = addr_listen(&w->addr, NULL);
	ck_assert_int_eq(addr_of_socket(fd, &w->addr, NULL), 0);
	struct store_server_config config = STORE_SERVER_CONFIG_DEFAULT;
	config.pending_max = pending_max;
	config.on_drop = on_drop;
	config.arg = w;
	w->server = store_server_new(w->base, fd, &config);
}

static void world_done(struct world *w)
{
	store_server_free(w->server);
	event_base_free(w->base);
}

static size_t pending(const struct world *w)
{
	struct store_server_stats stats;
	store_server_stats(w->server, &stats);
	return stats.pending_bytes;
}

/* Sends while the server takes turns to read. */
static void say(struct world *w, int fd, const void *data, size_t len)
{
	for (size_t sent = 0; sent < len;) {
		ssize_t n = send(fd, (const char *)data + sent, len - sent,
				 MSG_DONTWAIT | MSG_NOSIGNAL);
		ck_assert(n > 0 || errno == EAGAIN);
		sent += n > 0 ? (size_t)n : 0;
		event_base_loop(w->base, EVLOOP_NONBLOCK);
	}
}

static int call(struct world *w)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(fd, &w->addr.any, addr_len(&w->addr)), 0);
	say(w, fd, "\0\xce\xf7\x85\x3c", 5);
	return fd;
}

/* Begins to set a key to `size` bytes, and sends the first `now` of them. */
static void begin_set(struct world *w, int fd, size_t size, size_t now)
{
	AUTO(buf_done) struct buf out = BUF_INIT;
	buf_append_char(&out, C10D_SET);
	c10d_put_string(&out, bytes_str("k"));
	c10d_put_i64(&out, (int64_t)size);
	memset(buf_reserve(&out, now), 'x', now);
	buf_commit(&out, now);
	say(w, fd, buf_data(&out), buf_len(&out));
}

static void expect_served(struct world *w, int fd)
{
	char answer[4];
	ssize_t n;
	say(w, fd, "\x0d\1\2\3\4", 5);
	while ((n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT)) < 0 && errno == EAGAIN)
		event_base_loop(w->base, EVLOOP_NONBLOCK);
	ck_assert_int_eq(n, 4);
}

TEST(half_a_request_is_charged_what_it_holds)
{
	struct world w;
	world_init(&w, STORE_PENDING_MAX);
	AUTO(fd_close) int fd = call(&w);
	begin_set(&w, fd, 8192 * KIB, 20);
	WAIT_FOR(&w, pending(&w) > 0);
	static const char more[40];
	say(&w, fd, more, sizeof(more)); /* which is read as the rest of a request */
	WAIT_FOR(&w, pending(&w) != 64);
	ck_assert_uint_le(pending(&w), 256);
	world_done(&w);
}

TEST(who_makes_no_progress_makes_room_for_who_does)
{
	struct world w;
	world_init(&w, 2048 * KIB);
	int idle[31];
	for (size_t i = 0; i < ARRAY_LEN(idle); i++) {
		idle[i] = call(&w);
		begin_set(&w, idle[i], 8192 * KIB, 60 * KIB);
	}
	WAIT_FOR(&w, pending(&w) >= 31 * 60 * KIB);
	ck_assert_int_eq(w.drops, 0);
	struct addr oldest;
	addr_of_socket(idle[0], &oldest, NULL);
	AUTO(fd_close) int honest = call(&w);
	begin_set(&w, honest, 500 * KIB, 100 * KIB);
	WAIT_FOR(&w, w.drops > 0);
	ck_assert_int_eq(w.drops, 1);
	ck_assert_int_eq(addr_port(&w.dropped), addr_port(&oldest));
	static const char rest[400 << 10];
	say(&w, honest, rest, sizeof(rest));
	expect_served(&w, honest);
	for (size_t i = 0; i < ARRAY_LEN(idle); i++)
		close(idle[i]);
	world_done(&w);
}
