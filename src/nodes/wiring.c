#include "nodes/wiring.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/door.h"
#include "nodes/coordinating.h"
#include "nodes/discovery.h"
#include "nodes/waiting.h"

/* Between a link that could not be made and the next search. */
#define RETRY_NS (300 * NS_PER_MS)

struct wiring {
	const struct rendezvous *rdzv;
	const struct wiring_handler *handler;
	void *arg;
	struct event_base *base;

	struct agent agent;
	struct agent_actions pending; /* of the agent, not yet carried out */
	struct waiting waiting;

	struct link_self self;
	struct discovery *discovery;
	struct link *link;     /* to a coordinator elsewhere, or on the way to it */
	bool attached;	       /* to the coordinator here */
	bool was_linked;       /* since discovery was last told of a loss */
	uint64_t dead_indexes; /* for the agent's next LINK_UP */
	struct event seek;     /* tells discovery that its find is lost */

	struct coordinating *coordinating; /* here; NULL: we listen nowhere */
	struct door *door;	/* to it and to the workers' store, if they share a port */
	struct addr_name place; /* where that is */
	struct addr place_addr;

	bool finished; /* the coordinator here: everybody knows that the job is over */
	bool ending;   /* the outcome is held back until then */
	struct agent_action exit;
};

/* ---- what the agent wants ---- */

static void send_msg(struct wiring *node, const struct msg *msg)
{
	if (node->attached)
		coordinating_local_send(node->coordinating, msg);
	else if (node->link)
		link_send(node->link, msg);
}

static void seek_in(struct wiring *node, uint64_t ns)
{
	if (node->agent.state == AGENT_ENDED)
		return;
	struct timeval soon = clock_left(ns, 0);
	event_add(&node->seek, &soon);
}

static void hang_up(struct wiring *node)
{
	if (node->attached)
		coordinating_local_hang_up(node->coordinating);
	else if (node->link)
		link_hang_up(node->link);
	node->attached = false;
	node->link = NULL;
	seek_in(node, 0);
}

/* A process that coordinates stays until everybody knows that the job is over. */
static bool others_wait(const struct wiring *node)
{
	const struct coordinator *machine =
		node->coordinating ? coordinating_machine(node->coordinating) : NULL;
	return machine && machine->state == COORDINATOR_CLOSED && !node->finished;
}

static void add_action(struct agent_actions *actions, const struct agent_action *action)
{
	ARRAY_RESERVE(actions->items, actions->count, actions->cap);
	actions->items[actions->count++] = *action;
}

static void explain_outcome(const struct wiring *node, bool linked, struct outcome *outcome)
{
	AUTO(buf_done) struct buf tried = BUF_INIT, text = BUF_INIT;
	if (outcome->kind != OUTCOME_TIMED_OUT)
		return;
	node->discovery->ops->explain(node->discovery, &tried);
	waiting_in_vain(&node->agent, linked, buf_str(&tried), &text);
	snprintf(outcome->text, sizeof(outcome->text), "%s", buf_str(&text));
}

static void carry_out(struct wiring *node, struct agent_actions *actions)
{
	bool linked = node->link || node->attached;
	for (size_t i = 0; i < node->pending.count; i++) {
		struct agent_action *action = &node->pending.items[i];
		if (action->type == AGENT_SEND) {
			send_msg(node, &action->msg);
		} else if (action->type == AGENT_HANG_UP) {
			hang_up(node);
		} else if (action->type == AGENT_EXIT) {
			event_del(&node->seek);
			explain_outcome(node, linked, &action->outcome);
			node->ending = others_wait(node);
			node->exit = *action;
			if (!node->ending)
				add_action(actions, action);
		} else {
			add_action(actions, action);
		}
	}
	node->pending.count = 0;
}

/* ---- steps ---- */

static void step_agent(struct wiring *node, const struct agent_event *event, uint64_t now_ns,
		       struct agent_actions *actions)
{
	agent_step(&node->agent, event, now_ns, &node->pending);
	carry_out(node, actions);
	waiting_update(&node->waiting, &node->agent, now_ns);
}

/* A step that the job did not ask for. */
static void step_alone(struct wiring *node, const struct agent_event *event)
{
	struct agent_actions actions = AGENT_ACTIONS_INIT;
	step_agent(node, event, clock_now_ns(), &actions);
	node->handler->on_actions(node->arg, &actions);
	agent_actions_done(&actions);
}

static void say_waiting(struct wiring *node, uint64_t now_ns)
{
	AUTO(buf_done) struct buf tried = BUF_INIT, text = BUF_INIT;
	if (now_ns < node->waiting.next_ns)
		return;
	node->discovery->ops->explain(node->discovery, &tried);
	bool private = node->attached && addr_is_loopback(&node->place_addr);
	if (waiting_say(&node->waiting, &node->agent, buf_str(&tried),
			private ? node->place.host : NULL, now_ns, &text))
		log_warn("%s", buf_str(&text));
}

static void release(struct wiring *node, struct agent_actions *actions)
{
	node->ending = false;
	add_action(actions, &node->exit);
}

void wiring_step(struct wiring *node, const struct agent_event *event, uint64_t now_ns,
		 struct agent_actions *actions)
{
	if (node->ending && event->type == AGENT_STOP_REQUESTED) {
		release(node, actions);
		return;
	}
	step_agent(node, event, now_ns, actions);
	if (event->type == AGENT_TIMER)
		say_waiting(node, now_ns);
	if (event->type != AGENT_START || node->agent.state == AGENT_ENDED)
		return;
	struct err err = ERR_INIT;
	if (node->discovery->ops->start(node->discovery, &err) < 0)
		step_agent(node, &(struct agent_event){ .type = AGENT_BARRED, .text = err.msg },
			   now_ns, actions);
}

uint64_t wiring_deadline_ns(const struct wiring *node)
{
	return MIN(agent_deadline_ns(&node->agent), node->waiting.next_ns);
}

/* ---- the link ---- */

static void link_up(struct wiring *node, const char *host, const struct addr *addr)
{
	struct err err = ERR_INIT;
	node->was_linked = true;
	if (node->handler->on_placed(node->arg, host, addr, &err) == 0) {
		step_alone(node, &(struct agent_event){ .type = AGENT_LINK_UP,
							.dead_indexes = node->dead_indexes });
		return;
	}
	hang_up(node);
	step_alone(node, &(struct agent_event){ .type = AGENT_BARRED, .text = err.msg });
}

static void on_up(void *arg, struct link *link)
{
	struct wiring *node = arg;
	struct err err = ERR_INIT;
	struct addr addr;
	char host[ADDR_TEXT_MAX];
	int r = link_local_addr(link, &addr, &err);
	if (r < 0) {
		log_warn("%s", err.msg);
		hang_up(node);
		return;
	}
	addr_set_port(&addr, 0);
	addr_format_ip(&addr, host);
	log_info("linked to the coordinator at %s", link_peer_name(link));
	link_up(node, host, &addr);
}

static void on_msg(void *arg, struct link *link UNUSED, const struct msg *msg)
{
	step_alone(arg, &(struct agent_event){ .type = AGENT_MSG, .msg = msg });
}

static void on_down(void *arg, struct link *link UNUSED, const struct link_end *end)
{
	struct wiring *node = arg;
	bool was_up = node->agent.linked;
	node->link = NULL;
	seek_in(node, was_up ? 0 : RETRY_NS);
	if (was_up) {
		log_warn("lost the coordinator: %s", end->text);
		step_alone(node,
			   &(struct agent_event){ .type = AGENT_LINK_DOWN, .dead = end->dead });
	} else if (end->kind == LINK_REFUSED) {
		step_alone(node, &(struct agent_event){ .type = AGENT_BARRED, .text = end->text });
	} else {
		log_info("%s", end->text);
	}
}

static const struct link_handler link_handler = {
	.on_up = on_up,
	.on_msg = on_msg,
	.on_down = on_down,
};

/* ---- the coordinator here ---- */

static void on_step_down(void *arg)
{
	struct wiring *node = arg;
	log_info("another coordinates this job now");
	seek_in(node, 0);
}

static void on_finished(void *arg)
{
	struct wiring *node = arg;
	struct agent_actions actions = AGENT_ACTIONS_INIT;
	node->finished = true;
	if (!node->ending)
		return;
	release(node, &actions);
	node->handler->on_actions(node->arg, &actions);
	agent_actions_done(&actions);
}

static void on_local_msg(void *arg, const struct msg *msg)
{
	struct wiring *node = arg;
	if (node->attached)
		step_alone(arg, &(struct agent_event){ .type = AGENT_MSG, .msg = msg });
}

static void on_local_down(void *arg)
{
	struct wiring *node = arg;
	if (!node->attached)
		return;
	node->attached = false;
	seek_in(node, 0);
	step_alone(node, &(struct agent_event){ .type = AGENT_LINK_DOWN, .dead = true });
}

/* What people should know of the nodes that we coordinate. */
static void on_note(void *arg UNUSED, enum coordinating_note note, const char *name,
		    const char *text)
{
	static const struct {
		enum log_level level;
		const char *words;
	} notes[] = {
		[TOLD_JOINED] = { LOG_INFO, "has joined" },
		[TOLD_LOST] = { LOG_WARN, "is lost: " },
		[TOLD_LEFT] = { LOG_INFO, "leaves: " },
		[TOLD_REFUSED] = { LOG_WARN, "is refused: " },
		[TOLD_TURNED_AWAY] = { LOG_WARN, "is turned away: " },
		[TOLD_FORMED] = { LOG_INFO, "" },
		[TOLD_STOPPED] = { LOG_INFO, "" },
		[TOLD_CLOSED] = { LOG_INFO, "" },
		[TOLD_SUPERSEDED] = { LOG_INFO, "another has taken over" },
	};
	static_assert(ARRAY_LEN(notes) == TOLD_COUNT, "every note needs a line");
	log_at(notes[note].level, "%s%s%s%s", name, *name ? " " : "", notes[note].words, text);
}

static const struct coordinating_handler coordinating_handler = {
	.on_step_down = on_step_down,
	.on_finished = on_finished,
	.on_local_msg = on_local_msg,
	.on_local_down = on_local_down,
	.on_note = on_note,
};

/* ---- discovery ---- */

static void warn_of_strangers(const struct wiring *node, const struct addr *addr)
{
	if (!node->self.token && !addr_is_loopback(addr))
		log_warn("there is no token: whoever reaches %s can take part in this job; set "
			 "MUSTER_TOKEN or "
			 "--rdzv-conf token_file=FILE on all nodes",
			 node->place.host);
}

static void on_agent_calls(void *arg, int fd, const struct addr *peer)
{
	struct wiring *node = arg;
	coordinating_adopt(node->coordinating, fd, peer);
}

static void on_store_calls(void *arg, int fd, const struct addr *peer)
{
	struct wiring *node = arg;
	node->handler->on_store_client(node->arg, fd, peer);
}

static const struct door_handler door_handler = { .on_agent = on_agent_calls,
						  .on_store = on_store_calls };

static void on_listen(void *arg, int listen_fd, const struct addr_name *name)
{
	struct wiring *node = arg;
	node->place = *name;
	if (addr_of_socket(listen_fd, &node->place_addr, NULL) == 0)
		warn_of_strangers(node, &node->place_addr);
	addr_set_port(&node->place_addr, 0);
	if (node->rdzv->store_at_endpoint) {
		node->door = door_new(node->base, listen_fd, &door_handler, node);
		listen_fd = -1;
	}
	node->coordinating =
		coordinating_new(node->base, listen_fd, &node->self, &coordinating_handler, node);
}

static void on_found(void *arg, const struct link_target *target, uint64_t dead_indexes)
{
	struct wiring *node = arg;
	node->dead_indexes = dead_indexes;
	if (!node->link && !node->attached && node->agent.state != AGENT_ENDED)
		node->link = link_connect(node->base, &node->self, target, &link_handler, node);
}

static void attach(struct wiring *node)
{
	coordinating_local_attach(node->coordinating);
	node->attached = true;
	link_up(node, node->place.host, &node->place_addr);
}

static void on_chosen(void *arg, const struct discovery_term *term, uint64_t dead_indexes)
{
	struct wiring *node = arg;
	const struct rendezvous *rdzv = node->rdzv;
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	if (coordinating_active(node->coordinating))
		return; /* one that has closed the job gives way to nobody */
	config.quorum = rdzv->quorum;
	config.epoch = term->epoch;
	config.index = term->index;
	config.local = node->agent.config.node.id;
	config.last_call_ns = rdzv->last_call_ns;
	config.scale_up_delay_ns = rdzv->scale_up_delay_ns;
	config.close_timeout_ns = rdzv->close_timeout_ns;
	log_info("this node coordinates the job");
	coordinating_start(node->coordinating, &config);
	node->dead_indexes = dead_indexes;
	if (!node->link && !node->attached)
		attach(node);
}

static void on_superseded(void *arg, uint64_t epoch)
{
	struct wiring *node = arg;
	if (node->coordinating)
		coordinating_supersede(node->coordinating);
	if (epoch)
		step_alone(node, &(struct agent_event){ .type = AGENT_SUPERSEDED, .epoch = epoch });
}

static void on_barred(void *arg, const char *text)
{
	step_alone(arg, &(struct agent_event){ .type = AGENT_BARRED, .text = text });
}

static void standing(void *arg, bool *ret_settled, struct ballot *ret_ballot)
{
	const struct wiring *node = arg;
	*ret_settled = node->coordinating && coordinating_settled(node->coordinating);
	*ret_ballot = node->coordinating ? coordinating_ballot(node->coordinating) : BALLOT_NONE;
}

static const struct discovery_handler discovery_handler = {
	.on_listen = on_listen,
	.on_found = on_found,
	.on_chosen = on_chosen,
	.on_superseded = on_superseded,
	.on_barred = on_barred,
	.standing = standing,
};

static void on_seek(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct wiring *node = arg;
	if (node->link || node->attached)
		return;
	if (node->coordinating && coordinating_active(node->coordinating)) {
		attach(node);
		return;
	}
	bool linked = node->was_linked;
	node->was_linked = false;
	node->discovery->ops->lost(node->discovery, linked);
}

/* ---- life ---- */

int wiring_new(struct event_base *base, const struct rendezvous *rdzv,
	       const struct agent_config *agent, const struct wiring_handler *handler, void *arg,
	       struct wiring **ret_node, struct err *err UNUSED)
{
	struct wiring *node = NEW(struct wiring);
	*node = (struct wiring){
		.rdzv = rdzv,
		.handler = handler,
		.arg = arg,
		.base = base,
		.pending = AGENT_ACTIONS_INIT,
		.waiting = WAITING_INIT,
		.self = { .run_id = rdzv->run_id, .token = rdzv->has_token ? &rdzv->token : NULL },
	};
	agent_init(&node->agent, agent);
	event_assign(&node->seek, base, -1, 0, on_seek, node);
	node->discovery = discovery_new(base, rdzv, &node->self, &discovery_handler, node);
	*ret_node = node;
	return 0;
}

void wiring_free(struct wiring *node)
{
	if (!node)
		return;
	discovery_free(node->discovery);
	event_del(&node->seek);
	if (node->link)
		link_drop(node->link);
	door_free(node->door);
	coordinating_free(node->coordinating);
	link_drop_lingering(node->base);
	agent_actions_done(&node->pending);
	free(node);
}

void wiring_set_store(struct wiring *node, const char *host, uint16_t port)
{
	agent_set_store(&node->agent, host, port);
}

const struct agent *wiring_agent(const struct wiring *node)
{
	return &node->agent;
}
