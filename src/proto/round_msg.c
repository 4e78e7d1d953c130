#include "proto/round_msg.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "proto/pack.h"

/* A field that is added to one of these must also be packed below and drawn in the test. */
static_assert(sizeof(struct node_info) == 1648 && sizeof(struct memory) == 304 &&
		      sizeof(struct cause) == 792 && sizeof(struct round_ref) == 24 &&
		      sizeof(struct stall) == 16 && sizeof(struct kept) == 56 &&
		      sizeof(struct msg_join) == 1112 && sizeof(struct msg_formed) == 368 &&
		      sizeof(struct msg_failed) == 792 && sizeof(struct msg_stop) == 808 &&
		      sizeof(struct msg_leave) == 8 && sizeof(struct msg_closed) == 808 &&
		      sizeof(struct msg_refused) == 164 && sizeof(struct msg_ping) == 32 &&
		      sizeof(struct msg_pong) == 96 && sizeof(struct msg_peers) == 546 &&
		      sizeof(struct msg_done) == 1 && sizeof(struct msg_notice) == 16 &&
		      sizeof(struct msg_vote) == 24 && sizeof(struct msg_plan) == 32 &&
		      sizeof(struct msg_pair) == 96 && sizeof(struct msg_paired) == 24 &&
		      sizeof(struct msg_pace) == 800 && sizeof(struct msg_late) == 32 &&
		      sizeof(struct msg_signs) == 24 && sizeof(struct msg_look) == 276 &&
		      sizeof(struct msg_found) == 272 && sizeof(struct msg_put) == 24 &&
		      sizeof(struct msg_union) == 32 && sizeof(struct want) == 32 &&
		      sizeof(struct msg_value) == 24 && sizeof(struct inquiry) == 296 &&
		      sizeof(struct msg_ask) == 368 && sizeof(struct msg_taken) == 8 &&
		      sizeof(struct msg_answer) == 24 && sizeof(struct msg_question) == 304 &&
		      sizeof(struct msg_grant) == 8 && sizeof(struct msg_reply) == 96 &&
		      sizeof(struct msg_missed) == 80 && sizeof(struct msg_ended) == 16,
	      "a message has changed: change its walk");

/* ---- the parts ---- */

static void pack_ballot(struct pack *p, struct ballot *ballot)
{
	pack_u64(p, &ballot->epoch);
	pack_u64(p, &ballot->round);
	pack_require(p, ballot->epoch <= BALLOT_MAX && ballot->round <= BALLOT_MAX);
}

static void pack_round_ref(struct pack *p, struct round_ref *ref)
{
	pack_ballot(p, &ref->ballot);
	pack_u32(p, &ref->nodes);
	pack_require(p, ref->nodes <= MSG_NODES_MAX &&
				(ref->nodes == 0) == ballot_is_none(ref->ballot));
}

/* A rank, or -1 for none. */
static void pack_rank(struct pack *p, int32_t *rank)
{
	pack_i32(p, rank);
	pack_require(p, *rank >= -1);
}

static void pack_endpoint_index(struct pack *p, int32_t *index)
{
	pack_rank(p, index);
	pack_require(p, *index < FINDER_ENDPOINTS_MAX);
}

#define STATUS_VALUE_MAX 255 /* an exit code or a signal, as wait() has them */

static void pack_cause(struct pack *p, struct cause *cause)
{
	enum failure_reason told = cause->reason < FAILURE_LOST ? cause->reason : FAILURE_EXIT;
	PACK_ENUM(p, told, FAILURE_LOST);
	if (!p->writing)
		cause->reason = told;
	PACK_ENUM(p, cause->status.kind, EXIT_SIGNAL + 1);
	pack_i32(p, &cause->status.value);
	pack_require(p, cause->status.value >= 0 && cause->status.value <= STATUS_VALUE_MAX);
	pack_bool(p, &cause->status.core_dumped);
	pack_i32(p, &cause->spawn_errno);
	pack_require(p, cause->spawn_errno >= 0);
	pack_rank(p, &cause->local_rank);
	pack_rank(p, &cause->rank);
	pack_rank(p, &cause->group_rank);
	pack_i32(p, &cause->pid);
	pack_bool(p, &cause->no_restart);
	pack_u64(p, &cause->age_ns);
	pack_text(p, cause->name, sizeof(cause->name));
}

static void pack_addr(struct pack *p, struct msg_addr *addr)
{
	pack_u8(p, &addr->family);
	pack_require(p, addr->family == 4 || addr->family == 6);
	pack_bytes(p, addr->bytes, addr->family == 4 ? 4 : sizeof(addr->bytes));
}

static void pack_addrs(struct pack *p, struct msg_addr *addrs, uint8_t *count, size_t max)
{
	pack_u8(p, count);
	pack_require(p, *count <= max);
	for (size_t i = 0; !p->bad && i < *count; i++)
		pack_addr(p, &addrs[i]);
}

static void pack_node(struct pack *p, struct node_info *node)
{
	pack_u64(p, &node->id.hi);
	pack_u64(p, &node->id.lo);
	pack_u32(p, &node->min_nodes);
	pack_u32(p, &node->max_nodes);
	pack_require(p, node->min_nodes >= 1 && node->min_nodes <= node->max_nodes &&
				node->max_nodes <= MSG_NODES_MAX);
	pack_u32(p, &node->nproc);
	pack_require(p, node->nproc >= 1 && node->nproc <= MSG_NPROC_MAX);
	pack_rank(p, &node->node_rank);
	pack_u32(p, &node->max_restarts);
	pack_u64(p, &node->backoff_ns);
	pack_u64(p, &node->backoff_max_ns);
	pack_u64(p, &node->period_ns);
	pack_u32(p, &node->lease_periods);
	pack_require(p, node->period_ns <= ROUND_MSG_PERIOD_MAX_NS &&
				node->lease_periods <= ROUND_MSG_LEASE_PERIODS_MAX);
	pack_text(p, node->role, sizeof(node->role));
	pack_text(p, node->name, sizeof(node->name));
	pack_text(p, node->store_host, sizeof(node->store_host));
	pack_u16(p, &node->store_port);
	pack_addrs(p, node->addrs, &node->addr_count, MSG_ADDRS_MAX);
}

/* As much of it as there is room for before `after` bytes that follow: in the longest JOIN it has
 * to give way. */
static void pack_part(struct pack *p, char *text, size_t size, size_t after)
{
	char part[UINT8_MAX + 1];
	size_t room = (size_t)(p->end - p->at);
	if (!p->writing) {
		pack_text(p, text, size);
		return;
	}
	pack_require(p, room > after);
	size_t len = p->bad ? 0 : MIN(strnlen(text, size), MIN(room - after - 1, UINT8_MAX));
	memcpy(part, text, len);
	part[len] = '\0';
	pack_text(p, part, sizeof(part));
}

#define ACCOUNT_MIN (1 + 4 + 8 + 8 + 1 + 1) /* without its texts */

static void pack_blame(struct pack *p, struct blame *blame)
{
	pack_bool(p, &blame->named);
	pack_u32(p, &blame->rank);
	pack_bool(p, &blame->exclude);
	pack_part(p, blame->text, sizeof(blame->text), ACCOUNT_MIN);
}

/* What earlier versions do not know of a cause. They know no later reasons, so the field that they
 * read has one of theirs. */
static void pack_account(struct pack *p, struct cause *cause)
{
	PACK_ENUM(p, cause->reason, FAILURE_REASON_COUNT);
	pack_u32(p, &cause->world_size);
	pack_u64(p, &cause->lived_ns);
	pack_u64(p, &cause->wall_ns);
	pack_part(p, cause->words, sizeof(cause->words), 1);
	pack_part(p, cause->report, sizeof(cause->report), 0);
}

static void pack_memory(struct pack *p, struct memory *memory, struct cause *cause)
{
	pack_round_ref(p, &memory->heard);
	pack_round_ref(p, &memory->base);
	for (size_t i = 0; i < MEMORY_ROUNDS; i++)
		pack_ballot(p, &memory->member_of[i]);
	pack_bool(p, &memory->coordinator_in_heard);
	pack_endpoint_index(p, &memory->coordinator_index);
	pack_u64(p, &memory->joined_id);
	pack_bool(p, &memory->coordinator_died);
	pack_rank(p, &memory->group_rank);
	pack_u32(p, &memory->restarts);
	PACK_ENUM(p, memory->work, WORK_STATE_COUNT);
	PACK_ENUM(p, memory->ruling, RULING_COUNT);
	pack_cause(p, cause);
}

/* What later minor versions added at the end of bodies; left alone in those of earlier ones. */
static bool pack_more(const struct pack *p)
{
	return p->writing || p->at < p->end;
}

static void pack_stall(struct pack *p, struct stall *stall)
{
	pack_u64(p, &stall->reached);
	pack_u32(p, &stall->attempts);
}

static void pack_kept_state(struct pack *p, struct kept_state *state)
{
	pack_ballot(p, &state->ballot);
	pack_u64(p, &state->step);
	pack_require(p, state->step == 0 || !kept_is_none(state));
}

static void pack_kept(struct pack *p, struct kept *kept)
{
	for (size_t i = 0; i < KEPT_STATES; i++)
		pack_kept_state(p, &kept->states[i]);
	pack_u32(p, &kept->rank_base);
	pack_u32(p, &kept->world_size);
}

static void pack_real(struct pack *p, double *value)
{
	uint64_t bits;
	memcpy(&bits, value, sizeof(bits));
	pack_u64(p, &bits);
	if (!p->writing)
		memcpy(value, &bits, sizeof(bits));
	pack_require(p, isfinite(*value));
}

static void pack_checks(struct pack *p, struct check_digest *checks)
{
	pack_bool(p, &checks->bad);
	pack_u8(p, &checks->figure_count);
	pack_require(p, checks->figure_count <= DIGEST_FIGURES_MAX);
	for (size_t i = 0; !p->bad && i < checks->figure_count; i++) {
		pack_text(p, checks->figures[i].name, sizeof(checks->figures[i].name));
		pack_real(p, &checks->figures[i].value);
	}
	pack_u8(p, &checks->fact_count);
	pack_require(p, checks->fact_count <= DIGEST_FACTS_MAX);
	for (size_t i = 0; !p->bad && i < checks->fact_count; i++) {
		pack_text(p, checks->facts[i].name, sizeof(checks->facts[i].name));
		pack_text(p, checks->facts[i].value, sizeof(checks->facts[i].value));
	}
	pack_text(p, checks->finding, sizeof(checks->finding));
}

/* ---- the messages ---- */

static void pack_fitness(struct pack *p, struct node_info *node)
{
	pack_checks(p, &node->checks);
	pack_u32(p, &node->strikes);
	pack_u64(p, &node->cool_down_ns);
	pack_bool(p, &node->excluded);
}

static void pack_pairing(struct pack *p, struct node_info *node)
{
	pack_u16(p, &node->pair_port);
	pack_u16(p, &node->pair_ms);
	pack_require(p, node->pair_ms <= MSG_PAIR_MS_MAX);
}

static void pack_join(struct pack *p, struct msg *msg)
{
	pack_u32(p, &msg->join.attempt);
	pack_node(p, (struct node_info *)msg->join.node); /* of the decoder, or left alone */
	pack_memory(p, &msg->join.memory, &msg->join.cause);
	if (!pack_more(p))
		return;
	pack_bool(p, (bool *)&msg->join.node->by_progress);
	pack_stall(p, &msg->join.memory.stall);
	pack_u64(p, &msg->join.memory.reached);
	if (pack_more(p))
		pack_kept(p, &msg->join.memory.kept);
	if (pack_more(p))
		pack_fitness(p, (struct node_info *)msg->join.node);
	if (pack_more(p))
		pack_bool(p, &msg->join.memory.left);
	if (pack_more(p))
		pack_pairing(p, (struct node_info *)msg->join.node);
	if (pack_more(p)) {
		pack_u64(p, (uint64_t *)&msg->join.node->lost_timeout_ns);
		pack_blame(p, &msg->join.cause.blame);
		pack_account(p, &msg->join.cause);
	}
}

static void pack_failed(struct pack *p, struct msg *msg)
{
	pack_cause(p, &msg->failed.cause);
	if (pack_more(p))
		pack_blame(p, &msg->failed.cause.blame);
	if (pack_more(p))
		pack_account(p, &msg->failed.cause);
}

static void pack_done(struct pack *p, struct msg *msg)
{
	if (pack_more(p))
		pack_bool(p, &msg->done.left);
}

static void pack_leave(struct pack *p, struct msg *msg)
{
	PACK_ENUM(p, msg->leave.why, LEAVE_WHY_COUNT);
	pack_bool(p, &msg->leave.empty);
	if (pack_more(p))
		pack_u8(p, &msg->leave.signal);
}

static void pack_ping(struct pack *p, struct msg *msg)
{
	pack_u64(p, &msg->ping.cookie);
	pack_u64(p, &msg->ping.stamp);
	if (pack_more(p)) {
		pack_i64(p, &msg->ping.wall.offset_ns);
		pack_u64(p, &msg->ping.wall.error_ns);
	}
}

static void pack_formed(struct pack *p, struct msg *msg)
{
	struct msg_formed *formed = &msg->formed;
	pack_round_ref(p, &formed->base);
	pack_bool(p, &formed->coordinator_in_round);
	pack_endpoint_index(p, &formed->coordinator_index);
	pack_u32(p, &formed->nodes);
	pack_u32(p, &formed->group_rank);
	pack_require(p, formed->nodes <= MSG_NODES_MAX && formed->group_rank < formed->nodes);
	pack_u32(p, &formed->rank_base);
	pack_u32(p, &formed->world_size);
	pack_require(p, formed->rank_base <= formed->world_size);
	pack_u32(p, &formed->role_rank_base);
	pack_u32(p, &formed->role_world_size);
	pack_require(p, formed->role_rank_base <= formed->role_world_size &&
				formed->role_world_size <= formed->world_size);
	pack_u32(p, &formed->restarts);
	pack_u32(p, &formed->max_restarts);
	pack_bool(p, &formed->hosts_store);
	pack_u16(p, &formed->master_port);
	pack_text(p, formed->master_host, sizeof(formed->master_host));
	if (pack_more(p))
		pack_stall(p, &formed->stall);
	if (pack_more(p))
		pack_kept_state(p, &formed->kept);
}

static void pack_stop(struct pack *p, struct msg *msg)
{
	PACK_ENUM(p, msg->stop.why, STOP_WHY_COUNT);
	PACK_ENUM(p, msg->stop.ruling, RULING_COUNT);
	pack_cause(p, &msg->stop.cause);
	if (pack_more(p))
		pack_blame(p, &msg->stop.cause.blame);
	if (pack_more(p))
		pack_bool(p, &msg->stop.left);
	if (pack_more(p))
		pack_account(p, &msg->stop.cause);
}

static void pack_closed(struct pack *p, struct msg *msg)
{
	PACK_ENUM(p, msg->closed.ruling, RULING_COUNT);
	pack_require(p, msg->closed.ruling != RULING_NONE);
	pack_u32(p, &msg->closed.restarts);
	pack_cause(p, &msg->closed.cause);
	if (pack_more(p))
		pack_bool(p, &msg->closed.stalled);
	if (pack_more(p))
		pack_bool(p, &msg->closed.left);
	if (pack_more(p)) {
		pack_blame(p, &msg->closed.cause.blame);
		pack_account(p, &msg->closed.cause);
	}
}

static void pack_refused(struct pack *p, struct msg *msg)
{
	PACK_ENUM(p, msg->refused.reason, REFUSED_REASON_COUNT);
	pack_text(p, msg->refused.text, sizeof(msg->refused.text));
}

static void pack_pong(struct pack *p, struct msg *msg)
{
	pack_u64(p, &msg->pong.coordinator_id);
	pack_u64(p, &msg->pong.cookie);
	pack_u64(p, &msg->pong.stamp);
	pack_round_ref(p, &msg->pong.heard);
	pack_round_ref(p, &msg->pong.base);
	pack_bool(p, &msg->pong.wait);
	pack_u32(p, &msg->pong.present);
	pack_u32(p, &msg->pong.missing);
	if (pack_more(p))
		pack_i64(p, &msg->pong.wall_shift_ns);
}

static void pack_peers(struct pack *p, struct msg *msg)
{
	pack_bool(p, &msg->peers.first);
	pack_addrs(p, msg->peers.addrs, &msg->peers.count, MSG_PEERS_MAX);
}

/* ---- leaving together ---- */

static void pack_left_ns(struct pack *p, uint64_t *left_ns)
{
	pack_u64(p, left_ns);
	pack_require(p, *left_ns <= ROUND_MSG_NOTICE_MAX_NS);
}

static void pack_notice(struct pack *p, struct msg *msg)
{
	PACK_ENUM(p, msg->notice.kind, PLAN_KIND_COUNT);
	pack_left_ns(p, &msg->notice.left_ns);
}

static void pack_vote(struct pack *p, struct msg *msg)
{
	struct msg_vote *vote = &msg->vote;
	pack_u32(p, &vote->serial);
	PACK_ENUM(p, vote->phase, PLAN_PHASE_COUNT);
	pack_u64(p, &vote->step);
	pack_u64(p, &vote->at);
	pack_require(p, vote->step <= PLAN_STEP_MAX && vote->at <= PLAN_STEP_MAX + 1);
}

static void pack_plan(struct pack *p, struct msg *msg)
{
	struct stop_plan *plan = &msg->plan.plan;
	pack_u32(p, &plan->serial);
	PACK_ENUM(p, plan->phase, PLAN_PHASE_COUNT);
	PACK_ENUM(p, plan->kind, PLAN_KIND_COUNT);
	pack_u64(p, &plan->step);
	pack_require(p, plan->step <= PLAN_STEP_MAX);
	pack_left_ns(p, &msg->plan.left_ns);
}

/* ---- pairs ---- */

static void pack_pair(struct pack *p, struct msg *msg)
{
	struct msg_pair *pair = &msg->pair;
	pack_u32(p, &pair->serial);
	pack_u64(p, &pair->secret);
	pack_bool(p, &pair->calls);
	pack_u16(p, &pair->port);
	pack_addrs(p, pair->addrs, &pair->addr_count, MSG_PAIR_ADDRS_MAX);
	pack_u16(p, &pair->ms);
	pack_require(p, pair->ms <= MSG_PAIR_MS_MAX);
}

static void pack_paired(struct pack *p, struct msg *msg)
{
	struct msg_paired *paired = &msg->paired;
	pack_u32(p, &paired->serial);
	pack_bool(p, &paired->known);
	pack_u64(p, &paired->bandwidth);
	pack_u64(p, &paired->latency_ns);
}

/* ---- who holds the others up ---- */

static void pack_pace(struct pack *p, struct msg *msg)
{
	struct msg_pace *pace = &msg->pace;
	pack_u64(p, &pace->error_ns);
	pack_u8(p, &pace->count);
	pack_require(p, pace->count <= MSG_MARKS_MAX);
	for (size_t i = 0; i < pace->count && !p->bad; i++) {
		struct step_mark *mark = &pace->marks[i];
		pack_u64(p, &mark->step);
		pack_u64(p, &mark->last_ns);
		pack_u64(p, &mark->mean_ns);
		pack_u32(p, &mark->rank);
		pack_u32(p, &mark->ranks);
		pack_require(p, mark->ranks >= 1 && mark->ranks <= MSG_NPROC_MAX);
	}
	if (!pack_more(p))
		return;
	pack_u64(p, &pace->group);
	pack_u32(p, &pace->size);
	pack_require(p, pace->group ? pace->size >= 2 : pace->size == 0);
}

static void pack_late(struct pack *p, struct msg *msg)
{
	struct straggler_news *news = &msg->late.news;
	pack_u32(p, &news->rank);
	pack_bool(p, &news->begins);
	pack_u32(p, &news->times);
	pack_u32(p, &news->of);
	pack_u64(p, &news->lag_ns);
	pack_require(p, news->times <= news->of);
	if (pack_more(p))
		pack_u64(p, &news->group);
}

/* ---- hangs ---- */

static void pack_signs(struct pack *p, struct msg *msg)
{
	struct hang_signs *signs = &msg->signs.signs;
	PACK_ENUM(p, signs->silence, HANG_LEVEL_COUNT);
	PACK_ENUM(p, signs->broken, HANG_LEVEL_COUNT);
	PACK_ENUM(p, signs->stalled, HANG_LEVEL_COUNT);
	pack_bool(p, &signs->starting);
	pack_bool(p, &signs->works);
	pack_bool(p, &signs->excuse);
	pack_u32(p, &signs->rank);
	pack_bool(p, &msg->signs.looked);
}

static void pack_look(struct pack *p, struct msg *msg)
{
	PACK_ENUM(p, msg->look.kind, HANG_KIND_COUNT);
	pack_bool(p, &msg->look.long_since);
	pack_blame(p, &msg->look.blame);
}

static void pack_found(struct pack *p, struct msg *msg)
{
	PACK_ENUM(p, msg->found.kind, HANG_KIND_COUNT);
	pack_blame(p, &msg->found.blame);
}

/* ---- pairs of all ranks ---- */

static void pack_put(struct pack *p, struct msg *msg)
{
	pack_u32(p, &msg->put.seq);
	pack_bool(p, &msg->put.last);
	pack_borrowed(p, &msg->put.pairs, EXCHANGE_PIECE_MAX);
}

static void pack_union(struct pack *p, struct msg *msg)
{
	pack_u32(p, &msg->all.seq);
	pack_u32(p, &msg->all.size);
	pack_u32(p, &msg->all.at);
	pack_borrowed(p, &msg->all.piece, EXCHANGE_PIECE_MAX);
	pack_require(p, msg->all.at <= msg->all.size &&
				msg->all.piece.len <= msg->all.size - msg->all.at);
}

static void pack_want(struct pack *p, struct msg *msg)
{
	PACK_ENUM(p, msg->want.kind, WANT_KIND_COUNT);
	pack_u32(p, &msg->want.serial);
	pack_u32(p, &msg->want.seq);
	pack_u32(p, &msg->want.at);
	pack_borrowed(p, &msg->want.pair, EXCHANGE_PIECE_MAX);
}

static void pack_value(struct pack *p, struct msg *msg)
{
	pack_u32(p, &msg->value.serial);
	pack_bool(p, &msg->value.found);
	pack_borrowed(p, &msg->value.value, EXCHANGE_PIECE_MAX);
}

/* ---- questions ---- */

static void pack_ask_parts(struct pack *p, struct inquiry *ask)
{
	PACK_ENUM(p, ask->kind, ASK_KIND_COUNT);
	pack_u64(p, &ask->timeout_ns);
	pack_require(p, ask->timeout_ns <= ASK_TIMEOUT_MAX_NS);
	pack_u8(p, &ask->rank_count);
	pack_require(p, ask->rank_count <= ASK_RANKS_MAX);
	for (size_t i = 0; !p->bad && i < ask->rank_count; i++)
		pack_u32(p, &ask->ranks[i]);
	pack_borrowed(p, &ask->args, ASK_ARGS_MAX);
}

static void pack_slot(struct pack *p, uint32_t *number, uint16_t *slot)
{
	pack_u32(p, number);
	pack_u16(p, slot);
	pack_require(p, *slot < ASK_SLOTS_MAX);
}

static void pack_pieces(struct pack *p, uint8_t *pieces)
{
	pack_u8(p, pieces);
	pack_require(p, *pieces <= ASK_PIECES_MAX);
}

static void pack_ask(struct pack *p, struct msg *msg)
{
	pack_u32(p, &msg->ask.id);
	pack_text(p, msg->ask.host, sizeof(msg->ask.host));
	pack_ask_parts(p, &msg->ask.ask);
}

static void pack_taken(struct pack *p, struct msg *msg)
{
	pack_slot(p, &msg->taken.id, &msg->taken.slot);
	pack_pieces(p, &msg->taken.pieces);
}

static void pack_answer(struct pack *p, struct msg *msg)
{
	struct msg_answer *answer = &msg->answer;
	pack_slot(p, &answer->question, &answer->slot);
	pack_bool(p, &answer->last);
	pack_bool(p, &answer->failed);
	pack_borrowed(p, &answer->piece, ASK_PIECE_MAX);
}

static void pack_question(struct pack *p, struct msg *msg)
{
	pack_slot(p, &msg->question.question, &msg->question.slot);
	pack_pieces(p, &msg->question.pieces);
	pack_ask_parts(p, &msg->question.ask);
}

static void pack_grant(struct pack *p, struct msg *msg)
{
	pack_slot(p, &msg->grant.question, &msg->grant.slot);
	pack_pieces(p, &msg->grant.pieces);
}

static void pack_reply(struct pack *p, struct msg *msg)
{
	struct msg_reply *reply = &msg->reply;
	pack_slot(p, &reply->id, &reply->slot);
	pack_bool(p, &reply->last);
	pack_bool(p, &reply->failed);
	pack_rank(p, &reply->group_rank);
	pack_text(p, reply->name, sizeof(reply->name));
	pack_borrowed(p, &reply->piece, ASK_PIECE_MAX);
}

static void pack_missed(struct pack *p, struct msg *msg)
{
	struct msg_missed *missed = &msg->missed;
	pack_u32(p, &missed->id);
	PACK_ENUM(p, missed->why, ASK_MISSED_COUNT);
	pack_rank(p, &missed->group_rank);
	pack_text(p, missed->name, sizeof(missed->name));
}

static void pack_ended(struct pack *p, struct msg *msg)
{
	pack_u32(p, &msg->ended.id);
	PACK_ENUM(p, msg->ended.why, ASK_END_COUNT);
	pack_u32(p, &msg->ended.hosts);
	pack_u32(p, &msg->ended.answered);
}

/* The protocol fixes the numbers: they do not change when a message is added. */
static const struct {
	uint8_t frame_type;
	void (*pack)(struct pack *p, struct msg *msg);
} types[] = {
	[MSG_JOIN] = { FRAME_MESSAGE + 0, pack_join },
	[MSG_FAILED] = { FRAME_MESSAGE + 1, pack_failed },
	[MSG_DONE] = { FRAME_MESSAGE + 2, pack_done },
	[MSG_LEAVE] = { FRAME_MESSAGE + 3, pack_leave },
	[MSG_PING] = { FRAME_MESSAGE + 4, pack_ping },
	[MSG_FORMED] = { FRAME_MESSAGE + 5, pack_formed },
	[MSG_STOP] = { FRAME_MESSAGE + 6, pack_stop },
	[MSG_CLOSED] = { FRAME_MESSAGE + 7, pack_closed },
	[MSG_REFUSED] = { FRAME_MESSAGE + 8, pack_refused },
	[MSG_PONG] = { FRAME_MESSAGE + 9, pack_pong },
	[MSG_PEERS] = { FRAME_MESSAGE + 10, pack_peers },
	[MSG_ASK] = { FRAME_MESSAGE + 11, pack_ask },
	[MSG_TAKEN] = { FRAME_MESSAGE + 12, pack_taken },
	[MSG_ANSWER] = { FRAME_MESSAGE + 13, pack_answer },
	[MSG_QUESTION] = { FRAME_MESSAGE + 14, pack_question },
	[MSG_GRANT] = { FRAME_MESSAGE + 15, pack_grant },
	[MSG_REPLY] = { FRAME_MESSAGE + 16, pack_reply },
	[MSG_MISSED] = { FRAME_MESSAGE + 17, pack_missed },
	[MSG_ENDED] = { FRAME_MESSAGE + 18, pack_ended },
	[MSG_NOTICE] = { FRAME_MESSAGE + 19, pack_notice },
	[MSG_VOTE] = { FRAME_MESSAGE + 20, pack_vote },
	[MSG_PLAN] = { FRAME_MESSAGE + 21, pack_plan },
	[MSG_PAIR] = { FRAME_MESSAGE + 22, pack_pair },
	[MSG_PAIRED] = { FRAME_MESSAGE + 23, pack_paired },
	[MSG_PACE] = { FRAME_MESSAGE + 24, pack_pace },
	[MSG_LATE] = { FRAME_MESSAGE + 25, pack_late },
	[MSG_SIGNS] = { FRAME_MESSAGE + 26, pack_signs },
	[MSG_LOOK] = { FRAME_MESSAGE + 27, pack_look },
	[MSG_FOUND] = { FRAME_MESSAGE + 28, pack_found },
	[MSG_PUT] = { FRAME_MESSAGE + 29, pack_put },
	[MSG_UNION] = { FRAME_MESSAGE + 30, pack_union },
	[MSG_WANT] = { FRAME_MESSAGE + 31, pack_want },
	[MSG_VALUE] = { FRAME_MESSAGE + 32, pack_value },
};
static_assert(ARRAY_LEN(types) == MSG_TYPE_COUNT, "every message needs a row");

static void pack_msg(struct pack *p, struct msg *msg)
{
	pack_ballot(p, &msg->ballot);
	types[msg->type].pack(p, msg);
}

int round_msg_encode(const struct msg *msg, struct buf *out, struct err *err)
{
	unsigned char body[FRAME_BODY_MAX - FRAME_TAG_SIZE];
	struct pack p = pack_writer(body, sizeof(body));
	pack_msg(&p, (struct msg *)msg); /* a walk that writes changes nothing */
	if (p.bad)
		return err_set(err, EINVAL, "cannot send a %s: a value is out of range",
			       msg_type_name(msg->type));
	frame_put(out, types[msg->type].frame_type, body, (size_t)(p.at - body));
	return 0;
}

static int find_type(uint8_t frame_type)
{
	for (int i = 0; i < MSG_TYPE_COUNT; i++)
		if (types[i].frame_type == frame_type)
			return i;
	return -1;
}

int round_msg_decode(const struct frame *frame, struct node_info *node, struct msg *ret_msg,
		     struct err *err)
{
	int type = find_type(frame->type);
	if (type < 0)
		return err_set(err, EPROTO, "%s (%u) where a message was expected",
			       frame_type_name(frame->type), frame->type);
	struct pack p = pack_reader(frame->body.data, frame->body.len);
	struct msg msg;
	memset(&msg, 0, sizeof(msg));
	msg.type = (enum msg_type)type;
	if (msg.type == MSG_JOIN) {
		*node = (struct node_info){ .node_rank = -1 };
		msg.join.node = node;
	}
	pack_msg(&p, &msg);
	if (p.bad)
		return err_set(err, EPROTO, "a %s that is truncated or has a value out of range",
			       msg_type_name(msg.type));
	*ret_msg = msg;
	return 0;
}
