/* The coordinator with any sequence of well-formed messages, ends of links and timers, as hostile
 * peers that know the protocol could make it. Nothing crashes, nothing is sent on a link that has
 * ended, a coordinator that has stepped down does nothing more, and no deadline stays in the past.
 *
 * The first bytes choose the job. Then each event is an op byte and what it needs. */
#include <stdlib.h>
#include <string.h>

#include "core/rounds/coordinator.h"
#include "rounds_draw.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LINKS 6
#define TIMERS_MAX 8 /* at one instant: then no deadline is left there */

struct play {
	struct input in;
	struct coordinator c;
	struct coordinator_actions actions;
	uint64_t now_ns;
	uint64_t links[LINKS]; /* ids of those that are up */
	uint64_t greeted_ns[LINKS];
	uint64_t next_link;
};

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

static void receive(struct play *p, size_t slot)
{
	struct node_info node;
	struct msg msg = { .type = MSG_DONE };
	if (!p->links[slot]) {
		p->links[slot] = ++p->next_link;
		p->greeted_ns[slot] = p->now_ns - draw(&p->in, 8) * NS_PER_S;
	}
	draw_msg(&p->in, &(struct known){ p->c.roster.heard, p->c.roster.base }, p->now_ns, &msg,
		 &node);
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
	config.quorum = (enum quorum_rule)draw(&p.in, QUORUM_LEASE + 1);
	config.epoch = draw(&p.in, 2);
	config.until_ns = p.now_ns + draw(&p.in, 4) * 10 * NS_PER_S;
	config.past = (struct recorded_end){ draw(&p.in, 2) << BALLOT_SALT_BITS, RULING_DONE };
	coordinator_init(&p.c, &config);
	while (p.in.at < p.in.end) {
		uint32_t op = draw(&p.in, 16);
		if (op == 0)
			step(&p, &(struct coordinator_event){ .type = COORDINATOR_SUPERSEDED });
		else if (op == 15)
			step(&p, &(struct coordinator_event){
					 .type = COORDINATOR_LEASE,
					 .until_ns = p.now_ns + draw(&p.in, 4) * 10 * NS_PER_S });
		else if (op == 14)
			step(&p, &(struct coordinator_event){ .type = COORDINATOR_RECORDED });
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
