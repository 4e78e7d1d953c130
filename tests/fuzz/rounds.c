/* The coordinator with any sequence of well-formed messages, ends of links and timers, as hostile
 * peers that know the protocol could make it. Nothing crashes, nothing is sent on a link that has
 * ended, a coordinator that has stepped down does nothing more, and no deadline stays in the past.
 *
 * The first byte chooses the job. Then each event is an op byte and what it needs; values are drawn
 * from few, so that they meet. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "core/rounds/coordinator.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LINKS 6
#define IDS 5
#define TIMERS_MAX 8 /* at one instant: then no deadline is left there */

struct input {
	const uint8_t *at, *end;
};

static uint32_t draw(struct input *in, uint32_t below)
{
	return in->at < in->end ? *in->at++ % below : 0;
}

struct play {
	struct input in;
	struct coordinator c;
	struct coordinator_actions actions;
	uint64_t now_ns;
	uint64_t links[LINKS]; /* ids of those that are up */
	uint64_t greeted_ns[LINKS];
	uint64_t next_link;
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

static void draw_memory(struct play *p, struct memory *memory)
{
	struct input *in = &p->in;
	bool current = draw(in, 2);
	memory->heard = current ? p->c.roster.heard : draw_ref(in);
	memory->base = current ? p->c.roster.base : draw_ref(in);
	memory->member_of[0] = draw(in, 2) ? memory->heard.ballot : draw_ballot(in);
	memory->member_of[1] = draw(in, 2) ? memory->base.ballot : draw_ballot(in);
	memory->coordinator_in_heard = draw(in, 2);
	memory->coordinator_died = draw(in, 2);
	memory->coordinator_index = (int32_t)draw(in, 3) - 1;
	memory->joined_id = draw(in, 2);
	memory->group_rank = (int32_t)draw(in, 4) - 1;
	memory->restarts = draw(in, 4);
	memory->work = (enum work_state)draw(in, WORK_STATE_COUNT);
	memory->ruling = (enum ruling)draw(in, RULING_COUNT);
}

static void draw_node(struct play *p, struct node_info *node)
{
	struct input *in = &p->in;
	bool odd = draw(in, 16) == 0;
	*node = (struct node_info){ .id = { 1 + draw(in, IDS), 0 },
				    .min_nodes = 1 + odd,
				    .max_nodes = 3 + odd,
				    .nproc = 1 + draw(in, 3),
				    .node_rank = (int32_t)draw(in, 5) - 1,
				    .max_restarts = draw(in, 3),
				    .period_ns = draw(in, 8) ? NS_PER_S : 0,
				    .lease_periods = 4,
				    .store_port = 1 };
}

static void check_actions(struct play *p, bool deposed)
{
	if (deposed && p->actions.count)
		abort();
	for (size_t i = 0; i < p->actions.count; i++) {
		const struct coordinator_action *action = &p->actions.items[i];
		if (action->type != COORDINATOR_SEND && action->type != COORDINATOR_HANG_UP)
			continue;
		size_t slot = 0;
		while (slot < LINKS && p->links[slot] != action->link)
			slot++;
		if (slot == LINKS && action->type == COORDINATOR_SEND)
			abort();
		if (slot < LINKS && action->type == COORDINATOR_HANG_UP)
			p->links[slot] = 0;
	}
}

static void step(struct play *p, const struct coordinator_event *event)
{
	bool deposed = p->c.state == COORDINATOR_DEPOSED;
	p->actions.count = 0;
	coordinator_step(&p->c, event, p->now_ns, &p->actions);
	check_actions(p, deposed);
}

/* Time passes. Due timers are handled, late or not, and none stays due. */
static void pass_time(struct play *p, uint64_t ns)
{
	p->now_ns += ns;
	for (int i = 0; coordinator_deadline_ns(&p->c) <= p->now_ns; i++) {
		if (i == TIMERS_MAX)
			abort();
		step(p, &(struct coordinator_event){ .type = COORDINATOR_TIMER });
	}
}

static void draw_msg(struct play *p, struct msg *msg, struct node_info *node)
{
	struct input *in = &p->in;
	msg->type = (enum msg_type)draw(in, MSG_TYPE_COUNT);
	msg->ballot = draw(in, 4) ? p->c.roster.heard.ballot : draw_ballot(in);
	switch (msg->type) {
	case MSG_JOIN:
		draw_node(p, node);
		msg->join.node = node;
		msg->join.attempt = draw(in, 4);
		draw_memory(p, &msg->join.memory);
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
		msg->ping.stamp = p->now_ns - draw(in, 8) * NS_PER_S;
		break;
	default: /* of a coordinator, which has nothing to say here */
		break;
	}
}

static void receive(struct play *p, size_t slot)
{
	struct node_info node;
	struct msg msg = { .type = MSG_DONE };
	if (!p->links[slot]) {
		p->links[slot] = ++p->next_link;
		p->greeted_ns[slot] = p->now_ns - draw(&p->in, 8) * NS_PER_S;
	}
	draw_msg(p, &msg, &node);
	step(p, &(struct coordinator_event){ .type = COORDINATOR_MSG,
					     .link = p->links[slot],
					     .msg = &msg,
					     .greeted_ns = p->greeted_ns[slot] });
}

static void end_link(struct play *p, size_t slot)
{
	uint64_t link = p->links[slot];
	p->links[slot] = 0;
	if (link)
		step(p, &(struct coordinator_event){ .type = COORDINATOR_LINK_DOWN,
						     .link = link,
						     .dead = draw(&p->in, 2) });
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct play p = { .in = { data, data + size }, .now_ns = 1000 * NS_PER_S };
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	config.id = 1;
	config.quorum = draw(&p.in, 2) ? QUORUM_MAJORITY : QUORUM_ANY;
	config.epoch = draw(&p.in, 2);
	coordinator_init(&p.c, &config);
	while (p.in.at < p.in.end) {
		uint32_t op = draw(&p.in, 16);
		if (op == 0)
			step(&p, &(struct coordinator_event){ .type = COORDINATOR_SUPERSEDED });
		else if (op < 3)
			end_link(&p, draw(&p.in, LINKS));
		else if (op < 6)
			pass_time(&p, draw(&p.in, 64) * (NS_PER_S / 4));
		else
			receive(&p, draw(&p.in, LINKS));
	}
	coordinator_actions_done(&p.actions);
	coordinator_done(&p.c);
	return 0;
}
