/* Who is let in: tokens, runs, and peers that speak something else. */
#include "unit.h"

#include "link_rig.h"
#include "loop.h"

#include <event2/event.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "net/link_private.h"
#include "proto/round_msg.h"

static void expect_refusal(struct world *w, const char *client_hears, const char *server_notes)
{
	connect_client(w);
	WAIT_FOR(w, w->client_down && *w->turned_away);
	ck_assert_int_eq(w->ups + w->agents, 0);
	ck_assert_int_eq(w->client_end.kind, LINK_REFUSED);
	ck_assert_msg(strstr(w->client_end.text, client_hears), "%s", w->client_end.text);
	ck_assert_msg(strstr(w->client_end.text, w->name), "%s", w->client_end.text);
	ck_assert_msg(strstr(w->turned_away, server_notes), "%s", w->turned_away);
	probe(w);
	ck_assert_int_eq(w->standing.answer, FINDER_SILENT);
	ck_assert_int_eq(w->standing.why, LINK_REFUSED);
	world_done(w);
}

TEST(a_missing_token_is_refused_on_both_sides)
{
	struct token token = make_token("secret");
	struct world w;
	world_init(&w, "127.0.0.1");
	w.server_self.token = &token;
	expect_refusal(&w,
		       "it requires a token: give --rdzv-conf token_file=FILE or set MUSTER_TOKEN",
		       "it has no token");
}

TEST(a_wrong_token_is_refused_on_both_sides)
{
	struct token token = make_token("secret"), other = make_token("Secret");
	struct world w;
	world_init(&w, "127.0.0.1");
	w.server_self.token = &token;
	w.client_self.token = &other;
	expect_refusal(&w, "token mismatch", "token mismatch");
}

TEST(a_token_that_the_other_side_does_not_have_is_refused)
{
	struct token token = make_token("secret");
	struct world w;
	world_init(&w, "127.0.0.1");
	w.client_self.token = &token;
	expect_refusal(&w, "it has no token", "it has a token, and this side has none");
}

TEST(an_agent_of_another_run_is_refused_by_name)
{
	struct world w;
	world_init(&w, "127.0.0.1");
	w.client_self.run_id = "other\033[31m";
	expect_refusal(&w, "the run 'job', this one is 'other?[31m'",
		       "the run 'other?[31m', not to 'job'");
}

TEST(a_peer_without_the_token_does_not_learn_the_run)
{
	struct token token = make_token("secret"), other = make_token("Secret");
	struct world w;
	world_init(&w, "127.0.0.1");
	w.server_self.token = &token;
	w.client_self.run_id = "other";
	w.client_self.token = &other;
	expect_refusal(&w, "token mismatch", "token mismatch");
	world_init(&w, "127.0.0.1");
	w.server_self.token = &token;
	w.client_self.run_id = "other";
	expect_refusal(&w, "it requires a token", "it has no token");
	world_init(&w, "127.0.0.1");
	w.server_self.token = w.client_self.token = &token;
	w.client_self.run_id = "other";
	expect_refusal(&w, "the run 'job', this one is 'other'", "the run 'other', not to 'job'");
}

TEST(an_agent_that_does_not_join_is_closed)
{
	struct world w;
	world_init(&w, "127.0.0.1");
	connect_up(&w);
	link_send(w.client, &ping_msg); /* which is not a JOIN */
	WAIT_FOR(&w, w.server_msgs == 1);
	ck_assert(evtimer_pending(&w.server->timer, NULL));
	event_active(&w.server->timer, EV_TIMEOUT, 0); /* as if LINK_JOIN_NS had passed */
	WAIT_FOR(&w, w.server_down && w.client_down);
	ck_assert_int_eq(w.server_end.kind, LINK_BROKEN);
	ck_assert_str_eq(w.server_end.text, "it did not join in time");
	world_done(&w);
	world_init(&w, "127.0.0.1");
	exchange(&w);
	ck_assert(!evtimer_pending(&w.server->timer, NULL));
	world_done(&w);
}

struct raw {
	int fd;
	char answer[1024];
	size_t len;
	bool ended;
	struct event *readable;
	struct event_base *base;
};

static void raw_readable(evutil_socket_t fd, short what UNUSED, void *arg)
{
	struct raw *raw = arg;
	ssize_t n =
		recv(fd, raw->answer + raw->len, sizeof(raw->answer) - 1 - raw->len, MSG_DONTWAIT);
	raw->len += n > 0 ? (size_t)n : 0;
	if (n <= 0)
		event_del(raw->readable);
	raw->ended = n <= 0;
	event_base_loopbreak(raw->base);
}

static void raw_open(struct raw *raw, struct world *w)
{
	*raw = (struct raw){ .base = w->base,
			     .fd = socket(w->addr.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0) };
	ck_assert_int_eq(connect(raw->fd, &w->addr.any, addr_len(&w->addr)), 0);
	raw->readable = event_new(w->base, raw->fd, EV_READ | EV_PERSIST, raw_readable, raw);
	event_add(raw->readable, NULL);
}

static void raw_close(struct raw *raw)
{
	event_free(raw->readable);
	close(raw->fd);
}

static void raw_say(struct raw *raw, const void *bytes, size_t len)
{
	ck_assert_int_eq(send(raw->fd, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

/* A stranger says this to a listener, which answers and hangs up. */
static void raw_exchange(struct world *w, struct raw *raw, const void *bytes, size_t len)
{
	world_init(w, "127.0.0.1");
	raw_open(raw, w);
	raw_say(raw, bytes, len);
	WAIT_FOR(w, raw->ended);
	raw_close(raw);
}

TEST(an_http_client_gets_an_answer_it_understands)
{
	struct world w;
	struct raw raw;
	raw_exchange(&w, &raw, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27);
	ck_assert_msg(str_starts(raw.answer, "HTTP/1.0 400 "), "%s", raw.answer);
	ck_assert_msg(strstr(w.turned_away, "HTTP client"), "%s", w.turned_away);
	world_done(&w);
}

TEST(a_tcpstore_client_is_disconnected_and_named)
{
	struct world w;
	struct raw raw;
	raw_exchange(&w, &raw, "\0\xce\xf7\x85\x3c\x0d\1\0\0\0", 10);
	ck_assert_uint_eq(raw.len, 0);
	ck_assert_msg(strstr(w.turned_away, "TCPStore"), "%s", w.turned_away);
	world_done(&w);
}

TEST(another_version_is_told_so_in_a_frame_that_all_versions_read)
{
	struct world w;
	struct raw raw;
	raw_exchange(&w, &raw, "MUSTER\x09\x02 whatever version 9 says", 30);
	struct frame frame;
	size_t size;
	struct frame_refused refused;
	ck_assert_int_eq(frame_next(raw.answer + FRAME_OPENING_SIZE, raw.len - FRAME_OPENING_SIZE,
				    &frame, &size, NULL),
			 1);
	ck_assert_int_eq(frame_get_refused(&frame, &refused, NULL), 0);
	ck_assert_int_eq(refused.reason, REFUSAL_VERSION);
	ck_assert_msg(strstr(w.turned_away, "version 9.2"), "%s", w.turned_away);
	world_done(&w);
}

TEST(a_silent_connection_delays_no_other)
{
	struct world w;
	world_init(&w, "127.0.0.1");
	struct raw raw[20];
	for (size_t i = 0; i < ARRAY_LEN(raw); i++) {
		raw_open(&raw[i], &w);
		raw_say(&raw[i], "MUSTER\2\0\xff", i % 10);
	}
	connect_up(&w);
	ck_assert_uint_le(link_listener_strangers(w.listener), ARRAY_LEN(raw));
	for (size_t i = 0; i < ARRAY_LEN(raw); i++)
		raw_close(&raw[i]);
	world_done(&w);
}
