#include "core/node/node_step.h"

#include <stdlib.h>

#include "base/mem.h"

/* ---- the end ---- */

void node_release(struct step *s)
{
	s->node->ending = false;
	s->node->tell_stay_ns = NS_NEVER;
	*node_act(s, NODE_DO_HOST) = s->node->exit;
}

/* Without a connection, members that are stopped as well would kill their workers, which have time
 * to end. */
static uint32_t others_that_leave(const struct node *node)
{
	const struct roster *roster = &node->coordinator->roster;
	uint32_t count = 0;
	for (size_t i = 0; i < roster->count; i++) {
		const struct member *member = roster->members[i];
		count += member->status == MEMBER_LEAVING && member->link &&
			 !agent_id_eq(member->id, node->config.agent.node.id);
	}
	return count;
}

/* A process that coordinates stays until all others know that the job is over; when its user stops
 * it, until those that leave too have gone. rule: linger */
bool node_stays(const struct node *node)
{
	const struct coordinator *c = node->coordinator;
	if (c && c->state == COORDINATOR_CLOSED)
		return !node->finished;
	return c && node->exit.agent.outcome.kind == OUTCOME_SIGNAL && others_that_leave(node) > 0;
}

void node_tell_stay(struct step *s)
{
	struct node *node = s->node;
	node->tell_stay_ns = NS_NEVER;
	if (node->ending && node->coordinator->state != COORDINATOR_CLOSED)
		node_act(s, NODE_DO_NOTE)->note =
			(struct note){ .kind = NOTE_STAYS, .nodes = others_that_leave(node) };
}

void node_leave(struct step *s, const struct agent_action *action)
{
	struct node *node = s->node;
	node->exit =
		(struct node_action){ .type = NODE_DO_HOST, .linked = s->linked, .agent = *action };
	search_seek_at(&node->search, NS_NEVER);
	node->ending = node_stays(node);
	if (!node->ending)
		node_release(s);
	else
		node->tell_stay_ns = ns_add(s->now_ns, NODE_TELL_STAY_NS);
}

static void exit_apart(struct step *s, const struct coordinator *c)
{
	struct outcome *outcome;
	struct agent_action *action = &node_act(s, NODE_DO_HOST)->agent;
	*action = (struct agent_action){ .type = AGENT_EXIT };
	outcome = &action->outcome;
	outcome->kind = !c			   ? OUTCOME_UNKNOWN
			: c->ruling == RULING_DONE ? OUTCOME_DONE
						   : OUTCOME_FAILED;
	if (outcome->kind != OUTCOME_FAILED)
		return;
	outcome->has_cause = c->has_cause;
	outcome->cause = c->cause;
}

/* ---- its life ---- */

/* A coordinator that has closed the job is not replaced: agents may still ask it. rule: gives-way
 */
void node_begin_coordinator(struct step *s, uint64_t epoch, int32_t index)
{
	struct node *node = s->node;
	if (node->coordinator)
		return;
	struct coordinator_config config = node->config.coordinator;
	config.epoch = epoch;
	config.until_ns = node->search.term.until_ns;
	config.fence_ns = node_death_ns(&node->config.agent.node);
	config.past = node->search.term.past;
	config.after_ns = node->workers_until_ns;
	config.index = index;
	config.local = node->config.agent.node.id;
	config.id += node->coordinators;
	config.salt += (uint32_t)node->coordinators;
	node->coordinators++;
	node->finished = false;
	node->coordinator = NEW(struct coordinator);
	coordinator_init(node->coordinator, &config);
	node_act(s, NODE_DO_NOTE)->note = (struct note){ .kind = NOTE_COORDINATES };
	if (node_has_agent(node) && !node_agent_ended(node) && node->link_state == NODE_UNLINKED)
		node_attach(s);
}

void node_free_coordinator(struct node *node)
{
	if (node->coordinator)
		coordinator_done(node->coordinator);
	free(node->coordinator);
	node->coordinator = NULL;
}

void node_give_up(struct step *s, const struct stepped_down *down)
{
	struct node *node = s->node;
	node->workers_until_ns = MAX(node->workers_until_ns, down->workers_until_ns);
	if (down->again)
		search_again(&node->search);
	node_drop_questions(s);
	node_free_coordinator(node);
	node_act(s, NODE_DO_HANG_UP_ALL);
	if (node_is_local(node))
		node_lose_link(s, true);
	else if (node->link_state == NODE_UNLINKED)
		node_seek_at(node, s->now_ns);
	if (!node_has_agent(node))
		exit_apart(s, NULL);
}

void node_finish(struct step *s)
{
	s->node->finished = true;
	if (!node_has_agent(s->node))
		exit_apart(s, s->node->coordinator);
}
