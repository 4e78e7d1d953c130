#include "core/node/node_step.h"

#include <string.h>

#include "base/mem.h"

static struct ask_actions *asks(struct step *s)
{
	return &s->actions->asks;
}

static struct asking_up up_of(const struct node *node)
{
	bool linked = node->link_state == NODE_LINKED;
	return (struct asking_up){ linked ? node->link : 0, linked && node->link_can & CAN_ASK };
}

/* From an agent or an asker to the coordinator here. */
static void ask_coordinator(struct step *s, uint64_t link, const struct msg *msg)
{
	struct node *node = s->node;
	if (!node->questions && msg->type != MSG_ASK)
		return;
	if (!node->questions)
		node->questions = questions_new();
	questions_take(node->questions, &node->coordinator->roster, link, msg, s->now_ns, asks(s));
}

/* From an asker on this host to a coordinator elsewhere, or back. */
static void ask_self(struct step *s, uint64_t link, const struct msg *msg)
{
	struct node *node = s->node;
	if (!node->asking)
		node->asking = NEW(struct asking);
	if (link == node->link)
		asking_take(node->asking, msg, s->now_ns, asks(s));
	else
		asking_ask(node->asking, up_of(node), link, msg, s->now_ns, asks(s));
}

/* A question that was asked before a coordinator began here stays where it went. */
static bool was_passed_on(const struct node *node, uint64_t link, const struct msg *msg)
{
	return node->asking && msg->type == MSG_TAKEN &&
	       asking_passes(node->asking, link, msg->taken.id);
}

void node_take_asking(struct step *s, uint64_t link, const struct msg *msg)
{
	if (link == s->node->link && link && !msg_from_agent(msg->type))
		ask_self(s, link, msg);
	else if (s->node->coordinator && !was_passed_on(s->node, link, msg))
		ask_coordinator(s, link, msg);
	else
		ask_self(s, link, msg);
}

static void pass_ask(struct step *s, uint64_t link, const struct msg *msg)
{
	if (link >= NODE_LOCAL_LINK) {
		if (link == s->node->link)
			node_take_asking(s, link, msg);
		return;
	}
	node_act_msg(s, link == ASK_THIS_HOST ? NODE_DO_ASKED : NODE_DO_SEND, link, msg);
}

/* Messages within the process may cause more. */
void node_pass_asks(struct step *s)
{
	for (size_t i = 0; i < asks(s)->count; i++) {
		uint64_t link = asks(s)->items[i].link;
		struct msg msg;
		memcpy(&msg, &asks(s)->items[i].msg, msg_size(asks(s)->items[i].msg.type));
		pass_ask(s, link, &msg);
	}
	asks(s)->count = 0;
}

void node_end_asking(struct step *s, uint64_t link)
{
	struct node *node = s->node;
	if (node->questions)
		questions_link_down(node->questions, &node->coordinator->roster, link, s->now_ns,
				    asks(s));
	if (node->asking && link == node->link)
		asking_up_down(node->asking, asks(s));
	else if (node->asking)
		asking_asker_down(node->asking, up_of(node), link, asks(s));
}

/* Questions arise before the machines exchange their actions and after that, so a step leaves at
 * most one table of them. */
void node_drop_questions(struct step *s)
{
	struct node *node = s->node;
	if (!node->questions)
		return;
	questions_give_up(node->questions, asks(s));
	s->actions->left = node->questions;
	node->questions = NULL;
}

void node_asks_timer(struct step *s)
{
	struct node *node = s->node;
	if (node->questions)
		questions_timer(node->questions, &node->coordinator->roster, s->now_ns, asks(s));
	if (node->asking)
		asking_timer(node->asking, up_of(node), s->now_ns, asks(s));
}

void node_on_piece(struct step *s)
{
	if (s->node->asking)
		asking_answer(s->node->asking, up_of(s->node), s->event->msg, asks(s));
}
