#include "msg_draw.h"

#include <string.h>

#include "proto/round_msg.h"

static uint64_t seed = 7;

uint64_t draw(void)
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

static void draw_blame(struct blame *blame)
{
	blame->named = below(2);
	blame->rank = (uint32_t)draw();
	blame->exclude = below(2);
	draw_text(blame->text, sizeof(blame->text));
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
	cause->world_size = (uint32_t)draw();
	cause->lived_ns = draw();
	cause->wall_ns = draw();
	draw_blame(&cause->blame);
	draw_text(cause->words, sizeof(cause->words));
	draw_text(cause->report, sizeof(cause->report));
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
	node->lost_timeout_ns = draw();
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

void draw_msg(enum msg_type type, struct node_info *node, struct msg *msg)
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
		draw_cause(&msg->join.cause);
		break;
	case MSG_FAILED:
		draw_cause(&msg->failed.cause);
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
	case MSG_SIGNS:
		msg->signs.signs = (struct hang_signs){
			.silence = (enum hang_level)below(HANG_LEVEL_COUNT),
			.broken = (enum hang_level)below(HANG_LEVEL_COUNT),
			.stalled = (enum hang_level)below(HANG_LEVEL_COUNT),
			.starting = below(2),
			.works = below(2),
			.excuse = below(2),
			.rank = (uint32_t)draw(),
		};
		msg->signs.looked = below(2);
		break;
	case MSG_LOOK:
		msg->look.kind = (enum hang_kind)below(HANG_KIND_COUNT);
		msg->look.long_since = below(2);
		draw_blame(&msg->look.blame);
		break;
	case MSG_FOUND:
		msg->found.kind = (enum hang_kind)below(HANG_KIND_COUNT);
		draw_blame(&msg->found.blame);
		break;
	case MSG_LATE:
		msg->late.news = (struct straggler_news){ .rank = (uint32_t)draw(),
							  .begins = below(2),
							  .times = (uint32_t)upto(64),
							  .of = 64,
							  .lag_ns = draw(),
							  .group = draw() };
		break;
	case MSG_PUT:
		msg->put.seq = (uint32_t)draw();
		msg->put.last = below(2);
		msg->put.pairs = draw_bytes(EXCHANGE_PIECE_MAX);
		break;
	case MSG_UNION:
		msg->all.seq = (uint32_t)draw();
		msg->all.piece = draw_bytes(EXCHANGE_PIECE_MAX);
		msg->all.at = (uint32_t)upto(UINT32_MAX - EXCHANGE_PIECE_MAX);
		msg->all.size = msg->all.at + (uint32_t)msg->all.piece.len;
		break;
	case MSG_WANT:
		msg->want.kind = (enum want_kind)below(WANT_KIND_COUNT);
		msg->want.serial = (uint32_t)draw();
		msg->want.seq = (uint32_t)draw();
		msg->want.at = (uint32_t)draw();
		msg->want.pair = draw_bytes(EXCHANGE_PIECE_MAX);
		break;
	case MSG_VALUE:
		msg->value.serial = (uint32_t)draw();
		msg->value.found = below(2);
		msg->value.value = draw_bytes(EXCHANGE_PIECE_MAX);
		break;
	case MSG_LEAVE:
		msg->leave.why = (enum leave_why)below(LEAVE_WHY_COUNT);
		msg->leave.empty = below(2);
		msg->leave.signal = (uint8_t)draw();
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
