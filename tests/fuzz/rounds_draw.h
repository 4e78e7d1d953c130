/* Values for the machines of core/rounds, drawn from the fuzzer's bytes. There are few of each, so
 * that they meet. */
#ifndef FUZZ_ROUNDS_DRAW_H
#define FUZZ_ROUNDS_DRAW_H

#include "base/clock.h"
#include "core/rounds/msg.h"

#define DRAW_IDS 5

struct input {
	const uint8_t *at, *end;
};

static uint32_t draw(struct input *in, uint32_t below)
{
	return in->at < in->end ? *in->at++ % below : 0;
}

/* The rounds that the machine knows, which a peer may know, too. */
struct known {
	struct round_ref heard, base;
};

static struct ballot draw_ballot(struct input *in)
{
	uint64_t epoch = draw(in, 4), round = draw(in, 4);
	if (round == 3)
		return (struct ballot){ BALLOT_MAX, BALLOT_MAX };
	return round ? (struct ballot){ epoch << BALLOT_SALT_BITS, round } : BALLOT_NONE;
}

static struct round_ref draw_ref(struct input *in)
{
	struct ballot ballot = draw_ballot(in);
	return (struct round_ref){ ballot, ballot_is_none(ballot) ? 0 : 1 + draw(in, 5) };
}

static void draw_memory(struct input *in, const struct known *known, struct memory *memory)
{
	bool current = draw(in, 2);
	memory->heard = current ? known->heard : draw_ref(in);
	memory->base = current ? known->base : draw_ref(in);
	memory->member_of[0] = draw(in, 2) ? memory->heard.ballot : draw_ballot(in);
	memory->member_of[1] = draw(in, 2) ? memory->base.ballot : draw_ballot(in);
	memory->coordinator_in_heard = draw(in, 2);
	memory->coordinator_died = draw(in, 2);
	memory->coordinator_index = (int32_t)draw(in, 3) - 1;
	memory->joined_id = draw(in, 2);
	memory->group_rank = (int32_t)draw(in, 4) - 1;
	memory->restarts = draw(in, 4);
	memory->kept.world_size = draw(in, 4);
	for (size_t i = 0; i < KEPT_STATES; i++)
		memory->kept.states[i] = (struct kept_state){ draw_ballot(in), draw(in, 3) };
	memory->work = (enum work_state)draw(in, WORK_STATE_COUNT);
	memory->ruling = (enum ruling)draw(in, RULING_COUNT);
}

static void draw_node(struct input *in, struct node_info *node)
{
	bool odd = draw(in, 16) == 0;
	*node = (struct node_info){ .id = { 1 + draw(in, DRAW_IDS), 0 },
				    .min_nodes = 1 + odd,
				    .max_nodes = 3 + odd,
				    .nproc = 1 + draw(in, 3),
				    .node_rank = (int32_t)draw(in, 5) - 1,
				    .max_restarts = draw(in, 3),
				    .period_ns = draw(in, 8) ? NS_PER_S : 0,
				    .lease_periods = 4,
				    .store_port = 1 };
}

/* Of an agent, or without contents. Questions go elsewhere. */
static void draw_msg(struct input *in, const struct known *known, uint64_t now_ns, struct msg *msg,
		     struct node_info *node)
{
	msg->type = (enum msg_type)draw(in, MSG_ASK);
	msg->ballot = draw(in, 4) ? known->heard.ballot : draw_ballot(in);
	switch (msg->type) {
	case MSG_JOIN:
		draw_node(in, node);
		msg->join.node = node;
		msg->join.attempt = draw(in, 4);
		draw_memory(in, known, &msg->join.memory);
		break;
	case MSG_FAILED:
		msg->failed.cause.no_restart = draw(in, 2);
		msg->failed.cause.age_ns = draw(in, 4) * NS_PER_S;
		break;
	case MSG_LEAVE:
		msg->leave.why = (enum leave_why)draw(in, LEAVE_WHY_COUNT);
		msg->leave.empty = draw(in, 2);
		break;
	case MSG_PING:
		msg->ping.stamp = now_ns - draw(in, 8) * NS_PER_S;
		msg->ping.wall.error_ns = draw(in, 2);
		break;
	case MSG_PACE:
		msg->pace.group = draw(in, 3);
		msg->pace.size = msg->pace.group ? 2 + draw(in, 3) : 0;
		msg->pace.error_ns = draw(in, 2) ? draw(in, 8) * NS_PER_MS : UINT64_MAX;
		msg->pace.count = (uint8_t)draw(in, MSG_MARKS_MAX + 1);
		for (size_t i = 0; i < msg->pace.count; i++)
			msg->pace.marks[i] = (struct step_mark){
				.step = draw(in, 128),
				.last_ns = draw(in, 2) ? draw(in, 255) * NS_PER_MS : UINT64_MAX,
				.mean_ns = draw(in, 2) ? draw(in, 255) * NS_PER_MS : 0,
				.rank = draw(in, 8),
				.ranks = 1 + draw(in, 3),
			};
		break;
	default: /* of a coordinator, which has nothing to say here */
		break;
	}
}

#endif
