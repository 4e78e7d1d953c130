/* The node, and in it the agent, the finder and the coordinator, with any sequence of well-formed
 * messages from hostile peers and of events from a shell that keeps its promises (node.h). Nothing
 * crashes, no deadline stays in the past, and the node keeps its own promises: it sends on links
 * that are up only, starts a group only when there is none, ends once, and leaves no workers
 * behind.
 *
 * The first bytes choose the job. Then each event is an op byte and what it needs. */
#include <stdlib.h>
#include <string.h>

#include "core/node/node.h"
#include "rounds_draw.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CALLERS 4
#define ENDPOINTS 3
#define TIMERS_MAX 32 /* at one instant: then no deadline is left there */

enum group_life { GROUP_NONE, GROUP_RUNS, GROUP_TOLD, GROUP_STAYS };

struct play {
	struct input in;
	struct node node;
	uint64_t now_ns;
	uint64_t next_link;
	uint64_t own_link;	   /* the agent's, 0: none */
	uint64_t callers[CALLERS]; /* of agents elsewhere */
	bool listening, connecting, placing, recording;
	bool probed[ENDPOINTS];
	uint32_t probes[ENDPOINTS]; /* their numbers */
	enum group_life group;
	bool exited;
};

static void step(struct play *p, const struct node_event *event);

static void refuse(bool broken)
{
	if (broken)
		abort();
}

/* ---- what the node wants ---- */

static bool is_up(const struct play *p, uint64_t link)
{
	for (size_t i = 0; i < CALLERS; i++)
		if (p->callers[i] == link)
			return true;
	return link == p->own_link;
}

static void hang_up(struct play *p, uint64_t link)
{
	if (!link) {
		refuse(!p->connecting);
		p->connecting = false;
		return;
	}
	if (link == p->own_link)
		p->own_link = 0;
	for (size_t i = 0; i < CALLERS; i++)
		if (p->callers[i] == link)
			p->callers[i] = 0;
}

static void act_host(struct play *p, const struct agent_action *action)
{
	refuse(p->exited);
	switch (action->type) {
	case AGENT_GROUP_START:
		refuse(p->group != GROUP_NONE);
		p->group = GROUP_RUNS;
		break;
	case AGENT_GROUP_STOP:
	case AGENT_GROUP_KILL:
		refuse(p->group == GROUP_NONE);
		break;
	case AGENT_EXIT:
		refuse(p->group == GROUP_RUNS || p->group == GROUP_TOLD);
		p->exited = true;
		break;
	case AGENT_PEERS:
	case AGENT_CHECK: /* what never answers: the agent has a deadline */
	case AGENT_MEASURE:
	case AGENT_PLAN:
	case AGENT_LATE:
	case AGENT_LOOK:
	case AGENT_EXCHANGED:
	case AGENT_NO_EXCHANGE:
		break;
	case AGENT_SEND:
	case AGENT_HANG_UP:
		abort(); /* the node carries these out */
	}
}

static void act(struct play *p, const struct node_action *action)
{
	switch (action->type) {
	case NODE_DO_LISTEN:
		p->listening = true;
		break;
	case NODE_DO_PROBE:
		refuse((uint32_t)action->index >= ENDPOINTS);
		p->probed[action->index] = true;
		p->probes[action->index] = action->probe;
		break;
	case NODE_DO_CONNECT:
		refuse(p->connecting || p->own_link);
		p->connecting = true;
		break;
	case NODE_DO_SEND:
		refuse(!action->link || !is_up(p, action->link));
		break;
	case NODE_DO_HANG_UP:
		hang_up(p, action->link);
		break;
	case NODE_DO_HANG_UP_ALL:
		memset(p->callers, 0, sizeof(p->callers));
		break;
	case NODE_DO_PLACE_STORE:
		refuse(action->link != p->own_link);
		p->placing = true;
		break;
	case NODE_DO_RECORD:
		p->recording = true;
		break;
	case NODE_DO_HOST:
		act_host(p, &action->agent);
		break;
	case NODE_DO_ASKED:
	case NODE_DO_NOTE:
		break;
	case NODE_ACTION_COUNT:
		abort();
	}
}

static void step(struct play *p, const struct node_event *event)
{
	struct node_actions actions = NODE_ACTIONS_INIT;
	if (p->exited)
		return;
	node_step(&p->node, event, p->now_ns, &actions);
	for (size_t i = 0; i < actions.count; i++)
		act(p, &actions.items[i]);
	node_actions_done(&actions);
}

static void tell(struct play *p, const struct agent_event *event)
{
	if (p->node.config.kind == NODE_APART)
		return; /* it has no agent */
	step(p, &(struct node_event){ .type = NODE_EV_HOST, .agent = *event });
}

/* ---- what the shell reports ---- */

/* Time passes. Due timers are handled, late or not, and none stays due. */
static void pass_time(struct play *p)
{
	p->now_ns += draw(&p->in, 64) * (NS_PER_S / 4);
	for (int i = 0; !p->exited && node_deadline_ns(&p->node) <= p->now_ns; i++) {
		refuse(i == TIMERS_MAX);
		step(p, &(struct node_event){ .type = NODE_EV_TIMER });
	}
}

static void offer_store(struct play *p)
{
	step(p, &(struct node_event){ .type = NODE_EV_STORE, .host = "here", .port = 1 });
}

/* One of the things that the node has asked for and that is still due. */
static void answer(struct play *p)
{
	struct input *in = &p->in;
	uint32_t index = draw(in, ENDPOINTS);
	if (p->listening) {
		p->listening = false;
		bool first = p->node.search.finder.state == FINDER_NEW;
		int32_t own = (int32_t)draw(in, ENDPOINTS + first) - (int32_t)first;
		step(p, &(struct node_event){ .type = NODE_EV_LISTENING, .index = own });
	} else if (p->placing) {
		p->placing = false;
		if (draw(in, 16) == 0)
			tell(p, &(struct agent_event){ .type = AGENT_BARRED, .text = "no" });
		else
			offer_store(p);
	} else if (p->connecting && draw(in, 4)) {
		p->connecting = false;
		p->own_link = ++p->next_link;
		step(p, &(struct node_event){ .type = NODE_EV_LINK_UP, .link = p->own_link });
	} else if (p->connecting) {
		p->connecting = false;
		step(p, &(struct node_event){ .type = NODE_EV_NOT_LINKED });
	} else if (p->recording) {
		p->recording = false;
		step(p, &(struct node_event){ .type = NODE_EV_RECORDED,
					      .term.epoch = p->node.search.term.epoch });
	} else if (p->probed[index]) {
		p->probed[index] = false;
		step(p, &(struct node_event){
				.type = NODE_EV_ANSWER,
				.index = (int32_t)index,
				.probe = p->probes[index],
				.answer = (enum finder_answer)(FINDER_COORDINATES + draw(in, 4)),
				.ballot = draw_ballot(in) });
	}
}

static void announce(struct play *p)
{
	struct input *in = &p->in;
	if (p->node.config.kind != NODE_ARBITER || p->node.agent.state == AGENT_NEW)
		return;
	p->listening = false;
	step(p, &(struct node_event){
			.type = NODE_EV_TERM,
			.term = { .epoch = 1 + draw(in, 4),
				  .here = draw(in, 2),
				  .until_ns =
					  draw(in, 2) ? p->now_ns + draw(in, 4) * 10 * NS_PER_S : 0,
				  .past = { draw(in, 3), RULING_FAILED } } });
}

/* The group reports, as agent.h says. */
static void report(struct play *p)
{
	struct agent_event event = { .died_ns = p->now_ns };
	uint32_t what = draw(&p->in, 8);
	if (p->group == GROUP_NONE || p->group == GROUP_STAYS)
		return;
	if (what < 4 && p->group == GROUP_RUNS) {
		p->group = GROUP_TOLD;
		event.type = what < 2 ? AGENT_GROUP_FAILED : AGENT_GROUP_DONE;
	} else if (what == 4) {
		p->group = GROUP_STAYS;
		event.type = AGENT_GROUP_STUCK;
	} else {
		p->group = GROUP_NONE;
		event.type = AGENT_GROUP_GONE;
		offer_store(p);
	}
	tell(p, &event);
}

/* ---- what peers say ---- */

static struct known known(const struct play *p)
{
	const struct coordinator *c = p->node.coordinator;
	const struct memory *memory = &p->node.agent.memory;
	return c ? (struct known){ c->roster.heard, c->roster.base }
		 : (struct known){ memory->heard, memory->base };
}

static void draw_cause(struct input *in, struct cause *cause)
{
	cause->reason = (enum failure_reason)draw(in, FAILURE_SPAWN + 1);
	cause->no_restart = draw(in, 2);
	cause->age_ns = draw(in, 4) * NS_PER_S;
}

/* The contents of a coordinator's message. */
static void fill_msg(struct play *p, struct msg *msg)
{
	struct input *in = &p->in;
	switch (msg->type) {
	case MSG_FORMED:
		msg->ballot.round += draw(in, 2);
		msg->formed = (struct msg_formed){ .base = draw_ref(in),
						   .nodes = 1 + draw(in, 3),
						   .world_size = 1,
						   .coordinator_index = (int32_t)draw(in, 4) - 1,
						   .coordinator_in_round = draw(in, 2) };
		break;
	case MSG_STOP:
		msg->stop.why = (enum stop_why)draw(in, STOP_WHY_COUNT);
		msg->stop.ruling = (enum ruling)draw(in, RULING_COUNT);
		draw_cause(in, &msg->stop.cause);
		break;
	case MSG_CLOSED:
		msg->closed.ruling = (enum ruling)(RULING_DONE + draw(in, 2));
		draw_cause(in, &msg->closed.cause);
		break;
	case MSG_PONG:
		msg->pong = (struct msg_pong){ .coordinator_id = 1 + draw(in, 3),
					       .cookie = p->now_ns - draw(in, 8) * NS_PER_S,
					       .stamp = draw(in, 8),
					       .heard = draw_ref(in),
					       .base = draw_ref(in),
					       .wait = draw(in, 2),
					       .wall_shift_ns = draw(in, 3) };
		break;
	default:
		break;
	}
}

static void receive(struct play *p, uint64_t link)
{
	struct node_info node;
	struct msg msg = { .type = MSG_DONE };
	const struct known rounds = known(p);
	draw_msg(&p->in, &rounds, p->now_ns, &msg, &node);
	fill_msg(p, &msg);
	step(p, &(struct node_event){ .type = NODE_EV_MSG,
				      .link = link,
				      .msg = &msg,
				      .greeted_ns = p->now_ns - draw(&p->in, 8) * NS_PER_S });
}

/* Agents elsewhere are let in only while a coordinator is here. */
static void receive_from_caller(struct play *p)
{
	uint64_t *link = &p->callers[draw(&p->in, CALLERS)];
	if (!*link && !node_coordinates(&p->node))
		return;
	if (!*link)
		*link = ++p->next_link;
	receive(p, *link);
}

/* A coordinator looks first for members that have fallen silent, and may tell those who are left,
 * among them the one whose link is down: nothing becomes of that. The own link is replaced in the
 * same step. */
static void end_link(struct play *p)
{
	uint32_t which = draw(&p->in, CALLERS + 1);
	bool own = which == CALLERS;
	uint64_t *slot = own ? &p->own_link : &p->callers[which], link = *slot;
	if (!link)
		return;
	if (own) {
		*slot = 0;
		p->placing = false;
	}
	step(p, &(struct node_event){
			.type = NODE_EV_LINK_DOWN, .link = link, .dead = draw(&p->in, 2) });
	if (*slot == link)
		*slot = 0;
}

/* ---- the play ---- */

static void begin(struct play *p)
{
	struct input *in = &p->in;
	struct node_config config = {
		.kind = (enum node_kind)draw(in, NODE_KIND_COUNT),
		.agent = { .join_timeout_ns = 60 * NS_PER_S },
		.finder = { .count = ENDPOINTS, .own = -1, .failover_after_ns = 10 * NS_PER_S },
		.coordinator = COORDINATOR_CONFIG_INIT,
	};
	draw_node(in, &config.agent.node);
	config.coordinator.id = 1;
	config.coordinator.quorum = (enum quorum_rule)draw(in, QUORUM_LEASE + 1);
	config.coordinator.last_call_ns = draw(in, 2) * NS_PER_S;
	node_init(&p->node, &config);
	step(p, &(struct node_event){ .type = NODE_EV_START });
}

static void play(struct play *p)
{
	uint32_t op = draw(&p->in, 16);
	if (op == 0 && draw(&p->in, 4) == 0)
		tell(p, &(struct agent_event){ .type = AGENT_STOP_REQUESTED, .signal = 15 });
	else if (op == 1)
		tell(p, &(struct agent_event){ .type = AGENT_RESTART_REQUESTED });
	else if (op == 2)
		announce(p);
	else if (op == 3)
		end_link(p);
	else if (op < 6)
		pass_time(p);
	else if (op < 8)
		report(p);
	else if (op < 11)
		answer(p);
	else if (op < 13 && p->own_link)
		receive(p, p->own_link);
	else
		receive_from_caller(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct play p = { .in = { data, data + size }, .now_ns = 1000 * NS_PER_S };
	begin(&p);
	while (p.in.at < p.in.end && !p.exited)
		play(&p);
	node_done(&p.node);
	return 0;
}
