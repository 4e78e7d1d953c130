/* Messages and frames as bytes: what goes in comes out, and nothing else gets in. */
#include "proto/round_msg.h"

#include <errno.h>
#include <string.h>

#include "unit.h"

#define ROUNDS 200

/* ---- random messages, drawn into cleared memory, so that they can be compared as bytes ---- */

static uint64_t seed = 7;

static uint64_t draw(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static uint64_t below(uint64_t n)
{
	return draw() % n;
}

/* Often the ends of a range, where mistakes are. */
static uint64_t upto(uint64_t max)
{
	switch (below(4)) {
	case 0:
		return 0;
	case 1:
		return max;
	default:
		return max == UINT64_MAX ? draw() : below(max + 1);
	}
}

static void draw_text(char *text, size_t size)
{
	size_t len = upto(size - 1);
	for (size_t i = 0; i < len; i++)
		text[i] = (char)(1 + below(255));
	text[len] = '\0';
}

static struct ballot draw_ballot(void)
{
	return (struct ballot){ upto(BALLOT_MAX), 1 + upto(BALLOT_MAX - 1) };
}

static void draw_ref(struct round_ref *ref)
{
	if (below(3) == 0)
		return;
	ref->ballot = draw_ballot();
	ref->nodes = 1 + (uint32_t)upto(MSG_NODES_MAX - 1);
}

static int32_t draw_rank(void)
{
	return (int32_t)upto(INT32_MAX) - (int32_t)below(2);
}

static void draw_cause(struct cause *cause)
{
	cause->reason = (enum failure_reason)below(FAILURE_REASON_COUNT);
	cause->status.kind = (enum exit_kind)below(EXIT_SIGNAL + 1);
	cause->status.value = (int)below(256);
	cause->status.core_dumped = below(2);
	cause->spawn_errno = (int32_t)below(4096);
	cause->local_rank = draw_rank();
	cause->rank = draw_rank();
	cause->group_rank = draw_rank();
	cause->pid = (int32_t)draw();
	cause->no_restart = below(2);
	cause->age_ns = upto(UINT64_MAX);
	draw_text(cause->name, sizeof(cause->name));
}

static void draw_blame(struct blame *blame)
{
	blame->named = below(2);
	blame->rank = (uint32_t)draw();
	blame->exclude = below(2);
	draw_text(blame->text, sizeof(blame->text));
}

static struct msg_addr draw_addr(void)
{
	struct msg_addr addr = { .family = below(2) ? 4 : 6 };
	for (size_t i = 0; i < (addr.family == 4 ? 4 : 16); i++)
		addr.bytes[i] = (uint8_t)draw();
	return addr;
}

static void draw_checks(struct check_digest *checks)
{
	checks->bad = below(2);
	checks->figure_count = (uint8_t)upto(DIGEST_FIGURES_MAX);
	for (size_t i = 0; i < checks->figure_count; i++) {
		draw_text(checks->figures[i].name, sizeof(checks->figures[i].name));
		checks->figures[i].value = (double)(int64_t)draw() / 1024;
	}
	checks->fact_count = (uint8_t)upto(DIGEST_FACTS_MAX);
	for (size_t i = 0; i < checks->fact_count; i++) {
		draw_text(checks->facts[i].name, sizeof(checks->facts[i].name));
		draw_text(checks->facts[i].value, sizeof(checks->facts[i].value));
	}
	draw_text(checks->finding, sizeof(checks->finding));
}

static void draw_node(struct node_info *node)
{
	memset(node, 0, sizeof(*node));
	node->id = (struct agent_id){ draw(), draw() };
	node->max_nodes = 1 + (uint32_t)upto(MSG_NODES_MAX - 1);
	node->min_nodes = 1 + (uint32_t)upto(node->max_nodes - 1);
	node->nproc = 1 + (uint32_t)upto(MSG_NPROC_MAX - 1);
	node->node_rank = draw_rank();
	node->max_restarts = (uint32_t)upto(UINT32_MAX);
	node->by_progress = below(2);
	node->backoff_ns = upto(UINT64_MAX);
	node->backoff_max_ns = upto(UINT64_MAX);
	node->period_ns = upto(ROUND_MSG_PERIOD_MAX_NS);
	node->lease_periods = (uint32_t)upto(ROUND_MSG_LEASE_PERIODS_MAX);
	draw_text(node->role, sizeof(node->role));
	draw_text(node->name, sizeof(node->name));
	draw_text(node->store_host, sizeof(node->store_host));
	node->store_port = (uint16_t)draw();
	node->addr_count = (uint8_t)upto(MSG_ADDRS_MAX);
	for (size_t i = 0; i < node->addr_count; i++)
		node->addrs[i] = draw_addr();
	draw_checks(&node->checks);
	node->strikes = (uint32_t)upto(UINT32_MAX);
	node->cool_down_ns = upto(UINT64_MAX);
	node->excluded = below(2);
	node->pair_port = (uint16_t)draw();
	node->pair_ms = (uint16_t)upto(MSG_PAIR_MS_MAX);
}

static void draw_stall(struct stall *stall)
{
	stall->reached = upto(UINT64_MAX);
	stall->attempts = (uint32_t)upto(UINT32_MAX);
}

static void draw_kept_state(struct kept_state *state)
{
	if (below(3) == 0)
		return;
	state->ballot = draw_ballot();
	state->step = upto(UINT64_MAX);
}

static void draw_memory(struct memory *memory)
{
	draw_ref(&memory->heard);
	draw_ref(&memory->base);
	for (size_t i = 0; i < MEMORY_ROUNDS; i++)
		memory->member_of[i] = draw_ballot();
	memory->coordinator_in_heard = below(2);
	memory->coordinator_index = (int32_t)below(FINDER_ENDPOINTS_MAX + 1) - 1;
	memory->joined_id = upto(UINT64_MAX);
	memory->coordinator_died = below(2);
	memory->group_rank = draw_rank();
	memory->restarts = (uint32_t)upto(UINT32_MAX);
	draw_stall(&memory->stall);
	memory->reached = upto(UINT64_MAX);
	for (size_t i = 0; i < KEPT_STATES; i++)
		draw_kept_state(&memory->kept.states[i]);
	memory->kept.rank_base = (uint32_t)draw();
	memory->kept.world_size = (uint32_t)draw();
	memory->work = (enum work_state)below(WORK_STATE_COUNT);
	memory->ruling = (enum ruling)below(RULING_COUNT);
	memory->left = below(2);
	draw_cause(&memory->cause);
}

static void draw_formed(struct msg_formed *formed)
{
	draw_ref(&formed->base);
	formed->coordinator_in_round = below(2);
	formed->coordinator_index = (int32_t)below(FINDER_ENDPOINTS_MAX + 1) - 1;
	formed->nodes = 1 + (uint32_t)upto(MSG_NODES_MAX - 1);
	formed->group_rank = (uint32_t)upto(formed->nodes - 1);
	formed->world_size = (uint32_t)upto(UINT32_MAX);
	formed->rank_base = (uint32_t)upto(formed->world_size);
	formed->role_world_size = (uint32_t)upto(formed->world_size);
	formed->role_rank_base = (uint32_t)upto(formed->role_world_size);
	formed->restarts = (uint32_t)draw();
	formed->max_restarts = (uint32_t)draw();
	draw_stall(&formed->stall);
	draw_kept_state(&formed->kept);
	formed->hosts_store = below(2);
	formed->master_port = (uint16_t)draw();
	draw_text(formed->master_host, sizeof(formed->master_host));
}

static unsigned char some_bytes[ASK_PIECE_MAX];

static struct bytes draw_bytes(size_t max)
{
	for (size_t i = 0; i < 16; i++)
		some_bytes[below(sizeof(some_bytes))] = (unsigned char)draw();
	return bytes_of(some_bytes, upto(max));
}

static void draw_inquiry(struct inquiry *ask)
{
	ask->kind = (enum ask_kind)below(ASK_KIND_COUNT);
	ask->timeout_ns = upto(ASK_TIMEOUT_MAX_NS);
	ask->rank_count = (uint8_t)upto(ASK_RANKS_MAX);
	for (size_t i = 0; i < ask->rank_count; i++)
		ask->ranks[i] = (uint32_t)draw();
	ask->args = draw_bytes(ASK_ARGS_MAX);
}

static void draw_asking(enum msg_type type, struct msg *msg)
{
	uint32_t number = (uint32_t)draw();
	uint16_t slot = (uint16_t)upto(ASK_SLOTS_MAX - 1);
	uint8_t pieces = (uint8_t)upto(ASK_PIECES_MAX);
	switch (type) {
	case MSG_ASK:
		msg->ask.id = number;
		draw_text(msg->ask.host, sizeof(msg->ask.host));
		draw_inquiry(&msg->ask.ask);
		break;
	case MSG_TAKEN:
		msg->taken.id = number;
		msg->taken.slot = slot;
		msg->taken.pieces = pieces;
		break;
	case MSG_ANSWER:
		msg->answer.question = number;
		msg->answer.slot = slot;
		msg->answer.last = below(2);
		msg->answer.failed = below(2);
		msg->answer.piece = draw_bytes(ASK_PIECE_MAX);
		break;
	case MSG_QUESTION:
		msg->question.question = number;
		msg->question.slot = slot;
		msg->question.pieces = pieces;
		draw_inquiry(&msg->question.ask);
		break;
	case MSG_GRANT:
		msg->grant.question = number;
		msg->grant.slot = slot;
		msg->grant.pieces = pieces;
		break;
	case MSG_REPLY:
		msg->reply.id = number;
		msg->reply.slot = slot;
		msg->reply.last = below(2);
		msg->reply.failed = below(2);
		msg->reply.group_rank = draw_rank();
		draw_text(msg->reply.name, sizeof(msg->reply.name));
		msg->reply.piece = draw_bytes(ASK_PIECE_MAX);
		break;
	case MSG_MISSED:
		msg->missed.id = number;
		msg->missed.why = (enum ask_missed)below(ASK_MISSED_COUNT);
		msg->missed.group_rank = draw_rank();
		draw_text(msg->missed.name, sizeof(msg->missed.name));
		break;
	case MSG_ENDED:
		msg->ended.id = number;
		msg->ended.why = (enum ask_end)below(ASK_END_COUNT);
		msg->ended.hosts = (uint32_t)draw();
		msg->ended.answered = (uint32_t)draw();
		break;
	default:
		break;
	}
}

static void draw_msg(enum msg_type type, struct node_info *node, struct msg *msg)
{
	memset(msg, 0, sizeof(*msg));
	msg->type = type;
	msg->ballot = below(3) ? draw_ballot() : BALLOT_NONE;
	switch (type) {
	case MSG_JOIN:
		draw_node(node);
		msg->join.node = node;
		msg->join.attempt = (uint32_t)draw();
		draw_memory(&msg->join.memory);
		break;
	case MSG_FAILED:
		draw_cause(&msg->failed.cause);
		draw_blame(&msg->failed.blame);
		break;
	case MSG_DONE:
		msg->done.left = below(2);
		break;
	case MSG_NOTICE:
		msg->notice.kind = (enum plan_kind)below(PLAN_KIND_COUNT);
		msg->notice.left_ns = upto(ROUND_MSG_NOTICE_MAX_NS);
		break;
	case MSG_VOTE:
		msg->vote.serial = (uint32_t)draw();
		msg->vote.phase = (enum plan_phase)below(PLAN_PHASE_COUNT);
		msg->vote.step = upto(PLAN_STEP_MAX);
		msg->vote.at = upto(PLAN_STEP_MAX + 1);
		break;
	case MSG_PLAN:
		msg->plan.plan.serial = (uint32_t)draw();
		msg->plan.plan.phase = (enum plan_phase)below(PLAN_PHASE_COUNT);
		msg->plan.plan.kind = (enum plan_kind)below(PLAN_KIND_COUNT);
		msg->plan.plan.step = upto(PLAN_STEP_MAX);
		msg->plan.left_ns = upto(ROUND_MSG_NOTICE_MAX_NS);
		break;
	case MSG_PAIR:
		msg->pair.serial = (uint32_t)draw();
		msg->pair.secret = draw();
		msg->pair.calls = below(2);
		msg->pair.port = (uint16_t)draw();
		msg->pair.addr_count = (uint8_t)upto(MSG_PAIR_ADDRS_MAX);
		for (size_t i = 0; i < msg->pair.addr_count; i++)
			msg->pair.addrs[i] = draw_addr();
		msg->pair.ms = (uint16_t)upto(MSG_PAIR_MS_MAX);
		break;
	case MSG_PAIRED:
		msg->paired.serial = (uint32_t)draw();
		msg->paired.known = below(2);
		msg->paired.bandwidth = draw();
		msg->paired.latency_ns = draw();
		break;
	case MSG_PACE:
		msg->pace.group = below(2) ? draw() | 1 : 0;
		msg->pace.size = msg->pace.group ? (uint32_t)draw() | 2 : 0;
		msg->pace.error_ns = draw();
		msg->pace.count = (uint8_t)upto(MSG_MARKS_MAX);
		for (size_t i = 0; i < msg->pace.count; i++)
			msg->pace.marks[i] = (struct step_mark){
				.step = draw(),
				.last_ns = draw(),
				.mean_ns = draw(),
				.rank = (uint32_t)draw(),
				.ranks = (uint32_t)(1 + upto(MSG_NPROC_MAX - 1))
			};
		break;
	case MSG_LATE:
		msg->late.news = (struct straggler_news){ .rank = (uint32_t)draw(),
							  .begins = below(2),
							  .times = (uint32_t)upto(64),
							  .of = 64,
							  .lag_ns = draw(),
							  .group = draw() };
		break;
	case MSG_LEAVE:
		msg->leave.why = (enum leave_why)below(LEAVE_WHY_COUNT);
		msg->leave.empty = below(2);
		break;
	case MSG_PING:
		msg->ping.cookie = draw();
		msg->ping.stamp = draw();
		msg->ping.wall.offset_ns = (int64_t)draw();
		msg->ping.wall.error_ns = draw();
		break;
	case MSG_FORMED:
		draw_formed(&msg->formed);
		break;
	case MSG_STOP:
		msg->stop.why = (enum stop_why)below(STOP_WHY_COUNT);
		msg->stop.ruling = (enum ruling)below(RULING_COUNT);
		draw_cause(&msg->stop.cause);
		draw_blame(&msg->stop.blame);
		msg->stop.left = below(2);
		break;
	case MSG_CLOSED:
		msg->closed.ruling = below(2) ? RULING_DONE : RULING_FAILED;
		msg->closed.restarts = (uint32_t)draw();
		msg->closed.stalled = below(2);
		msg->closed.left = below(2);
		draw_cause(&msg->closed.cause);
		break;
	case MSG_REFUSED:
		msg->refused.reason = (enum refusal)below(REFUSED_REASON_COUNT);
		draw_text(msg->refused.text, sizeof(msg->refused.text));
		break;
	case MSG_PONG:
		msg->pong.coordinator_id = draw();
		msg->pong.cookie = draw();
		msg->pong.stamp = draw();
		draw_ref(&msg->pong.heard);
		draw_ref(&msg->pong.base);
		msg->pong.wait = below(2);
		msg->pong.present = (uint32_t)draw();
		msg->pong.missing = (uint32_t)draw();
		msg->pong.wall_shift_ns = (int64_t)draw();
		break;
	case MSG_PEERS:
		msg->peers.first = below(2);
		msg->peers.count = (uint8_t)upto(MSG_PEERS_MAX);
		for (size_t i = 0; i < msg->peers.count; i++)
			msg->peers.addrs[i] = draw_addr();
		break;
	default:
		draw_asking(type, msg);
		break;
	}
}

/* ---- helpers ---- */

static void put(const struct msg *msg, struct buf *out)
{
	struct err err = ERR_INIT;
	ck_assert_msg(round_msg_encode(msg, out, &err) == 0, "%s", err.msg);
}

static struct frame split(const struct buf *bytes)
{
	struct frame frame;
	size_t size;
	ck_assert_int_eq(frame_next(buf_data(bytes), buf_len(bytes), &frame, &size, NULL), 1);
	ck_assert_uint_eq(size, buf_len(bytes));
	return frame;
}

static int get(const struct buf *bytes, struct node_info *node, struct msg *msg)
{
	struct frame frame = split(bytes);
	return round_msg_decode(&frame, node, msg, NULL);
}

static void expect_equal(const struct msg *a, const struct msg *b)
{
	ck_assert_int_eq(a->type, b->type);
	struct msg x = *a, y = *b;
	if (a->type == MSG_JOIN) {
		ck_assert(memcmp(a->join.node, b->join.node, sizeof(*a->join.node)) == 0);
		x.join.node = y.join.node = NULL;
	}
	if (msg_borrowed(&x)) {
		ck_assert(bytes_eq(*msg_borrowed(&x), *msg_borrowed(&y)));
		*msg_borrowed(&x) = *msg_borrowed(&y) = bytes_of(NULL, 0);
	}
	ck_assert(memcmp(&x, &y, msg_size(a->type)) == 0);
}

/* ---- messages ---- */

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

static struct blame *blame_of(struct msg *msg)
{
	return msg->type == MSG_FAILED ? &msg->failed.blame
	       : msg->type == MSG_STOP ? &msg->stop.blame
				       : NULL;
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
static size_t added_by_8(const struct msg *msg)
{
	return msg->type == MSG_JOIN ? 2 + 2 : 0;
}

/* Bytes that minor versions 4 to 12 added at the end. */
static size_t added_last(const struct msg *msg)
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
static size_t added_later(const struct msg *msg)
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
	const struct blame *blame = blame_of(msg);
	return (blame ? 1 + 4 + 1 + 1 + strlen(blame->text) : added[msg->type]) + added_later(msg);
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
		memset(blame_of(&msg), 0, sizeof(struct blame));
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
				     left == added_last(&msg) || left == added_by_8(&msg);
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

TEST(a_group_of_collectives_has_two_ranks_at_least)
{
	struct msg msg = { .type = MSG_PACE, .pace = { .group = 5, .size = 1 } };
	AUTO(buf_done) struct buf bytes = BUF_INIT;
	ck_assert_int_lt(round_msg_encode(&msg, &bytes, NULL), 0);
	msg.pace.size = 2;
	ck_assert_int_eq(round_msg_encode(&msg, &bytes, NULL), 0);
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
		{ MSG_LEAVE, BALLOT + 1 + 1 },
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
	memset(msg.join.memory.cause.name, 'c', sizeof(msg.join.memory.cause.name) - 1);
	AUTO(buf_done) struct buf bytes = BUF_INIT;
	put(&msg, &bytes);
	ck_assert_uint_le(buf_len(&bytes), FRAME_HEADER_SIZE + FRAME_BODY_MAX);
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

/* ---- frames ---- */

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

/* ---- openings ---- */

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
