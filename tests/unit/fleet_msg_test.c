#include "unit.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "proto/fleet/fleet_msg.h"

static struct fleet_msg only(const struct buf *in)
{
	struct fleet_msg msg = { .len = 0 };
	size_t size = 0;
	ck_assert_int_eq(fleet_next(in, &msg, &size), 1);
	ck_assert_uint_eq(size, buf_len(in));
	return msg;
}

TEST(what_agents_are_started_with_comes_back_as_it_was)
{
	AUTO(fleet_start_done) struct fleet_start start = FLEET_START_INIT, got = FLEET_START_INIT;
	AUTO(buf_done) struct buf wire = BUF_INIT;
	strv_add(&start.place, "/home/me");
	strv_add(&start.place, "secret");
	strv_add(&start.command, "train.py");
	strv_add(&start.command, "");
	strv_add(&start.env, "A=1\n2");
	ck_assert_int_eq(fleet_put_start(&wire, &start, NULL), 0);
	struct fleet_msg msg = only(&wire);
	ck_assert_int_eq(msg.type, FLEET_MSG_START);
	ck_assert_uint_eq(msg.host, FLEET_ALL);
	ck_assert_int_eq(fleet_start_of(&msg, &got), 0);
	ck_assert_str_eq(got.place.items[1], "secret");
	ck_assert_uint_eq(got.options.count, 0);
	ck_assert_uint_eq(got.command.count, 2);
	ck_assert_str_eq(got.command.items[1], "");
	ck_assert_str_eq(got.env.items[0], "A=1\n2");
}

TEST(an_environment_that_is_too_large_is_refused)
{
	AUTO(fleet_start_done) struct fleet_start start = FLEET_START_INIT;
	AUTO(buf_done) struct buf wire = BUF_INIT;
	AUTO_FREE char *large = mem_alloc(FLEET_BODY_MAX + 1);
	memset(large, 'x', FLEET_BODY_MAX);
	strv_add(&start.env, large);
	struct err err = ERR_INIT;
	ck_assert_int_eq(fleet_put_start(&wire, &start, &err), -E2BIG);
	ck_assert_uint_eq(buf_len(&wire), 0);
}

TEST(an_exit_status_comes_back_as_it_was)
{
	AUTO(buf_done) struct buf wire = BUF_INIT;
	struct exit_status status = { EXIT_SIGNAL, 9, false }, got;
	fleet_put_agent(&wire, 3, &status);
	struct fleet_msg msg = only(&wire);
	ck_assert_uint_eq(msg.host, 3);
	ck_assert_int_eq(fleet_agent(&msg, &got), 0);
	ck_assert_int_eq(got.kind, EXIT_SIGNAL);
	ck_assert_int_eq(got.value, 9);
}

TEST(a_frame_that_is_cut_is_waited_for_and_a_wrong_one_is_refused)
{
	AUTO(buf_done) struct buf wire = BUF_INIT, piece = BUF_INIT;
	char *texts[] = { "a", "b", NULL };
	fleet_put_texts(&wire, FLEET_MSG_UP, 1, 7, texts);
	struct fleet_msg msg;
	size_t size;
	for (size_t len = 0; len < buf_len(&wire); len++) {
		buf_clear(&piece);
		buf_append(&piece, buf_data(&wire), len);
		ck_assert_int_eq(fleet_next(&piece, &msg, &size), 0);
	}
	msg = only(&wire);
	uint32_t number;
	AUTO(strv_done) struct strv got = STRV_INIT;
	ck_assert_int_eq(fleet_texts(&msg, &number, &got), 0);
	ck_assert_uint_eq(number, 7);
	ck_assert_uint_eq(got.count, 2);
	msg.len--; /* the last text has no end */
	AUTO(strv_done) struct strv cut = STRV_INIT;
	ck_assert_int_eq(fleet_texts(&msg, &number, &cut), -EPROTO);
	buf_data(&wire)[3] = 0xff; /* a length beyond the limit */
	ck_assert_int_eq(fleet_next(&wire, &msg, &size), -EPROTO);
}
