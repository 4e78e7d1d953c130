/* Links over real sockets on loopback, both ends in one loop; and the greeting byte by byte. */
#include "net/link.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "net/link_private.h"
#include "proto/round_msg.h"
#include "loop.h"
#include "unit.h"

/* ---- a world with a listener and one connecting side ---- */

struct world {
	struct event_base *base;
	struct link_listener *listener;
	struct addr addr;
	char name[ADDR_TEXT_MAX];
	struct link_self server_self, client_self;
	bool standby;
	struct ballot ballot;
	/* What happened. */
	struct link *client, *server;
	int ups, agents;
	int client_msgs, server_msgs;
	struct msg last;
	struct node_info last_node;
	bool client_down, server_down;
	struct link_end client_end, server_end;
	char turned_away[LINK_TEXT_MAX];
	int standings;
	struct link_standing standing;
	bool hang_up_on_msg;
};

static void on_up(void *arg, struct link *link)
{
	struct world *w = arg;
	ck_assert_ptr_eq(link, w->client);
	w->ups++;
	event_base_loopbreak(w->base);
}

static void keep(struct world *w, const struct msg *msg)
{
	w->last = *msg;
	if (msg->type == MSG_JOIN) {
		w->last_node = *msg->join.node;
		w->last.join.node = &w->last_node;
	}
	event_base_loopbreak(w->base);
}

static void client_msg(void *arg, struct link *link UNUSED, const struct msg *msg)
{
	struct world *w = arg;
	w->client_msgs++;
	keep(w, msg);
}

static void server_msg(void *arg, struct link *link, const struct msg *msg)
{
	struct world *w = arg;
	w->server_msgs++;
	keep(w, msg);
	if (w->hang_up_on_msg) {
		link_hang_up(link);
		w->server = NULL;
	}
}

static void client_down(void *arg, struct link *link UNUSED, const struct link_end *end)
{
	struct world *w = arg;
	ck_assert(!w->client_down);
	w->client_down = true;
	w->client_end = *end;
	w->client = NULL;
	event_base_loopbreak(w->base);
}

static void server_down(void *arg, struct link *link UNUSED, const struct link_end *end)
{
	struct world *w = arg;
	ck_assert(!w->server_down);
	w->server_down = true;
	w->server_end = *end;
	w->server = NULL;
	event_base_loopbreak(w->base);
}

static const struct link_handler client_handler = { on_up, client_msg, client_down };
static const struct link_handler server_handler = { NULL, server_msg, server_down };

static bool on_agent(void *arg, struct link *link)
{
	struct world *w = arg;
	if (w->standby)
		return false;
	w->agents++;
	w->server = link;
	link_set_handler(link, &server_handler, w);
	event_base_loopbreak(w->base);
	return true;
}

static void on_probe(void *arg, struct frame_standing *ret_standing)
{
	struct world *w = arg;
	ret_standing->coordinates = !w->standby;
	ret_standing->ballot = w->ballot;
}

static void on_turned_away(void *arg, const struct addr *peer UNUSED, const char *why)
{
	struct world *w = arg;
	strcpy(w->turned_away, why);
	event_base_loopbreak(w->base);
}

static const struct link_listener_handler listener_handler = { on_agent, on_probe, on_turned_away };

static void on_standing(void *arg, const struct link_standing *standing)
{
	struct world *w = arg;
	w->standings++;
	w->standing = *standing;
	event_base_loopbreak(w->base);
}

static int listen_somewhere(const char *ip, struct addr *ret_addr)
{
	addr_from_ip(ip, 0, ret_addr);
	struct err err = ERR_INIT;
	int fd = addr_listen(ret_addr, &err);
	ck_assert_msg(fd >= 0, "%s", err.msg);
	ck_assert_int_eq(addr_of_socket(fd, ret_addr, NULL), 0);
	return fd;
}

static void world_init(struct world *w, const char *ip)
{
	memset(w, 0, sizeof(*w));
	w->base = event_base_new();
	w->server_self.run_id = w->client_self.run_id = "job";
	int fd = listen_somewhere(ip, &w->addr);
	addr_format(&w->addr, w->name);
	w->listener = link_listener_new(w->base, fd, &w->server_self, &listener_handler, w);
}

static void world_done(struct world *w)
{
	if (w->client)
		link_drop(w->client);
	if (w->server)
		link_drop(w->server);
	link_listener_free(w->listener);
	link_drop_lingering(w->base);
	event_base_free(w->base);
}

static void connect_client(struct world *w)
{
	const struct link_target target = { &w->addr, 1, w->name };
	w->client = link_connect(w->base, &w->client_self, &target, &client_handler, w);
}

static void connect_up(struct world *w)
{
	connect_client(w);
	WAIT_FOR(w, w->ups == 1 && w->agents == 1);
}

static void probe(struct world *w)
{
	int before = w->standings;
	const struct link_target target = { &w->addr, 1, w->name };
	link_probe(w->base, &w->client_self, &target, on_standing, w);
	WAIT_FOR(w, w->standings > before);
}

static struct token make_token(const char *text)
{
	struct token token;
	ck_assert_int_eq(token_from_text(text, strlen(text), &token, NULL), 0);
	return token;
}

static const struct msg ping = { .type = MSG_PING, .ping = { 42 } };
static const struct msg pong = { .type = MSG_PONG, .pong = { .cookie = 43 } };

/* ---- links ---- */

static void exchange(struct world *w)
{
	connect_up(w);
	struct node_info node = {
		.min_nodes = 1, .max_nodes = 2, .nproc = 3, .node_rank = -1, .name = "here"
	};
	struct msg join = { .type = MSG_JOIN, .join = { .node = &node, .attempt = 7 } };
	join.join.memory.coordinator_index = join.join.memory.group_rank = -1;
	link_send(w->client, &join);
	link_send(w->client, &ping);
	link_send(w->server, &pong);
	WAIT_FOR(w, w->server_msgs == 2 && w->client_msgs == 1);
	ck_assert_str_eq(w->last_node.name, "here");
	ck_assert(!w->client_down && !w->server_down);
}

TEST(messages_go_both_ways)
{
	struct world w;
	world_init(&w, "127.0.0.1");
	exchange(&w);
	ck_assert_uint_gt(link_up_ns(w.server), 0);
	ck_assert_str_eq(link_peer_name(w.client), w.name);
	world_done(&w);
}

TEST(messages_go_both_ways_with_a_token_over_ipv6)
{
	struct token token = make_token("secret");
	struct world w;
	world_init(&w, "::1");
	w.server_self.token = w.client_self.token = &token;
	exchange(&w);
	world_done(&w);
}

TEST(a_listener_on_all_addresses_takes_ipv4_too)
{
	struct world w;
	world_init(&w, "::");
	addr_from_ip("127.0.0.1", addr_port(&w.addr), &w.addr);
	connect_up(&w);
	ck_assert_msg(str_starts(link_peer_name(w.server), "127.0.0.1:"), "%s",
		      link_peer_name(w.server));
	world_done(&w);
}

TEST(what_was_sent_before_a_hang_up_arrives)
{
	struct world w;
	world_init(&w, "127.0.0.1");
	connect_up(&w);
	link_send(w.server, &pong); /* something is under way to the one that hangs up */
	for (int i = 0; i < 1000; i++)
		link_send(w.client, &ping);
	link_hang_up(w.client);
	w.client = NULL;
	WAIT_FOR(&w, w.server_down);
	ck_assert_int_eq(w.server_msgs, 1000);
	ck_assert_int_eq(w.server_end.kind, LINK_CLOSED);
	ck_assert(w.server_end.dead);
	ck_assert(!w.client_down); /* who hangs up is not told */
	world_done(&w);
}

TEST(a_link_can_be_hung_up_on_by_its_own_message)
{
	struct world w;
	world_init(&w, "127.0.0.1");
	w.hang_up_on_msg = true;
	connect_up(&w);
	link_send(w.client, &ping);
	link_send(w.client, &ping);
	WAIT_FOR(&w, w.client_down);
	ck_assert_int_eq(w.server_msgs, 1);
	ck_assert(w.client_end.dead);
	world_done(&w);
}

TEST(a_message_in_the_wrong_direction_ends_the_link_but_is_not_a_death)
{
	struct world w;
	world_init(&w, "127.0.0.1");
	connect_up(&w);
	link_send(w.client, &pong);
	WAIT_FOR(&w, w.server_down);
	ck_assert_int_eq(w.server_end.kind, LINK_BROKEN);
	ck_assert(!w.server_end.dead);
	WAIT_FOR(&w, w.client_down);
	world_done(&w);
}

TEST(a_message_out_of_range_is_told_to_its_sender)
{
	struct world w;
	world_init(&w, "127.0.0.1");
	connect_up(&w);
	link_send(w.client,
		  &(struct msg){ .type = MSG_LEAVE, .leave = { .why = LEAVE_WHY_COUNT } });
	WAIT_FOR(&w, w.client_down);
	ck_assert_int_eq(w.client_end.kind, LINK_BROKEN);
	ck_assert(!w.client_end.dead);
	world_done(&w);
}

TEST(a_refused_connection_is_told_apart_from_silence)
{
	struct world w;
	world_init(&w, "127.0.0.1");
	link_listener_free(w.listener);
	w.listener = NULL;
	connect_client(&w);
	WAIT_FOR(&w, w.client_down);
	ck_assert_int_eq(w.client_end.kind, LINK_NOBODY);
	ck_assert(!w.client_end.dead);
	ck_assert_msg(strstr(w.client_end.text, "refused"), "%s", w.client_end.text);
	probe(&w);
	ck_assert_int_eq(w.standing.answer, FINDER_REFUSED);
	world_done(&w);
}

TEST(the_next_address_is_tried_when_one_refuses)
{
	struct world w;
	world_init(&w, "127.0.0.1");
	struct addr addrs[2] = { w.addr, w.addr };
	int fd = listen_somewhere("127.0.0.1", &addrs[0]);
	close(fd); /* no process listens there now */
	const struct link_target target = { addrs, 2, "both" };
	w.client = link_connect(w.base, &w.client_self, &target, &client_handler, &w);
	WAIT_FOR(&w, w.ups == 1);
	world_done(&w);
}

TEST(an_agent_learns_that_there_is_no_coordinator)
{
	struct world w;
	world_init(&w, "127.0.0.1");
	w.standby = true;
	connect_client(&w);
	WAIT_FOR(&w, w.client_down);
	ck_assert_int_eq(w.client_end.kind, LINK_STANDBY);
	ck_assert_int_eq(w.ups, 0);
	ck_assert_str_eq(w.turned_away, "");
	world_done(&w);
}

TEST(a_peer_that_stays_silent_does_not_hold_a_probe_up)
{
	struct world w;
	world_init(&w, "127.0.0.1");
	struct addr silent;
	int fd =
		listen_somewhere("127.0.0.1", &silent); /* the kernel accepts, no process answers */
	w.addr = silent;
	probe(&w);
	ck_assert_int_eq(w.standing.answer, FINDER_SILENT);
	close(fd);
	world_done(&w);
}

TEST(a_probe_learns_whether_there_is_a_coordinator)
{
	struct token token = make_token("secret");
	struct world w;
	world_init(&w, "127.0.0.1");
	w.server_self.token = w.client_self.token = &token;
	w.ballot = (struct ballot){ 3, 4 };
	probe(&w);
	ck_assert_int_eq(w.standing.answer, FINDER_COORDINATES);
	ck_assert(ballot_eq(w.standing.ballot, w.ballot));
	w.standby = true;
	w.ballot = BALLOT_NONE;
	probe(&w);
	ck_assert_int_eq(w.standing.answer, FINDER_STANDBY);
	ck_assert_int_eq(w.agents, 0);
	ck_assert_uint_eq(link_listener_strangers(w.listener), 0);
	world_done(&w);
}

TEST(a_cancelled_probe_calls_nothing_back)
{
	struct world w;
	world_init(&w, "127.0.0.1");
	const struct link_target target = { &w.addr, 1, w.name };
	link_probe_cancel(link_probe(w.base, &w.client_self, &target, on_standing, &w));
	connect_up(&w);
	ck_assert_int_eq(w.standings, 0);
	world_done(&w);
}

/* The other end takes no more: the system gives up on it as on a host behind a cut cable. */
static void fill_up(struct link *link)
{
	static const char block[65536];
	ssize_t sent;
	do
		sent = send(link->fd, block, sizeof(block), MSG_DONTWAIT | MSG_NOSIGNAL);
	while (sent > 0);
	ck_assert(sent < 0 && errno == EAGAIN);
}

/* The system tells the cause once, to the reader or to the writer, and both must take it right. */
static void expect_silence(bool writer_first)
{
	struct world w;
	world_init(&w, "127.0.0.1");
	connect_up(&w);
	fill_up(w.client);
	/* The system gives up after minutes; not in a test. */
	setsockopt(w.client->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &(unsigned){ 300 },
		   sizeof(unsigned));
	struct pollfd given_up = { .fd = w.client->fd };
	ck_assert_int_eq(poll(&given_up, 1, DEADLINE_S * 1000), 1);
	if (writer_first)
		link_send(w.client, &ping);
	WAIT_FOR(&w, w.client_down);
	ck_assert_int_eq(w.client_end.kind, LINK_UNREACHABLE);
	ck_assert(!w.client_end.dead);
	world_done(&w);
}

TEST(a_cut_cable_ends_as_silence_not_as_death)
{
	expect_silence(false);
	expect_silence(true);
}

/* ---- who is let in ---- */

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
	link_send(w.client, &ping); /* which is not a JOIN */
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

/* ---- an attacker on the path ---- */

/* What the attacker gets hold of: until the loop's next turn it is in the sender's `out`. */
struct attack {
	struct world w;
	struct token token;
	struct link *sender;
	size_t size; /* of each frame under way, all of them alike */
};

#define UNDER_WAY 10

static void attack_init(struct attack *a, bool from_server)
{
	a->token = make_token("secret");
	world_init(&a->w, "127.0.0.1");
	a->w.server_self.token = a->w.client_self.token = &a->token;
	connect_up(&a->w);
	a->sender = from_server ? a->w.server : a->w.client;
	ck_assert_uint_eq(buf_len(&a->sender->out), 0);
	for (int i = 0; i < UNDER_WAY; i++)
		link_send(a->sender, from_server ? &pong : &ping);
	a->size = buf_len(&a->sender->out) / UNDER_WAY;
}

/* The receiver takes the `good` frames before the attack, none after it, and says why. */
static void expect_found_out(struct attack *a, int good)
{
	struct world *w = &a->w;
	const struct link_end *end = a->sender == w->server ? &w->client_end : &w->server_end;
	if (a->sender == w->server)
		WAIT_FOR(w, w->client_down);
	else
		WAIT_FOR(w, w->server_down);
	ck_assert_int_eq(w->client_msgs + w->server_msgs, good);
	ck_assert_int_eq(end->kind, LINK_BROKEN);
	ck_assert(!end->dead);
	ck_assert_msg(strstr(end->text, "changed, repeated, left out or moved"), "%s", end->text);
	world_done(w);
}

TEST(no_byte_of_a_frame_can_be_changed_on_its_way)
{
	struct attack a;
	for (int from_server = 0; from_server < 2; from_server++)
		for (size_t i = 0, size = 1; i < size; i++) {
			attack_init(&a, from_server);
			size = a.size;
			buf_data(&a.sender->out)[a.size + i] ^= 1;
			expect_found_out(&a, 1);
		}
}

TEST(frames_cannot_be_left_out_repeated_moved_or_added)
{
	struct attack a;
	attack_init(&a, false);
	buf_consume(&a.sender->out, a.size);
	expect_found_out(&a, 0);

	attack_init(&a, false);
	unsigned char *path = buf_data(&a.sender->out);
	memcpy(path + a.size, path, a.size);
	expect_found_out(&a, 1);

	attack_init(&a, false);
	path = buf_data(&a.sender->out);
	memcpy(path, path + a.size, a.size);
	expect_found_out(&a, 0);

	attack_init(&a, false);
	AUTO(buf_done) struct buf plain = BUF_INIT;
	ck_assert_int_eq(round_msg_encode(&ping, &plain, NULL), 0);
	ck_assert_uint_eq(a.size, buf_len(&plain) + FRAME_TAG_SIZE);
	memcpy(buf_data(&a.sender->out), buf_data(&plain), buf_len(&plain));
	expect_found_out(&a, 0);
}

TEST(frames_of_another_connection_or_direction_do_not_open)
{
	struct attack a;
	attack_init(&a, false);
	AUTO(buf_done) struct buf recorded = BUF_INIT;
	buf_append(&recorded, buf_data(&a.sender->out), buf_len(&a.sender->out));
	/* Sent back to where they came from. */
	buf_append(&a.w.server->out, buf_data(&recorded), buf_len(&recorded));
	link_flush_soon(a.w.server);
	WAIT_FOR(&a.w, a.w.client_down);
	ck_assert_int_eq(a.w.client_end.kind, LINK_BROKEN);
	ck_assert_int_eq(a.w.client_msgs, 0);
	world_done(&a.w);

	attack_init(&a, false);
	memcpy(buf_data(&a.sender->out), buf_data(&recorded), buf_len(&recorded));
	expect_found_out(&a, 0);
}

TEST(a_stream_that_is_cut_in_a_frame_is_told_so)
{
	struct attack a;
	attack_init(&a, false);
	a.sender->out.end -= 5;
	link_hang_up(a.sender);
	a.w.client = NULL;
	WAIT_FOR(&a.w, a.w.server_down);
	ck_assert_int_eq(a.w.server_msgs, UNDER_WAY - 1);
	ck_assert_msg(strstr(a.w.server_end.text, "in the middle of a frame"), "%s",
		      a.w.server_end.text);
	world_done(&a.w);
}

static bool can_be_read(const struct token *token)
{
	struct world w;
	world_init(&w, "127.0.0.1");
	w.server_self.token = w.client_self.token = token;
	connect_up(&w);
	link_send(w.server, &(struct msg){ .type = MSG_REFUSED, .refused = { .text = "a name" } });
	bool found = memmem(buf_data(&w.server->out), buf_len(&w.server->out), "a name", 6);
	WAIT_FOR(&w, w.client_msgs == 1);
	ck_assert_str_eq(w.last.refused.text, "a name");
	world_done(&w);
	return found;
}

TEST(with_a_token_messages_cannot_be_read_on_their_way)
{
	struct token token = make_token("secret");
	ck_assert(can_be_read(NULL));
	ck_assert(!can_be_read(&token));
}

/* ---- unauthenticated peers on a raw socket ---- */

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

/* ---- the greeting alone ---- */

/* Gives what is in `from` to the greeting, `step` bytes at a time, as a link would. */
static void pass(struct greeting *to, struct buf *from, struct buf *kept, size_t step,
		 struct buf *answers)
{
	while (buf_len(from) > 0) {
		size_t len = MIN(step, buf_len(from));
		buf_append(kept, buf_data(from), len);
		buf_consume(from, len);
		size_t used = greeting_feed(to, buf_data(kept), buf_len(kept), answers);
		buf_consume(kept, used);
	}
}

TEST(the_greeting_does_not_depend_on_how_it_is_cut)
{
	struct token token = make_token("secret");
	const struct link_self self = { "job", &token };
	for (size_t step = 1; step < 200; step++) {
		struct greeting a, b;
		AUTO(buf_done) struct buf to_a = BUF_INIT;
		AUTO(buf_done) struct buf to_b = BUF_INIT;
		AUTO(buf_done) struct buf at_a = BUF_INIT;
		AUTO(buf_done) struct buf at_b = BUF_INIT;
		greeting_connect(&a, &self, ROLE_AGENT, &to_b);
		greeting_accept(&b, &self);
		pass(&b, &to_b, &at_b, step, &to_a); /* HELLO */
		pass(&a, &to_a, &at_a, step, &to_b); /* CHALLENGE */
		pass(&b, &to_b, &at_b, step, &to_a); /* PROOF */
		ck_assert_int_eq(b.state, GREETING_KNOWN);
		greeting_welcome(&b, &to_a);
		pass(&a, &to_a, &at_a, step, &to_b); /* WELCOME */
		ck_assert_int_eq(a.state, GREETING_KNOWN);
		ck_assert_uint_eq(buf_len(&at_a) + buf_len(&at_b), 0);
	}
}

/* A peer that does not know the token poses as the coordinator. */
static void expect_impostor_found(bool challenges, bool reflects)
{
	struct token token = make_token("secret");
	const struct link_self self = { "job", &token };
	struct greeting a;
	AUTO(buf_done) struct buf said = BUF_INIT;
	AUTO(buf_done) struct buf lies = BUF_INIT;
	greeting_connect(&a, &self, ROLE_AGENT, &said);
	buf_clear(&said);
	frame_put_opening(&lies);
	if (challenges)
		frame_put_challenge(&lies, &(struct frame_challenge){ .nonce = "x" });
	size_t used = greeting_feed(&a, buf_data(&lies), buf_len(&lies), &said);
	ck_assert_uint_eq(used, buf_len(&lies));
	struct frame_welcome welcome = { .version = "1" };
	if (reflects) /* the proof that it was just given */
		memcpy(welcome.proof, buf_data(&said) + FRAME_HEADER_SIZE, sizeof(welcome.proof));
	buf_clear(&lies);
	frame_put_welcome(&lies, &welcome);
	greeting_feed(&a, buf_data(&lies), buf_len(&lies), &said);
	ck_assert_int_eq(a.state, GREETING_FAILED);
	ck_assert_int_eq(a.end, LINK_REFUSED);
	ck_assert_msg(strstr(a.why, "does not know the token"), "%s", a.why);
}

TEST(a_coordinator_must_prove_itself_too)
{
	expect_impostor_found(false, false);
	expect_impostor_found(true, false);
	expect_impostor_found(true, true);
}

TEST(a_proof_is_good_for_one_run_role_direction_and_pair_of_nonces)
{
	struct token token = make_token("secret");
	struct frame_hello hello = { .role = ROLE_AGENT, .run_id = "job" };
	struct frame_challenge challenge = { .nonce = "n" };
	unsigned char proof[FRAME_PROOF_SIZE];
	token_prove(&token, TOKEN_OF_CONNECTING, &hello, &challenge, proof);
	ck_assert(token_check(&token, TOKEN_OF_CONNECTING, &hello, &challenge, proof));
	ck_assert(!token_check(&token, TOKEN_OF_ACCEPTING, &hello, &challenge, proof));
	struct frame_hello changed = hello;
	changed.role = ROLE_PROBE;
	ck_assert(!token_check(&token, TOKEN_OF_CONNECTING, &changed, &challenge, proof));
	changed = hello;
	changed.run_id[0] = 'k';
	ck_assert(!token_check(&token, TOKEN_OF_CONNECTING, &changed, &challenge, proof));
	changed = hello;
	changed.nonce[15]++;
	ck_assert(!token_check(&token, TOKEN_OF_CONNECTING, &changed, &challenge, proof));
	challenge.nonce[15]++;
	ck_assert(!token_check(&token, TOKEN_OF_CONNECTING, &hello, &challenge, proof));
}

TEST(a_token_comes_from_its_file_first_and_without_the_newline_at_its_end)
{
	char path[] = "/tmp/muster-token-XXXXXX";
	int fd = mkstemp(path);
	ck_assert_int_eq(fd_write_all(fd, "secret\n", 7), 0);
	struct token plain = make_token("secret"), loaded;
	setenv(TOKEN_VARIABLE, "another", 1);
	ck_assert_int_eq(token_load(path, &loaded, NULL), 1);
	ck_assert(memcmp(&plain, &loaded, sizeof(plain)) == 0);
	ck_assert_int_eq(token_load(NULL, &loaded, NULL), 1);
	ck_assert(memcmp(&plain, &loaded, sizeof(plain)) != 0);
	unsetenv(TOKEN_VARIABLE);
	ck_assert_int_eq(token_load(NULL, &loaded, NULL), 0);
	struct err err = ERR_INIT;
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	ck_assert_int_eq(token_load(path, &loaded, &err), -EINVAL);
	ck_assert_msg(strstr(err.msg, path) && strstr(err.msg, "empty"), "%s", err.msg);
	unlink(path);
	close(fd);
	ck_assert_int_eq(token_load(path, &loaded, &err), -ENOENT);
}
