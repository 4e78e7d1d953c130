/* Frames, the greeting in them, and the opening before them. */
#include "unit.h"

#include "msg_draw.h"
#include "msg_rig.h"

#include <errno.h>
#include <string.h>

TEST(frames_do_not_depend_on_how_the_stream_is_cut)
{
	AUTO(buf_done) struct buf bytes = BUF_INIT;
	struct node_info node;
	for (int type = 0; type < MSG_TYPE_COUNT; type++) {
		struct msg msg;
		draw_msg((enum msg_type)type, &node, &msg);
		put(&msg, &bytes);
	}
	struct frame frame;
	size_t size, at = 0;
	for (size_t len = 0; len <= buf_len(&bytes); len++) {
		int r = frame_next(buf_data(&bytes) + at, len - at, &frame, &size, NULL);
		ck_assert_int_ge(r, 0);
		if (r == 0)
			continue;
		ck_assert_uint_eq(at + size, len); /* at once when it is whole, not a byte later */
		at = len;
	}
	ck_assert_uint_eq(at, buf_len(&bytes));
}

TEST(a_frame_longer_than_any_is_refused_before_it_has_come)
{
	const unsigned char header[] = { (FRAME_BODY_MAX + 1) & 0xff, (FRAME_BODY_MAX + 1) >> 8,
					 FRAME_HELLO };
	struct frame frame;
	size_t size;
	ck_assert_int_eq(frame_next(header, sizeof(header), &frame, &size, NULL), -EMSGSIZE);
}

TEST(the_greeting_comes_out_as_it_went_in)
{
	struct frame_hello hello = {
		.role = ROLE_PROBE, .auth = AUTH_TOKEN, .version = "1.2.3", .run_id = "job é"
	};
	memset(hello.nonce, 0xa5, sizeof(hello.nonce));
	AUTO(buf_done) struct buf bytes = BUF_INIT;
	frame_put_hello(&bytes, &hello);
	struct frame frame = split(&bytes);
	struct frame_hello got;
	ck_assert_int_eq(frame_get_hello(&frame, &got, NULL), 0);
	ck_assert_int_eq(got.role, ROLE_PROBE);
	ck_assert_int_eq(got.auth, AUTH_TOKEN);
	ck_assert_str_eq(got.version, "1.2.3");
	ck_assert_str_eq(got.run_id, "job é");
	ck_assert(memcmp(got.nonce, hello.nonce, sizeof(hello.nonce)) == 0);

	struct frame_standing standing = { true, { 7, 9 } }, got_standing;
	buf_clear(&bytes);
	frame_put_standing(&bytes, &standing);
	frame = split(&bytes);
	ck_assert_int_eq(frame_get_standing(&frame, &got_standing, NULL), 0);
	ck_assert(got_standing.coordinates && ballot_eq(got_standing.ballot, standing.ballot));
	ck_assert_int_eq(frame_get_hello(&frame, &got, NULL), -EPROTO);

	char text[2 * FRAME_TEXT_MAX];
	memset(text, 't', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	struct frame_refused refused;
	buf_clear(&bytes);
	frame_put_refused(&bytes, REFUSAL_TOKEN, text);
	frame = split(&bytes);
	ck_assert_int_eq(frame_get_refused(&frame, &refused, NULL), 0);
	ck_assert_int_eq(refused.reason, REFUSAL_TOKEN);
	ck_assert_uint_eq(strlen(refused.text), FRAME_TEXT_MAX - 1);
}

TEST(a_nul_inside_a_text_is_refused)
{
	struct frame_hello hello = { .version = "1", .run_id = "job" };
	AUTO(buf_done) struct buf bytes = BUF_INIT;
	frame_put_hello(&bytes, &hello);
	buf_data(&bytes)[buf_len(&bytes) - 2] = '\0';
	struct frame frame = split(&bytes);
	ck_assert_int_eq(frame_get_hello(&frame, &hello, NULL), -EPROTO);
}

static int opening(const char *bytes, size_t len, struct err *err)
{
	*err = ERR_INIT;
	return frame_check_opening(bytes, len, err);
}

TEST(foreign_peers_are_named)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *who;
	} peers[] = {
		{ "GET / HTTP/1.1\r\n", 16, "an HTTP client" },
		{ "HTTP/1.1 400", 12, "an HTTP server" },
		{ "\0\xce\xf7\x85\x3c\x0d\1\0\0\0", 10, "TCPStore" },
		{ "\x16\x03\x01\x02\0\1\0\1", 8, "TLS" },
		{ "SSH-2.0-OpenSSH", 15, "SSH" },
		{ "\1\2\3\4\5\6\7\10", 8, "another program" },
	};
	struct err err;
	for (size_t i = 0; i < ARRAY_LEN(peers); i++) {
		ck_assert_int_eq(opening(peers[i].bytes, peers[i].len, &err), -EPROTO);
		ck_assert_msg(strstr(err.msg, peers[i].who), "%s", err.msg);
	}
	ck_assert(frame_is_http("POST /", 6));
	ck_assert(!frame_is_http("HTTP/1.1", 8));
}

TEST(each_minor_version_understands_what_the_ones_before_do)
{
	for (unsigned minor = 1; minor <= FRAME_MINOR; minor++)
		ck_assert_uint_eq(frame_can((uint8_t)(minor - 1)) & ~frame_can((uint8_t)minor), 0);
	ck_assert_uint_eq(frame_can(0), 0);
	ck_assert_uint_eq(frame_can(3), CAN_ASK);
	ck_assert_uint_eq(frame_can(9), CAN_ASK | CAN_PLAN | CAN_STREAM | CAN_PACE);
	ck_assert_uint_eq(frame_can(FRAME_MINOR), CAN_ALL);
	ck_assert_uint_eq(frame_can(UINT8_MAX), CAN_ALL);
}

TEST(another_major_version_is_refused_and_another_minor_is_not)
{
	struct err err;
	AUTO(buf_done) struct buf ours = BUF_INIT;
	frame_put_opening(&ours);
	ck_assert_uint_eq(buf_len(&ours), FRAME_OPENING_SIZE);
	for (size_t len = 0; len < FRAME_OPENING_SIZE; len++)
		ck_assert_int_eq(opening((char *)buf_data(&ours), len, &err), 0);
	ck_assert_int_eq(opening((char *)buf_data(&ours), FRAME_OPENING_SIZE, &err), 1);
	ck_assert_int_eq(opening("MUSTER\2\77", 8, &err), 1);
	ck_assert_int_eq(opening("MUSTER\1\0", 8, &err), -EPROTONOSUPPORT);
	ck_assert_msg(strstr(err.msg, "version 1.0") && strstr(err.msg, MUSTER_VERSION), "%s",
		      err.msg);
}
