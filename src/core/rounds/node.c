#include "core/rounds/node.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define ACTIONS_KEPT 64 /* a longer list is freed after the step that needed it */

struct step {
	struct node *node;
	const struct node_event *event;
	uint64_t now_ns;
	struct node_actions *actions;
	bool linked; /* when the step began */
};

typedef void handler(struct step *s);

static struct node_action *act(struct step *s, enum node_action_type type)
{
	struct node_actions *actions = s->actions;
	ARRAY_RESERVE(actions->items, actions->count, actions->cap);
	struct node_action *action = &actions->items[actions->count++];
	action->type = type;
	action->link = 0;
	action->linked = false;
	return action;
}

static void tell_agent(struct step *s, const struct agent_event *event)
{
	agent_step(&s->node->agent, event, s->now_ns, &s->actions->from_agent);
}

static void tell_coordinator(struct step *s, const struct coordinator_event *event)
{
	if (s->node->coordinator)
		coordinator_step(s->node->coordinator, event, s->now_ns,
				 &s->actions->from_coordinator);
}

static bool has_agent(const struct node *node)
{
	return node->config.kind != NODE_APART;
}

static bool agent_ended(const struct node *node)
{
	return node->agent.state == AGENT_ENDED;
}

static bool is_local(const struct node *node)
{
	return node->link >= NODE_LOCAL_LINK;
}

static void seek_at(struct node *node, uint64_t ns)
{
	if (has_agent(node) && !agent_ended(node))
		node->seek_ns = ns;
}

/* ---- questions ---- */

static struct ask_actions *asks(struct step *s)
{
	return &s->actions->asks;
}

static struct asking_up up_of(const struct node *node)
{
	bool linked = node->link_state == NODE_LINKED;
	return (struct asking_up){ linked ? node->link : 0,
				   linked && (is_local(node) || node->link_answers) };
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

static void take_asking(struct step *s, uint64_t link, const struct msg *msg)
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
			take_asking(s, link, msg);
		return;
	}
	struct node_action *action = act(s, link == ASK_THIS_HOST ? NODE_DO_ASKED : NODE_DO_SEND);
	action->link = link;
	memcpy(&action->msg, msg, msg_size(msg->type));
}

/* Messages within the process may cause more. */
static void pass_asks(struct step *s)
{
	for (size_t i = 0; i < asks(s)->count; i++) {
		uint64_t link = asks(s)->items[i].link;
		struct msg msg;
		memcpy(&msg, &asks(s)->items[i].msg, msg_size(asks(s)->items[i].msg.type));
		pass_ask(s, link, &msg);
	}
	asks(s)->count = 0;
}

/* A link of an agent elsewhere or of an asker has ended, or the one within the process. */
static void end_asking(struct step *s, uint64_t link)
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

/* ---- the agent's link ---- */

static void go_unlinked(struct node *node, uint64_t seek_ns)
{
	node->link_state = NODE_UNLINKED;
	node->link = 0;
	seek_at(node, seek_ns);
}

static void go_up(struct step *s)
{
	bool local = is_local(s->node);
	s->node->link_state = NODE_LINKED;
	tell_agent(s, &(struct agent_event){ .type = AGENT_LINK_UP,
					     .dead_indexes = s->node->dead_indexes,
					     .plans = local || s->node->link_plans,
					     .paces = local || s->node->link_paces,
					     .arrivals = local || s->node->link_arrivals });
}

/* The agent's JOIN names its store, so the store needs an address first. */
static void take_link(struct step *s, uint64_t link)
{
	struct node *node = s->node;
	node->link = link;
	node->was_linked = true;
	if (node->config.kind == NODE_ALONE) {
		go_up(s);
		return;
	}
	node->link_state = NODE_PLACING;
	act(s, NODE_DO_PLACE_STORE)->link = is_local(node) ? 0 : link;
}

static void attach(struct step *s)
{
	take_link(s, s->node->next_local++);
}

static void link_to(struct step *s, int32_t index)
{
	if (s->node->link_state != NODE_UNLINKED || agent_ended(s->node))
		return;
	s->node->link_state = NODE_LINKING;
	act(s, NODE_DO_CONNECT)->index = index;
}

static void send_msg(struct step *s, const struct msg *msg)
{
	struct node *node = s->node;
	if (node->link_state != NODE_LINKED)
		return;
	if (is_local(node)) {
		tell_coordinator(s, &(struct coordinator_event){ .type = COORDINATOR_MSG,
								 .link = node->link,
								 .msg = msg,
								 .greeted_ns = s->now_ns });
		return;
	}
	struct node_action *action = act(s, NODE_DO_SEND);
	action->link = node->link;
	memcpy(&action->msg, msg, msg_size(msg->type));
}

static void hang_up(struct step *s)
{
	struct node *node = s->node;
	uint64_t link = node->link;
	bool local = is_local(node);
	end_asking(s, link);
	go_unlinked(node, s->now_ns);
	if (local)
		tell_coordinator(s, &(struct coordinator_event){ .type = COORDINATOR_LINK_DOWN,
								 .link = link,
								 .dead = true });
	else
		act(s, NODE_DO_HANG_UP)->link = link;
}

static void lose_link(struct step *s, bool dead)
{
	struct node *node = s->node;
	bool was_up = node->link_state == NODE_LINKED;
	if (node->link)
		end_asking(s, node->link);
	go_unlinked(node, was_up ? s->now_ns : ns_add(s->now_ns, NODE_RETRY_NS));
	if (was_up)
		tell_agent(s, &(struct agent_event){ .type = AGENT_LINK_DOWN, .dead = dead });
}

/* ---- the end ---- */

static void release(struct step *s)
{
	s->node->ending = false;
	*act(s, NODE_DO_HOST) = s->node->exit;
}

/* A process that coordinates stays until all others know that the job is over. rule: linger */
static void leave(struct step *s, const struct agent_action *action)
{
	struct node *node = s->node;
	const struct coordinator *c = node->coordinator;
	node->exit =
		(struct node_action){ .type = NODE_DO_HOST, .linked = s->linked, .agent = *action };
	node->seek_ns = NS_NEVER;
	node->ending = c && c->state == COORDINATOR_CLOSED && !node->finished;
	if (!node->ending)
		release(s);
}

static void exit_apart(struct step *s, const struct coordinator *c)
{
	struct outcome *outcome;
	struct agent_action *action = &act(s, NODE_DO_HOST)->agent;
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

/* ---- the coordinator here ---- */

/* A coordinator that has closed the job is not replaced: agents may still ask it. rule: gives-way
 */
static void coordinate(struct step *s, uint64_t epoch, int32_t index)
{
	struct node *node = s->node;
	if (node->coordinator)
		return;
	struct coordinator_config config = node->config.coordinator;
	config.epoch = epoch;
	config.until_ns = node->term.until_ns;
	config.past = node->term.past;
	config.after_ns = node->workers_until_ns;
	config.index = index;
	config.local = node->config.agent.node.id;
	config.id += node->coordinators;
	config.salt += (uint32_t)node->coordinators;
	node->coordinators++;
	node->finished = false;
	node->coordinator = NEW(struct coordinator);
	coordinator_init(node->coordinator, &config);
	act(s, NODE_DO_NOTE)->note = (struct note){ .kind = NOTE_COORDINATES };
	if (has_agent(node) && !agent_ended(node) && node->link_state == NODE_UNLINKED)
		attach(s);
}

/* Questions arise before the machines exchange their actions and after that, so a step leaves at
 * most one table of them. */
static void leave_questions(struct step *s)
{
	if (s->node->questions)
		s->actions->left = s->node->questions;
	s->node->questions = NULL;
}

static void free_coordinator(struct node *node)
{
	if (node->coordinator)
		coordinator_done(node->coordinator);
	free(node->coordinator);
	node->coordinator = NULL;
}

/* It has stepped down and closed its links; some agents may not have joined it yet. */
static void give_up(struct step *s, const struct stepped_down *down)
{
	struct node *node = s->node;
	node->workers_until_ns = MAX(node->workers_until_ns, down->workers_until_ns);
	node->term.used &= !down->again;
	if (node->questions)
		questions_give_up(node->questions, asks(s));
	leave_questions(s);
	free_coordinator(node);
	act(s, NODE_DO_HANG_UP_ALL);
	if (is_local(node))
		lose_link(s, true);
	else if (node->link_state == NODE_UNLINKED)
		seek_at(node, s->now_ns);
	if (node->ending)
		release(s);
	if (!has_agent(node))
		exit_apart(s, NULL);
}

static void finish(struct step *s)
{
	s->node->finished = true;
	if (s->node->ending)
		release(s);
	if (!has_agent(s->node))
		exit_apart(s, s->node->coordinator);
}

/* ---- what the machines want of each other ---- */

static void pass_agents(struct step *s, const struct agent_action *action)
{
	switch (action->type) {
	case AGENT_SEND:
		send_msg(s, &action->msg);
		break;
	case AGENT_HANG_UP:
		hang_up(s);
		break;
	case AGENT_EXIT:
		leave(s, action);
		break;
	case AGENT_PEERS:
	case AGENT_GROUP_START:
	case AGENT_GROUP_STOP:
	case AGENT_GROUP_KILL:
	case AGENT_CHECK:
	case AGENT_MEASURE:
	case AGENT_PLAN:
	case AGENT_LATE:
		act(s, NODE_DO_HOST)->agent = *action;
		break;
	}
}

static void pass_message(struct step *s, const struct coordinator_action *action)
{
	if (action->link < NODE_LOCAL_LINK) {
		struct node_action *out = act(s, NODE_DO_SEND);
		out->link = action->link;
		memcpy(&out->msg, &action->msg, msg_size(action->msg.type));
	} else if (action->link == s->node->link) {
		tell_agent(s, &(struct agent_event){ .type = AGENT_MSG, .msg = &action->msg });
	}
}

static void pass_hang_up(struct step *s, uint64_t link)
{
	if (link < NODE_LOCAL_LINK) {
		end_asking(s, link);
		act(s, NODE_DO_HANG_UP)->link = link;
	} else if (link == s->node->link) {
		lose_link(s, true);
	}
}

static void pass_coordinators(struct step *s, const struct coordinator_action *action)
{
	switch (action->type) {
	case COORDINATOR_SEND:
		pass_message(s, action);
		break;
	case COORDINATOR_HANG_UP:
		pass_hang_up(s, action->link);
		break;
	case COORDINATOR_STEP_DOWN:
		give_up(s, &action->down);
		break;
	case COORDINATOR_RECORD:
		act(s, NODE_DO_RECORD)->end = action->end;
		break;
	case COORDINATOR_FINISHED:
		finish(s);
		break;
	case COORDINATOR_NOTE:
		act(s, NODE_DO_NOTE)->note = action->note;
		break;
	}
}

/* Handles both queues in order until they are empty. Each machine's actions go only to the other,
 * so neither queue grows while we look at its entries. */
static void exchange(struct step *s)
{
	struct agent_actions *agents = &s->actions->from_agent;
	struct coordinator_actions *coordinators = &s->actions->from_coordinator;
	size_t a = 0, c = 0;
	while (a < agents->count || c < coordinators->count) {
		if (a < agents->count)
			pass_agents(s, &agents->items[a++]);
		else
			pass_coordinators(s, &coordinators->items[c++]);
	}
	agents->count = coordinators->count = 0;
}

/* ---- the search ---- */

static void step_finder(struct step *s, struct finder_event event)
{
	struct node *node = s->node;
	struct finder_actions actions;
	actions.count = 0;
	event.settled = node->coordinator && coordinator_settled(node->coordinator);
	event.own_ballot = node_ballot(node);
	finder_step(&node->finder, &event, s->now_ns, &actions);
	for (size_t i = 0; i < actions.count; i++) {
		const struct finder_action *action = &actions.items[i];
		struct node_action *out;
		switch (action->type) {
		case FINDER_PROBE:
			out = act(s, NODE_DO_PROBE);
			out->index = (int32_t)action->index;
			out->probe = action->probe;
			break;
		case FINDER_CONNECT:
			node->dead_indexes = action->dead_indexes;
			link_to(s, (int32_t)action->index);
			break;
		case FINDER_COORDINATE:
			node->dead_indexes = action->dead_indexes;
			coordinate(s, 0, node->finder.config.own);
			break;
		case FINDER_STEP_DOWN:
			tell_coordinator(
				s, &(struct coordinator_event){ .type = COORDINATOR_SUPERSEDED });
			break;
		}
	}
}

static void seek_alone(struct step *s)
{
	coordinate(s, 0, -1);
}

static void seek_endpoints(struct step *s)
{
	struct node *node = s->node;
	bool linked = node->was_linked;
	node->was_linked = false;
	node->since_ns = s->now_ns;
	step_finder(s, (struct finder_event){ .type = FINDER_LOST, .linked = linked });
}

/* The last term stays valid until there is a newer one. A coordinator that began here with this
 * term and stepped down has learned of a newer one, which will be announced. */
static void seek_leader(struct step *s)
{
	struct node *node = s->node;
	if (!node->term.epoch)
		return;
	if (!node->term.here) {
		link_to(s, -1);
	} else if (!node->term.used) {
		node->term.used = true;
		coordinate(s, node->term.epoch, -1);
	}
}

static void seek(struct step *s)
{
	static handler *const by_kind[] = {
		[NODE_ALONE] = seek_alone,
		[NODE_ENDPOINTS] = seek_endpoints,
		[NODE_ARBITER] = seek_leader,
		[NODE_APART] = seek_alone,
	};
	static_assert(ARRAY_LEN(by_kind) == NODE_KIND_COUNT, "every kind needs an entry");
	struct node *node = s->node;
	node->seek_ns = NS_NEVER;
	if (node->link_state != NODE_UNLINKED || agent_ended(node))
		return;
	if (node->coordinator)
		attach(s);
	else
		by_kind[node->config.kind](s);
}

/* ---- events ---- */

static void on_start(struct step *s)
{
	struct node *node = s->node;
	if (has_agent(node))
		tell_agent(s, &(struct agent_event){ .type = AGENT_START });
	if (agent_ended(node))
		return;
	if (node->config.kind == NODE_ALONE || node->config.kind == NODE_APART)
		node->seek_ns = s->now_ns;
	else
		act(s, NODE_DO_LISTEN);
}

static void on_listening(struct step *s)
{
	struct node *node = s->node;
	if (node->finder.state == FINDER_NEW) {
		node->finder.config.own = s->event->index;
		node->since_ns = s->now_ns;
		step_finder(s, (struct finder_event){ .type = FINDER_START });
	} else if (s->event->index >= 0) {
		step_finder(s, (struct finder_event){ .type = FINDER_OWN,
						      .index = (uint32_t)s->event->index });
	}
}

/* The arbiter renews its lease. rule: fence */
static void renew(struct step *s)
{
	struct node *node = s->node;
	uint64_t until_ns = s->event->until_ns;
	if (until_ns <= node->term.until_ns)
		return;
	node->term.until_ns = until_ns;
	if (node->term.used)
		tell_coordinator(s, &(struct coordinator_event){ .type = COORDINATOR_LEASE,
								 .until_ns = until_ns });
}

/* A coordinator here gives way first, even to a new one in this process. */
static void on_term(struct step *s)
{
	struct node *node = s->node;
	if (s->event->epoch < node->term.epoch)
		return;
	if (s->event->epoch == node->term.epoch) {
		renew(s);
		return;
	}
	node->term.epoch = s->event->epoch;
	node->term.here = s->event->here;
	node->term.used = false;
	node->term.until_ns = s->event->until_ns;
	node->term.past = s->event->past;
	tell_coordinator(s, &(struct coordinator_event){ .type = COORDINATOR_SUPERSEDED });
	exchange(s);
	tell_agent(s, &(struct agent_event){ .type = AGENT_SUPERSEDED, .epoch = node->term.epoch });
	exchange(s);
	if (node->link_state == NODE_LINKING) {
		act(s, NODE_DO_HANG_UP);
		node->link_state = NODE_UNLINKED;
	}
	if (node->term.here && !agent_ended(node))
		seek_leader(s);
	if (node->link_state == NODE_UNLINKED)
		seek_at(node, s->now_ns);
}

static void on_recorded(struct step *s)
{
	if (s->node->term.used && s->event->epoch == s->node->term.epoch)
		tell_coordinator(s, &(struct coordinator_event){ .type = COORDINATOR_RECORDED });
}

static void on_answer(struct step *s)
{
	if (agent_ended(s->node))
		return;
	step_finder(s, (struct finder_event){ .type = FINDER_ANSWER,
					      .index = (uint32_t)s->event->index,
					      .probe = s->event->probe,
					      .answer = s->event->answer,
					      .ballot = s->event->ballot });
}

static void on_link_up(struct step *s)
{
	s->node->link_answers = s->event->answers;
	s->node->link_plans = s->event->plans;
	s->node->link_paces = s->event->paces;
	s->node->link_arrivals = s->event->arrivals;
	if (s->node->link_state == NODE_LINKING && !agent_ended(s->node))
		take_link(s, s->event->link);
	else
		act(s, NODE_DO_HANG_UP)->link = s->event->link;
}

static void on_not_linked(struct step *s)
{
	if (s->node->link_state == NODE_LINKING)
		lose_link(s, false);
}

static void on_link_down(struct step *s)
{
	if (s->event->link == s->node->link) {
		lose_link(s, s->event->dead);
		return;
	}
	tell_coordinator(s, &(struct coordinator_event){ .type = COORDINATOR_LINK_DOWN,
							 .link = s->event->link,
							 .dead = s->event->dead,
							 .why = s->event->why });
	end_asking(s, s->event->link);
}

static void on_msg(struct step *s)
{
	const struct node_event *event = s->event;
	if (msg_is_asking(event->msg->type))
		take_asking(s, event->link, event->msg);
	else if (event->link != s->node->link)
		tell_coordinator(s, &(struct coordinator_event){ .type = COORDINATOR_MSG,
								 .link = event->link,
								 .msg = event->msg,
								 .greeted_ns = event->greeted_ns });
	else if (s->node->link_state == NODE_LINKED)
		tell_agent(s, &(struct agent_event){ .type = AGENT_MSG, .msg = event->msg });
}

static void on_store(struct step *s)
{
	agent_set_store(&s->node->agent, s->event->host, s->event->port);
	if (s->node->link_state == NODE_PLACING)
		go_up(s);
}

static void on_host(struct step *s)
{
	struct node *node = s->node;
	const struct agent_event *event = &s->event->agent;
	if (node->ending && event->type == AGENT_STOP_REQUESTED)
		release(s);
	if (node->link_state == NODE_PLACING && event->type == AGENT_BARRED)
		hang_up(s);
	tell_agent(s, event);
}

static void on_piece(struct step *s)
{
	if (s->node->asking)
		asking_answer(s->node->asking, up_of(s->node), s->event->msg, asks(s));
}

/* The process that held our endpoint may have exited, or our host name may now resolve. Owners of
 * other endpoints would have taken over by then. */
static bool may_listen(const struct step *s)
{
	const struct node *node = s->node;
	return node->finder.state == FINDER_LOOKING && node->finder.config.own < 0 &&
	       s->now_ns >= ns_add(node->since_ns, NODE_LISTEN_AFTER_NS);
}

static void on_timer(struct step *s)
{
	struct node *node = s->node;
	if (s->now_ns >= agent_deadline_ns(&node->agent))
		tell_agent(s, &(struct agent_event){ .type = AGENT_TIMER });
	if (node->coordinator && s->now_ns >= coordinator_deadline_ns(node->coordinator))
		tell_coordinator(s, &(struct coordinator_event){ .type = COORDINATOR_TIMER });
	exchange(s);
	if (node->questions)
		questions_timer(node->questions, &node->coordinator->roster, s->now_ns, asks(s));
	if (node->asking)
		asking_timer(node->asking, up_of(node), s->now_ns, asks(s));
	if (agent_ended(node) || s->now_ns < finder_deadline_ns(&node->finder))
		return;
	if (may_listen(s))
		act(s, NODE_DO_LISTEN);
	step_finder(s, (struct finder_event){ .type = FINDER_TIMER });
}

static handler *const table[] = {
	[NODE_EV_START] = on_start,	    [NODE_EV_LISTENING] = on_listening,
	[NODE_EV_TERM] = on_term,	    [NODE_EV_ANSWER] = on_answer,
	[NODE_EV_LINK_UP] = on_link_up,	    [NODE_EV_NOT_LINKED] = on_not_linked,
	[NODE_EV_LINK_DOWN] = on_link_down, [NODE_EV_MSG] = on_msg,
	[NODE_EV_STORE] = on_store,	    [NODE_EV_HOST] = on_host,
	[NODE_EV_PIECE] = on_piece,	    [NODE_EV_RECORDED] = on_recorded,
	[NODE_EV_TIMER] = on_timer,
};
static_assert(ARRAY_LEN(table) == NODE_EVENT_COUNT, "every event needs a handler");

void node_step(struct node *node, const struct node_event *event, uint64_t now_ns,
	       struct node_actions *actions)
{
	struct step step = { node, event, now_ns, actions, node->link_state == NODE_LINKED };
	table[event->type](&step);
	exchange(&step);
	if (now_ns >= node->seek_ns) {
		seek(&step);
		exchange(&step);
	}
	pass_asks(&step);
}

void node_set_wall(struct node *node, int64_t wall_shift_ns)
{
	node->agent.wall_shift_ns = wall_shift_ns;
	if (node->coordinator)
		node->coordinator->wall_shift_ns = wall_shift_ns;
}

uint64_t node_deadline_ns(const struct node *node)
{
	uint64_t deadline_ns = MIN(agent_deadline_ns(&node->agent), node->seek_ns);
	if (!agent_ended(node))
		deadline_ns = MIN(deadline_ns, finder_deadline_ns(&node->finder));
	if (node->coordinator)
		deadline_ns = MIN(deadline_ns, coordinator_deadline_ns(node->coordinator));
	if (node->questions)
		deadline_ns = MIN(deadline_ns, questions_deadline_ns(node->questions));
	if (node->asking)
		deadline_ns = MIN(deadline_ns, asking_deadline_ns(node->asking));
	return deadline_ns;
}

/* ---- life ---- */

void node_init(struct node *node, const struct node_config *config)
{
	*node = (struct node){ .config = *config,
			       .next_local = NODE_LOCAL_LINK,
			       .seek_ns = NS_NEVER };
	if (config->kind == NODE_ALONE) {
		/* Its link cannot fall silent, and there is no other host to wait for. */
		node->config.agent.node.period_ns = 0;
		node->config.agent.join_timeout_ns = NS_NEVER;
	}
	node->config.agent.node.answers = true;
	node->config.agent.node.plans = true;
	node->config.agent.node.streams = true;
	node->config.agent.node.paces = true;
	agent_init(&node->agent, &node->config.agent);
	finder_init(&node->finder, &config->finder);
}

void node_done(struct node *node)
{
	questions_free(node->questions);
	node->questions = NULL;
	free_coordinator(node);
	free(node->asking);
	node->asking = NULL;
}

void node_actions_clear(struct node_actions *actions)
{
	if (actions->cap > ACTIONS_KEPT)
		node_actions_done(actions);
	questions_free(actions->left);
	actions->left = NULL;
	actions->count = 0;
}

void node_actions_done(struct node_actions *actions)
{
	free(actions->items);
	agent_actions_done(&actions->from_agent);
	coordinator_actions_done(&actions->from_coordinator);
	ask_actions_done(&actions->asks);
	questions_free(actions->left);
	*actions = NODE_ACTIONS_INIT;
}
