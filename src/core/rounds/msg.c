#include "core/rounds/msg.h"

#include <string.h>

#define UP_TO(member) (offsetof(struct msg, member) + sizeof(((struct msg *)NULL)->member))

static const struct {
	const char *name;
	bool from_agent;
	size_t size;
} types[] = {
	[MSG_JOIN] = { "JOIN", true, UP_TO(join) },
	[MSG_FAILED] = { "FAILED", true, UP_TO(failed) },
	[MSG_DONE] = { "DONE", true, UP_TO(done) },
	[MSG_LEAVE] = { "LEAVE", true, UP_TO(leave) },
	[MSG_PING] = { "PING", true, UP_TO(ping) },
	[MSG_FORMED] = { "FORMED", false, UP_TO(formed) },
	[MSG_STOP] = { "STOP", false, UP_TO(stop) },
	[MSG_CLOSED] = { "CLOSED", false, UP_TO(closed) },
	[MSG_REFUSED] = { "REFUSED", false, UP_TO(refused) },
	[MSG_PONG] = { "PONG", false, UP_TO(pong) },
	[MSG_PEERS] = { "PEERS", false, UP_TO(peers) },
	[MSG_NOTICE] = { "NOTICE", true, UP_TO(notice) },
	[MSG_VOTE] = { "VOTE", true, UP_TO(vote) },
	[MSG_PLAN] = { "PLAN", false, UP_TO(plan) },
	[MSG_PAIR] = { "PAIR", false, UP_TO(pair) },
	[MSG_PAIRED] = { "PAIRED", true, UP_TO(paired) },
	[MSG_PACE] = { "PACE", true, UP_TO(pace) },
	[MSG_LATE] = { "LATE", false, UP_TO(late) },
	[MSG_SIGNS] = { "SIGNS", true, UP_TO(signs) },
	[MSG_LOOK] = { "LOOK", false, UP_TO(look) },
	[MSG_FOUND] = { "FOUND", true, UP_TO(found) },
	[MSG_PUT] = { "PUT", true, UP_TO(put) },
	[MSG_UNION] = { "UNION", false, UP_TO(all) },
	[MSG_WANT] = { "WANT", true, UP_TO(want) },
	[MSG_VALUE] = { "VALUE", false, UP_TO(value) },
	[MSG_ASK] = { "ASK", true, UP_TO(ask) },
	[MSG_TAKEN] = { "TAKEN", true, UP_TO(taken) },
	[MSG_ANSWER] = { "ANSWER", true, UP_TO(answer) },
	[MSG_QUESTION] = { "QUESTION", false, UP_TO(question) },
	[MSG_GRANT] = { "GRANT", false, UP_TO(grant) },
	[MSG_REPLY] = { "REPLY", false, UP_TO(reply) },
	[MSG_MISSED] = { "MISSED", false, UP_TO(missed) },
	[MSG_ENDED] = { "ENDED", false, UP_TO(ended) },
};
static_assert(ARRAY_LEN(types) == MSG_TYPE_COUNT, "every message needs a row");

void node_add_addr(struct node_info *node, const struct msg_addr *addr)
{
	size_t at = 0;
	while (at < node->addr_count && memcmp(&node->addrs[at], addr, sizeof(*addr)) != 0)
		at++;
	if (at == node->addr_count && at < MSG_ADDRS_MAX)
		node->addr_count++;
	at = MIN(at, (size_t)MSG_ADDRS_MAX - 1);
	memmove(&node->addrs[1], &node->addrs[0], at * sizeof(*addr));
	node->addrs[0] = *addr;
}

bool cause_is_same(const struct cause *a, const struct cause *b)
{
	return a->reason == b->reason && a->rank == b->rank && a->pid == b->pid &&
	       strcmp(a->name, b->name) == 0;
}

void memory_hear(struct memory *memory, const struct round_ref *heard)
{
	memory->heard = *heard;
	memory->reached = 0;
	memory->work = WORK_IDLE;
	memory->ruling = RULING_NONE;
	memory->left = false;
}

void memory_enter(struct memory *memory, const struct round_ref *heard,
		  const struct round_ref *base)
{
	struct ballot oldest = memory->member_of[MEMORY_ROUNDS - 1];
	memmove(&memory->member_of[1], &memory->member_of[0],
		(MEMORY_ROUNDS - 1) * sizeof(memory->member_of[0]));
	/* While the base counts, its members must remember that they were in it. */
	if (!ballot_is_none(oldest) && ballot_eq(oldest, base->ballot))
		memory->member_of[MEMORY_ROUNDS - 1] = oldest;
	memory->member_of[0] = heard->ballot;
	memory->heard = *heard;
	memory->base = *base;
	memory->coordinator_died = false;
	memory->reached = 0;
	memory->work = WORK_IDLE;
	memory->ruling = RULING_NONE;
	memory->left = false;
}

void memory_keep(struct memory *memory, const struct msg_formed *formed)
{
	memory->kept = (struct kept){ .states = { formed->kept },
				      .rank_base = formed->rank_base,
				      .world_size = formed->world_size };
}

const char *msg_type_name(enum msg_type type)
{
	return types[type].name;
}

bool msg_from_agent(enum msg_type type)
{
	return types[type].from_agent;
}

struct bytes *msg_borrowed(struct msg *msg)
{
	switch (msg->type) {
	case MSG_ASK:
		return &msg->ask.ask.args;
	case MSG_QUESTION:
		return &msg->question.ask.args;
	case MSG_ANSWER:
		return &msg->answer.piece;
	case MSG_REPLY:
		return &msg->reply.piece;
	case MSG_PUT:
		return &msg->put.pairs;
	case MSG_UNION:
		return &msg->all.piece;
	case MSG_WANT:
		return &msg->want.pair;
	case MSG_VALUE:
		return &msg->value.value;
	default:
		return NULL;
	}
}

size_t msg_size(enum msg_type type)
{
	return types[type].size;
}
