/* Links: messages, ends and probes. */
#include "unit.h"

#include "link_rig.h"
#include "loop.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "net/link_private.h"

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
	link_send(w.server, &pong_msg); /* something is under way to the one that hangs up */
	for (int i = 0; i < 1000; i++)
		link_send(w.client, &ping_msg);
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
	link_send(w.client, &ping_msg);
	link_send(w.client, &ping_msg);
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
	link_send(w.client, &pong_msg);
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
		link_send(w.client, &ping_msg);
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
