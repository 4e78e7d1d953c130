/* Shared by the parts of the node only: node.c (events), node_link.c (the agent's link),
 * node_coordinator.c (the coordinator here), node_search.c (the search for one), node_exchange.c
 * (what they want of each other) and node_asks.c (questions to the whole job). */
#ifndef CORE_NODE_NODE_STEP_H
#define CORE_NODE_NODE_STEP_H

#include "core/node/node.h"

/* One event, and the actions that follow from it. */
struct step {
	struct node *node;
	const struct node_event *event;
	uint64_t now_ns;
	struct node_actions *actions;
	bool linked; /* when the step began */
};

typedef void node_handler(struct step *s);

static inline bool node_has_agent(const struct node *node)
{
	return node->config.kind != NODE_APART;
}

static inline bool node_agent_ended(const struct node *node)
{
	return node->agent.state == AGENT_ENDED;
}

/* Whether the agent's link is within the process. */
static inline bool node_is_local(const struct node *node)
{
	return node->link >= NODE_LOCAL_LINK;
}

/* Borrowed until the next action. */
struct node_action *node_act(struct step *s, enum node_action_type type);
void node_act_msg(struct step *s, enum node_action_type type, uint64_t link, const struct msg *msg);

/* Their actions wait for node_exchange(). Without a coordinator here nothing is told. */
void node_tell_agent(struct step *s, const struct agent_event *event);
void node_tell_coordinator(struct step *s, const struct coordinator_event *event);

/* Passes the actions of agent and coordinator on, until there are none. */
void node_exchange(struct step *s);

/* ---- the agent's link ---- */

/* To the coordinator here. */
void node_attach(struct step *s);

/* To one elsewhere, as NODE_DO_CONNECT says; nothing if there is a link or no need of one. */
void node_link_to(struct step *s, int32_t index);

/* Nothing where there is no link. */
void node_send_up(struct step *s, const struct msg *msg);

void node_hang_up(struct step *s);
void node_lose_link(struct step *s, bool dead); /* dead: as in core/rounds/agent.h */

node_handler node_on_link_up, node_on_not_linked, node_on_link_down, node_on_store;

/* ---- the coordinator here ---- */

/* Begins one if there is none. */
void node_begin_coordinator(struct step *s, uint64_t epoch, int32_t index);

/* It has stepped down and closed its links; some agents may not have joined it yet. */
void node_give_up(struct step *s, const struct stepped_down *down);

/* All know that the job is over. */
void node_finish(struct step *s);

void node_free_coordinator(struct node *node);

/* The agent's exit: at once, or held back while node_stays(). */
bool node_stays(const struct node *node);
void node_tell_stay(struct step *s); /* at tell_stay_ns */
void node_leave(struct step *s, const struct agent_action *action);
void node_release(struct step *s);

/* ---- the search ---- */

static inline void node_seek_at(struct node *node, uint64_t ns)
{
	if (node_has_agent(node) && !node_agent_ended(node))
		search_seek_at(&node->search, ns);
}

void node_seek(struct step *s); /* at search.seek_ns */
void node_search_timer(struct step *s);

node_handler node_on_listening, node_on_answer, node_on_term, node_on_recorded;

/* ---- questions ---- */

void node_take_asking(struct step *s, uint64_t link, const struct msg *msg);

/* A link of an agent elsewhere or of an asker has ended, or the one within the process. */
void node_end_asking(struct step *s, uint64_t link);

/* The coordinator here gives up. */
void node_drop_questions(struct step *s);

void node_asks_timer(struct step *s);
void node_pass_asks(struct step *s); /* at the end of the step */

node_handler node_on_piece;

#endif
