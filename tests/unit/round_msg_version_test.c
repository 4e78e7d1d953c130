/* Messages that an earlier or a later minor version sends. */
#include "unit.h"

#include "msg_draw.h"
#include "msg_rig.h"

#include <errno.h>
#include <string.h>

static struct cause *cause_of(struct msg *msg)
{
	return msg->type == MSG_FAILED	 ? &msg->failed.cause
	       : msg->type == MSG_STOP	 ? &msg->stop.cause
	       : msg->type == MSG_CLOSED ? &msg->closed.cause
	       : msg->type == MSG_JOIN	 ? &msg->join.cause
					 : NULL;
}

static size_t blame_len(struct msg *msg)
{
	return 1 + 4 + 1 + 1 + strlen(cause_of(msg)->blame.text);
}

/* Messages whose blame came with minor version 2. */
static bool had_blame(const struct msg *msg)
{
	return msg->type == MSG_FAILED || msg->type == MSG_STOP;
}

/* Bytes that minor version 13 added at the end. */
static size_t added_by_13(struct msg *msg)
{
	const struct cause *cause = cause_of(msg);
	size_t account =
		cause ? 1 + 4 + 8 + 8 + 1 + strlen(cause->words) + 1 + strlen(cause->report) : 0;
	size_t more = msg->type == MSG_JOIN ? 8 : msg->type == MSG_LEAVE ? 1 : 0;
	return account + more + (cause && !had_blame(msg) ? blame_len(msg) : 0);
}

/* Bytes that it added later still, about the fitness of a node. */
static size_t fitness_len(const struct check_digest *checks)
{
	size_t len = 1 + 1 + 1 + 1 + strlen(checks->finding) + 4 + 8 + 1;
	for (size_t i = 0; i < checks->figure_count; i++)
		len += 1 + strlen(checks->figures[i].name) + 8;
	for (size_t i = 0; i < checks->fact_count; i++)
		len += 1 + strlen(checks->facts[i].name) + 1 + strlen(checks->facts[i].value);
	return len;
}

/* Bytes that minor version 8 added at the end. */
static size_t added_by_8(struct msg *msg)
{
	return (msg->type == MSG_JOIN ? 2 + 2 : 0) + added_by_13(msg);
}

/* Bytes that minor versions 4 to 13 added at the end. */
static size_t added_last(struct msg *msg)
{
	if (msg->type == MSG_PACE || msg->type == MSG_LATE)
		return msg->type == MSG_PACE ? 8 + 4 : 8;
	if (msg->type == MSG_PING || msg->type == MSG_PONG)
		return msg->type == MSG_PING ? 8 + 8 : 8;
	bool left = msg->type == MSG_JOIN || msg->type == MSG_DONE || msg->type == MSG_STOP ||
		    msg->type == MSG_CLOSED;
	return left + added_by_8(msg);
}

/* Bytes that minor version 3 and later ones added. */
static size_t added_later(struct msg *msg)
{
	static const size_t state = 8 + 8 + 8, added[MSG_TYPE_COUNT] = {
		[MSG_JOIN] = KEPT_STATES * state + 4 + 4,
		[MSG_FORMED] = state,
	};
	size_t fitness = msg->type == MSG_JOIN ? fitness_len(&msg->join.node->checks) : 0;
	return added[msg->type] + fitness + added_last(msg);
}

/* Bytes that minor version 2 and later ones added. */
static size_t added_len(struct msg *msg)
{
	static const size_t added[MSG_TYPE_COUNT] = {
		[MSG_JOIN] = 1 + 8 + 4 + 8,
		[MSG_FORMED] = 8 + 4,
		[MSG_CLOSED] = 1,
	};
	return (had_blame(msg) ? blame_len(msg) : added[msg->type]) + added_later(msg);
}

static void forget_account(struct cause *cause)
{
	if (!cause)
		return;
	memset(&cause->blame, 0, sizeof(cause->blame));
	memset(cause->words, 0, sizeof(cause->words));
	memset(cause->report, 0, sizeof(cause->report));
	cause->world_size = 0;
	cause->lived_ns = cause->wall_ns = 0;
}

TEST(a_message_of_an_earlier_minor_version_blames_no_rank)
{
	static const enum msg_type types[] = { MSG_FAILED, MSG_STOP };
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		struct node_info node;
		struct msg msg, got;
		draw_msg(types[i], &node, &msg);
		AUTO(buf_done) struct buf bytes = BUF_INIT;
		put(&msg, &bytes);
		struct frame frame = split(&bytes);
		frame.body.len -= added_len(&msg);
		ck_assert_int_eq(round_msg_decode(&frame, &node, &got, NULL), 0);
		forget_account(cause_of(&msg));
		if (types[i] == MSG_STOP)
			msg.stop.left = false;
		expect_equal(&msg, &got);
	}
}

TEST(a_message_that_ends_early_is_refused_at_every_byte)
{
	for (int type = 0; type < MSG_TYPE_COUNT; type++) {
		struct node_info node;
		struct msg msg, got;
		draw_msg((enum msg_type)type, &node, &msg);
		AUTO(buf_done) struct buf bytes = BUF_INIT;
		put(&msg, &bytes);
		struct frame frame = split(&bytes);
		size_t added = added_len(&msg);
		size_t later = added_later(&msg);
		size_t last = added_last(&msg) + (type == MSG_JOIN ? fitness_len(&node.checks) : 0);
		for (size_t len = 0; len < frame.body.len; len++) {
			struct frame cut = { frame.type, bytes_of(frame.body.data, len) };
			size_t left = frame.body.len - len;
			bool whole = left == added || left == later || left == last ||
				     left == added_last(&msg) || left == added_by_8(&msg) ||
				     left == added_by_13(&msg);
			ck_assert_int_eq(round_msg_decode(&cut, &node, &got, NULL),
					 whole ? 0 : -EPROTO);
		}
	}
}

TEST(a_message_of_an_earlier_version_says_nothing_of_progress)
{
	struct node_info node, got_node;
	struct msg msg, got;
	AUTO(buf_done) struct buf bytes = BUF_INIT;
	draw_msg(MSG_JOIN, &node, &msg);
	put(&msg, &bytes);
	struct frame frame = split(&bytes);
	frame.body.len -= added_len(&msg);
	ck_assert_int_eq(round_msg_decode(&frame, &got_node, &got, NULL), 0);
	ck_assert(!got_node.by_progress);
	ck_assert_uint_eq(got.join.memory.reached, 0);
	ck_assert_uint_eq(got.join.memory.stall.reached, 0);
}

TEST(a_message_of_an_earlier_version_is_about_steps)
{
	static const enum msg_type types[] = { MSG_PACE, MSG_LATE };
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		struct node_info node, got_node;
		struct msg msg, got;
		AUTO(buf_done) struct buf bytes = BUF_INIT;
		do
			draw_msg(types[i], &node, &msg);
		while (types[i] == MSG_PACE ? !msg.pace.group : !msg.late.news.group);
		put(&msg, &bytes);
		struct frame frame = split(&bytes);
		frame.body.len -= added_last(&msg);
		ck_assert_int_eq(round_msg_decode(&frame, &got_node, &got, NULL), 0);
		ck_assert_uint_eq(types[i] == MSG_PACE ? got.pace.group : got.late.news.group, 0);
	}
}

TEST(a_message_of_an_earlier_version_says_nothing_of_kept_state)
{
	struct node_info node, got_node;
	struct msg msg, got;
	AUTO(buf_done) struct buf bytes = BUF_INIT;
	do
		draw_msg(MSG_JOIN, &node, &msg);
	while (msg.join.memory.reached == 0 || kept_is_none(&msg.join.memory.kept.states[0]));
	put(&msg, &bytes);
	struct frame frame = split(&bytes);
	frame.body.len -= added_later(&msg);
	ck_assert_int_eq(round_msg_decode(&frame, &got_node, &got, NULL), 0);
	ck_assert_uint_eq(got.join.memory.reached, msg.join.memory.reached);
	ck_assert(kept_is_none(&got.join.memory.kept.states[0]));
	ck_assert_uint_eq(got.join.memory.kept.world_size, 0);
}

TEST(bytes_of_a_later_minor_version_are_ignored)
{
	for (int type = 0; type < MSG_TYPE_COUNT; type++) {
		struct node_info node, got_node;
		struct msg msg, got;
		draw_msg((enum msg_type)type, &node, &msg);
		AUTO(buf_done) struct buf bytes = BUF_INIT;
		put(&msg, &bytes);
		struct frame frame = split(&bytes);
		AUTO(buf_done) struct buf longer = BUF_INIT;
		buf_append(&longer, frame.body.data, frame.body.len);
		buf_append_str(&longer, "something new");
		frame.body = bytes_of(buf_data(&longer), buf_len(&longer));
		ck_assert_int_eq(round_msg_decode(&frame, &got_node, &got, NULL), 0);
		expect_equal(&msg, &got);
	}
}
