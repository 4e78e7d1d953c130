/* An attacker on the path of a link. */
#include "unit.h"

#include "link_rig.h"
#include "loop.h"

#include <string.h>

#include "net/link_private.h"
#include "proto/round_msg.h"

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
		link_send(a->sender, from_server ? &pong_msg : &ping_msg);
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
	ck_assert_int_eq(round_msg_encode(&ping_msg, &plain, NULL), 0);
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
