/* Questions to the whole job with any sequence of well-formed messages, ends of links and timers,
 * as hostile askers and agents that know the protocol could make it. Nothing crashes, what is under
 * way stays within its bounds, an asker gets only what belongs to its questions, and no question
 * outlives its deadline.
 *
 * Each event is an op byte and what it needs; values are drawn from few, so that they meet. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "core/rounds/questions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HOSTS 80 /* more than a question about states asks at a time */
#define ASKERS 3
#define FIRST_ASKER 1000
#define UNTAKEN_MAX (64 * 4 + 32 * 8 + 1024 + 256 * 2 + 4096) /* per question, of any kind */

struct input {
	const uint8_t *at, *end;
};

static uint32_t draw(struct input *in, uint32_t below)
{
	return in->at < in->end ? *in->at++ % below : 0;
}

struct play {
	struct input in;
	struct questions *questions;
	struct roster roster;
	struct ask_actions out;
	uint64_t now_ns;
	uint64_t untaken[ASKERS];
	struct msg_question asked[HOSTS]; /* the last one of each */
};

static void check(struct play *p)
{
	for (size_t i = 0; i < p->out.count; i++) {
		const struct ask_action *action = &p->out.items[i];
		bool to_asker = action->msg.type >= MSG_REPLY;
		if (to_asker != (action->link >= FIRST_ASKER))
			abort();
		if (action->msg.type == MSG_REPLY &&
		    ++p->untaken[action->link - FIRST_ASKER] > QUESTIONS_MAX * UNTAKEN_MAX)
			abort();
		if (action->msg.type == MSG_QUESTION)
			p->asked[action->link - 1] = action->msg.question;
	}
	p->out.count = 0;
}

static void take(struct play *p, uint64_t link, const struct msg *msg)
{
	questions_take(p->questions, &p->roster, link, msg, p->now_ns, &p->out);
	check(p);
}

static void join(struct play *p, uint32_t host)
{
	struct node_info node = { .id = { host + 1, 0 },
				  .min_nodes = 1,
				  .max_nodes = HOSTS,
				  .nproc = 2,
				  .node_rank = -1,
				  .can = host % 7 != 3 ? CAN_ASK : 0 };
	snprintf(node.name, sizeof(node.name), "h%u", host % 5);
	struct msg_join message = { .node = &node };
	struct member *member = roster_join(&p->roster, host + 1, &message, p->now_ns, p->now_ns);
	member->in_round = host % 3 != 0;
	member->group_rank = host;
	member->rank_base = 2 * host;
	roster_set_status(&p->roster, member, MEMBER_ACTIVE);
}

static void ask(struct play *p)
{
	struct input *in = &p->in;
	struct msg msg = { .type = MSG_ASK };
	msg.ask.id = draw(in, 4);
	msg.ask.ask.kind = (enum ask_kind)draw(in, ASK_KIND_COUNT);
	msg.ask.ask.timeout_ns = draw(in, 4) * NS_PER_S;
	msg.ask.ask.rank_count = (uint8_t)draw(in, 3);
	for (size_t i = 0; i < msg.ask.ask.rank_count; i++)
		msg.ask.ask.ranks[i] = draw(in, 2 * HOSTS);
	if (draw(in, 4) == 0)
		snprintf(msg.ask.host, sizeof(msg.ask.host), "h%u", draw(in, 6));
	msg.ask.ask.args = bytes_str(draw(in, 2) ? "arguments" : "");
	take(p, FIRST_ASKER + draw(in, ASKERS), &msg);
}

static void answer(struct play *p)
{
	struct input *in = &p->in;
	uint32_t host = draw(in, HOSTS);
	struct msg msg = { .type = MSG_ANSWER };
	msg.answer = (struct msg_answer){
		.question = p->asked[host].question + (draw(in, 16) == 0),
		.slot = (uint16_t)(p->asked[host].slot + (draw(in, 16) == 0)),
		.last = draw(in, 2),
		.piece = bytes_str("piece"),
	};
	for (uint32_t pieces = 1 + draw(in, 12); pieces > 0; pieces--)
		take(p, host + 1, &msg);
}

static void taken(struct play *p)
{
	struct input *in = &p->in;
	uint64_t asker = draw(in, ASKERS);
	struct msg msg = { .type = MSG_TAKEN };
	msg.taken = (struct msg_taken){ draw(in, 4), (uint16_t)draw(in, 70), (uint8_t)draw(in, 9) };
	p->untaken[asker] -= MIN(p->untaken[asker], (uint64_t)msg.taken.pieces);
	take(p, FIRST_ASKER + asker, &msg);
}

static void end_link(struct play *p)
{
	uint32_t which = draw(&p->in, HOSTS + ASKERS);
	uint64_t link = which < HOSTS ? which + 1 : FIRST_ASKER + which - HOSTS;
	struct member *member = roster_by_link(&p->roster, link);
	if (member)
		roster_part(&p->roster, member, false);
	questions_link_down(p->questions, &p->roster, link, p->now_ns, &p->out);
	check(p);
	if (which < HOSTS && draw(&p->in, 2))
		join(p, which);
}

static void pass_time(struct play *p, uint64_t ns)
{
	p->now_ns += ns;
	if (questions_deadline_ns(p->questions) > p->now_ns)
		return;
	questions_timer(p->questions, &p->roster, p->now_ns, &p->out);
	check(p);
	if (questions_deadline_ns(p->questions) <= p->now_ns)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const ops[])(struct play *) = { ask, answer, answer, taken, taken, end_link };
	struct play p = { .in = { data, data + size }, .now_ns = 1000 * NS_PER_S };
	p.questions = questions_new();
	roster_init(&p.roster);
	for (uint32_t i = 0; i < HOSTS; i++)
		join(&p, i);
	while (p.in.at < p.in.end) {
		uint32_t op = draw(&p.in, ARRAY_LEN(ops) + 1);
		if (op < ARRAY_LEN(ops))
			ops[op](&p);
		else
			pass_time(&p, draw(&p.in, 16) * (NS_PER_S / 4));
	}
	pass_time(&p, 2 * ASK_TIMEOUT_MAX_NS);
	if (questions_deadline_ns(p.questions) != NS_NEVER)
		abort();
	questions_free(p.questions);
	roster_done(&p.roster);
	ask_actions_done(&p.out);
	return 0;
}
