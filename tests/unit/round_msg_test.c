/* Messages as bytes: what goes in comes out, and nothing else gets in. */
#include "unit.h"

#include "msg_draw.h"
#include "msg_rig.h"

#include <errno.h>
#include <string.h>

#define ROUNDS 200

TEST(every_field_of_every_message_comes_out_as_it_went_in)
{
	for (int type = 0; type < MSG_TYPE_COUNT; type++)
		for (int i = 0; i < ROUNDS; i++) {
			struct node_info node, got_node;
			struct msg msg, got;
			draw_msg((enum msg_type)type, &node, &msg);
			AUTO(buf_done) struct buf bytes = BUF_INIT;
			put(&msg, &bytes);
			ck_assert_int_eq(get(&bytes, &got_node, &got), 0);
			expect_equal(&msg, &got);
		}
}

TEST(a_group_of_collectives_has_two_ranks_at_least)
{
	struct msg msg = { .type = MSG_PACE, .pace = { .group = 5, .size = 1 } };
	AUTO(buf_done) struct buf bytes = BUF_INIT;
	ck_assert_int_lt(round_msg_encode(&msg, &bytes, NULL), 0);
	msg.pace.size = 2;
	ck_assert_int_eq(round_msg_encode(&msg, &bytes, NULL), 0);
}

TEST(messages_of_one_size_have_the_size_that_the_protocol_says)
{
	enum { BALLOT = 16, REF = BALLOT + 4 };
	static const struct {
		enum msg_type type;
		size_t size;
	} sizes[] = {
		{ MSG_DONE, BALLOT + 1 },
		{ MSG_NOTICE, BALLOT + 1 + 8 },
		{ MSG_VOTE, BALLOT + 4 + 1 + 8 + 8 },
		{ MSG_PAIRED, BALLOT + 4 + 1 + 8 + 8 },
		{ MSG_PLAN, BALLOT + 4 + 1 + 1 + 8 + 8 },
		{ MSG_LATE, BALLOT + 4 + 1 + 4 + 4 + 8 + 8 },
		{ MSG_LEAVE, BALLOT + 1 + 1 + 1 },
		{ MSG_PING, BALLOT + 8 + 8 + 8 + 8 },
		{ MSG_PONG, BALLOT + 8 + 8 + 8 + REF + REF + 1 + 4 + 4 + 8 },
	};
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		AUTO(buf_done) struct buf bytes = BUF_INIT;
		struct node_info node;
		struct msg msg;
		draw_msg(sizes[i].type, &node, &msg);
		put(&msg, &bytes);
		ck_assert_uint_eq(split(&bytes).body.len, sizes[i].size);
	}
}

static void fill_checks(struct check_digest *checks)
{
	checks->figure_count = DIGEST_FIGURES_MAX;
	for (size_t i = 0; i < DIGEST_FIGURES_MAX; i++) {
		memset(checks->figures[i].name, 'f', DIGEST_NAME_MAX - 1);
		checks->figures[i].name[DIGEST_NAME_MAX - 1] = '\0';
		checks->figures[i].value = 1;
	}
	checks->fact_count = DIGEST_FACTS_MAX;
	for (size_t i = 0; i < DIGEST_FACTS_MAX; i++) {
		memset(checks->facts[i].name, 'n', DIGEST_NAME_MAX - 1);
		memset(checks->facts[i].value, 'v', DIGEST_FACT_MAX - 1);
		checks->facts[i].name[DIGEST_NAME_MAX - 1] = '\0';
		checks->facts[i].value[DIGEST_FACT_MAX - 1] = '\0';
	}
	memset(checks->finding, 't', sizeof(checks->finding) - 1);
	checks->finding[sizeof(checks->finding) - 1] = '\0';
}

TEST(the_largest_message_fits_into_a_frame)
{
	struct node_info node;
	struct msg msg;
	draw_msg(MSG_JOIN, &node, &msg);
	memset(node.role, 'r', sizeof(node.role) - 1);
	memset(node.name, 'n', sizeof(node.name) - 1);
	memset(node.store_host, 'h', sizeof(node.store_host) - 1);
	node.role[sizeof(node.role) - 1] = node.name[sizeof(node.name) - 1] = '\0';
	node.store_host[sizeof(node.store_host) - 1] = '\0';
	node.addr_count = MSG_ADDRS_MAX;
	for (size_t i = 0; i < MSG_ADDRS_MAX; i++)
		node.addrs[i].family = 6;
	fill_checks(&node.checks);
	struct cause *cause = &msg.join.cause;
	memset(cause->name, 'c', sizeof(cause->name) - 1);
	memset(cause->blame.text, 'b', sizeof(cause->blame.text) - 1);
	memset(cause->words, 'w', sizeof(cause->words) - 1);
	memset(cause->report, 'r', sizeof(cause->report) - 1);
	AUTO(buf_done) struct buf bytes = BUF_INIT;
	put(&msg, &bytes);
	ck_assert_uint_le(buf_len(&bytes), FRAME_HEADER_SIZE + FRAME_BODY_MAX - FRAME_TAG_SIZE);
	/* What there was no room for is cut, not refused. */
	struct frame frame = split(&bytes);
	struct node_info got_node;
	struct msg got;
	ck_assert_int_eq(round_msg_decode(&frame, &got_node, &got, NULL), 0);
	ck_assert_uint_lt(strlen(got.join.cause.report), strlen(cause->report));
	ck_assert_int_eq(strncmp(got.join.cause.blame.text, cause->blame.text,
				 strlen(got.join.cause.blame.text)),
			 0);
}

/* Whatever a receiver would refuse is refused by the sender already; what a hostile sender sends
 * anyway is tried by changing bytes. */
static void expect_unsendable(const struct msg *msg)
{
	AUTO(buf_done) struct buf bytes = BUF_INIT;
	ck_assert_int_eq(round_msg_encode(msg, &bytes, NULL), -EINVAL);
	ck_assert_uint_eq(buf_len(&bytes), 0);
}

TEST(values_out_of_their_range_are_not_sent)
{
	struct node_info node;
	struct msg msg;
#define WITH(type, change) \
	do { \
		draw_msg((type), &node, &msg); \
		change; \
		expect_unsendable(&msg); \
	} while (0)
	WITH(MSG_JOIN, node.min_nodes = 0);
	WITH(MSG_JOIN, node.pair_ms = MSG_PAIR_MS_MAX + 1);
	WITH(MSG_PAIR, msg.pair.addr_count = MSG_PAIR_ADDRS_MAX + 1);
	WITH(MSG_PAIR, msg.pair.ms = MSG_PAIR_MS_MAX + 1);
	WITH(MSG_JOIN, node.min_nodes = node.max_nodes + 1);
	WITH(MSG_JOIN, node.max_nodes = MSG_NODES_MAX + 1);
	WITH(MSG_JOIN, node.nproc = 0);
	WITH(MSG_JOIN, node.nproc = MSG_NPROC_MAX + 1);
	WITH(MSG_JOIN, node.node_rank = -2);
	WITH(MSG_JOIN, node.period_ns = ROUND_MSG_PERIOD_MAX_NS + 1);
	WITH(MSG_JOIN, node.lease_periods = ROUND_MSG_LEASE_PERIODS_MAX + 1);
	WITH(MSG_JOIN, node.addr_count = MSG_ADDRS_MAX + 1);
	WITH(MSG_JOIN, (node.addr_count = 1, node.addrs[0].family = 5));
	WITH(MSG_JOIN, memset(node.role, 'x', sizeof(node.role)));
	WITH(MSG_JOIN, msg.join.memory.coordinator_index = FINDER_ENDPOINTS_MAX);
	WITH(MSG_JOIN, msg.join.memory.coordinator_index = -2);
	WITH(MSG_JOIN, msg.join.memory.work = WORK_STATE_COUNT);
	WITH(MSG_JOIN, msg.join.memory.ruling = RULING_COUNT);
	WITH(MSG_JOIN, msg.join.memory.heard = ((struct round_ref){ { 1, 1 }, 0 }));
	WITH(MSG_JOIN, msg.join.memory.base = ((struct round_ref){ BALLOT_NONE, 3 }));
	WITH(MSG_FAILED, msg.failed.cause.reason = FAILURE_REASON_COUNT);
	WITH(MSG_FAILED, msg.failed.cause.status.kind = (enum exit_kind)(EXIT_SIGNAL + 1));
	/* 256 would end the process that takes it for an exit code with 0. */
	WITH(MSG_FAILED, msg.failed.cause.status.value = 256);
	WITH(MSG_STOP, msg.stop.cause.status.value = -1);
	WITH(MSG_CLOSED, msg.closed.cause.status.value = INT32_MIN);
	WITH(MSG_STOP, msg.stop.cause.spawn_errno = -1);
	WITH(MSG_FAILED, msg.failed.cause.rank = -2);
	WITH(MSG_LEAVE, msg.leave.why = LEAVE_WHY_COUNT);
	WITH(MSG_FORMED, msg.formed.group_rank = msg.formed.nodes);
	WITH(MSG_FORMED, (msg.formed.world_size = 3, msg.formed.rank_base = 4));
	WITH(MSG_FORMED, (msg.formed.role_world_size = 3, msg.formed.role_rank_base = 4));
	WITH(MSG_FORMED, (msg.formed.world_size = 3, msg.formed.role_world_size = 4));
	WITH(MSG_STOP, msg.stop.why = STOP_WHY_COUNT);
	WITH(MSG_CLOSED, msg.closed.ruling = RULING_NONE);
	WITH(MSG_REFUSED, msg.refused.reason = REFUSED_REASON_COUNT);
	WITH(MSG_PEERS, msg.peers.count = MSG_PEERS_MAX + 1);
#undef WITH
}

/* Any byte changed: refused, or a message that can be sent again and comes out the same. */
TEST(what_decodes_can_be_encoded_again)
{
	for (int type = 0; type < MSG_TYPE_COUNT; type++) {
		struct node_info node, again_node;
		struct msg msg, got, again;
		draw_msg((enum msg_type)type, &node, &msg);
		AUTO(buf_done) struct buf bytes = BUF_INIT;
		put(&msg, &bytes);
		for (size_t i = FRAME_HEADER_SIZE; i < buf_len(&bytes); i++) {
			unsigned char was = buf_data(&bytes)[i];
			buf_data(&bytes)[i] = (unsigned char)draw();
			if (get(&bytes, &node, &got) == 0) {
				AUTO(buf_done) struct buf second = BUF_INIT;
				put(&got, &second);
				ck_assert_int_eq(get(&second, &again_node, &again), 0);
				expect_equal(&got, &again);
			}
			buf_data(&bytes)[i] = was;
		}
	}
}

TEST(a_frame_that_is_not_a_message_is_refused)
{
	struct node_info node;
	struct msg msg;
	for (unsigned type = 0; type < 256; type++) {
		struct frame frame = { (uint8_t)type, bytes_of("", 0) };
		struct err err = ERR_INIT;
		ck_assert_int_eq(round_msg_decode(&frame, &node, &msg, &err), -EPROTO);
	}
}
