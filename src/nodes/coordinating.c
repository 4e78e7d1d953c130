#include "nodes/coordinating.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "nodes/coordinating_notes.h"

#define ACTIONS_KEPT 64 /* a longer list is given back after the step that needed it */

/* An agent's connection, or (link NULL) the one within this process. */
struct conn {
	struct coordinating *owner;
	uint64_t id;
	struct link *link;
	char *name; /* of its host, once it has joined */
};

/* What waits for the loop. */
struct local_mail {
	bool down;
	uint64_t conn; /* to the machine: the local link that it was sent on */
	struct msg msg;
};

struct mailbox {
	struct local_mail *items;
	size_t count, cap;
};

struct coordinating {
	struct event_base *base;
	const struct coordinating_handler *handler;
	void *arg;
	struct link_listener *listener;
	bool active;
	struct coordinator machine;
	struct coordinator_actions actions;
	struct map conns; /* by id */
	uint64_t next_id;
	uint64_t local; /* the local agent's conn, 0: none */
	struct mailbox to_machine, to_agent;
	bool stepped_down, finished; /* to be told */
	struct event timer, deferred;
	uint64_t timer_ns; /* for when it is set; NS_NEVER: it is not */
};

/* ---- conns ---- */

static struct conn *find_conn(const struct coordinating *c, uint64_t id)
{
	return map_get(&c->conns, &id, sizeof(id));
}

static struct conn *add_conn(struct coordinating *c, struct link *link)
{
	struct conn *conn = NEW(struct conn);
	conn->owner = c;
	conn->id = ++c->next_id;
	conn->link = link;
	map_put(&c->conns, &conn->id, sizeof(conn->id), conn);
	return conn;
}

static void remove_conn(struct conn *conn)
{
	struct coordinating *c = conn->owner;
	if (c->local == conn->id)
		c->local = 0;
	map_remove(&c->conns, &conn->id, sizeof(conn->id));
	free(conn->name);
	free(conn);
}

static void post(struct coordinating *c, struct mailbox *box, const struct local_mail *mail)
{
	ARRAY_RESERVE(box->items, box->count, box->cap);
	box->items[box->count++] = *mail;
	event_active(&c->deferred, EV_TIMEOUT, 0);
}

static void hang_up(struct conn *conn)
{
	if (conn->link)
		link_hang_up(conn->link);
	else
		post(conn->owner, &conn->owner->to_agent, &(struct local_mail){ .down = true });
	remove_conn(conn);
}

/* ---- steps ---- */

static void note(struct coordinating *c, enum coordinating_note what, const struct conn *conn,
		 const char *text)
{
	if (!c->handler->on_note)
		return;
	const char *name = conn && conn->name	? conn->name
			   : conn && conn->link ? link_peer_name(conn->link)
						: "";
	c->handler->on_note(c->arg, what, name, text);
}

static void arm_timer(struct coordinating *c, uint64_t now_ns)
{
	uint64_t deadline_ns = c->active ? coordinator_deadline_ns(&c->machine) : NS_NEVER;
	if (deadline_ns >= c->timer_ns)
		return; /* too early a timer is harmless, and setting it anew costs more */
	c->timer_ns = deadline_ns;
	const struct timeval left = clock_left(deadline_ns, now_ns);
	evtimer_add(&c->timer, &left);
}

static void go_standby(struct coordinating *c)
{
	c->active = false;
	coordinator_done(&c->machine);
	c->to_machine.count = 0;
	evtimer_del(&c->timer);
	c->timer_ns = NS_NEVER;
}

/* The machine has stepped down and hung up on its agents; some may not have joined it yet. */
static void give_up(struct coordinating *c)
{
	map_foreach(entry, &c->conns) hang_up(entry->value);
	go_standby(c);
}

static void carry_send(struct coordinating *c, const struct coordinator_action *action)
{
	struct conn *conn = find_conn(c, action->link);
	if (!conn)
		return; /* it ended while the action was decided on */
	if (action->msg.type == MSG_REFUSED)
		note(c, TOLD_REFUSED, conn, action->msg.refused.text);
	if (conn->link)
		link_send(conn->link, &action->msg);
	else
		post(c, &c->to_agent, &(struct local_mail){ .msg = action->msg });
}

static void carry_hang_up(struct coordinating *c, const struct coordinator_action *action,
			  bool silent)
{
	struct conn *conn = find_conn(c, action->link);
	if (!conn)
		return;
	if (silent)
		note(c, TOLD_LOST, conn, "it has been silent for too long");
	hang_up(conn);
}

/* Returns whether the machine has stepped down. */
static bool carry_out(struct coordinating *c, bool silent)
{
	bool stepped_down = false;
	for (size_t i = 0; i < c->actions.count; i++) {
		const struct coordinator_action *action = &c->actions.items[i];
		switch (action->type) {
		case COORDINATOR_SEND:
			carry_send(c, action);
			break;
		case COORDINATOR_HANG_UP:
			carry_hang_up(c, action, silent);
			break;
		case COORDINATOR_NOTE:
			break;
		case COORDINATOR_STEP_DOWN:
			stepped_down = c->stepped_down = true;
			break;
		case COORDINATOR_FINISHED:
			c->finished = true;
			break;
		}
	}
	c->actions.count = 0;
	if (c->actions.cap > ACTIONS_KEPT)
		coordinator_actions_done(&c->actions);
	if (c->stepped_down || c->finished)
		event_active(&c->deferred, EV_TIMEOUT, 0);
	return stepped_down;
}

static void step(struct coordinating *c, struct conn *conn, const struct coordinator_event *event)
{
	struct notes_before before = notes_look(&c->machine);
	bool was_known = conn && roster_by_link(&c->machine.roster, conn->id);
	uint64_t now_ns = clock_now_ns();
	coordinator_step(&c->machine, event, now_ns, &c->actions);
	if (conn && !was_known && roster_by_link(&c->machine.roster, conn->id))
		note(c, TOLD_JOINED, conn, "");
	char text[NOTES_TEXT_MAX];
	enum coordinating_note what = notes_compare(&before, &c->machine, text);
	if (what != TOLD_COUNT)
		note(c, what, NULL, text);
	if (carry_out(c, event->type == COORDINATOR_TIMER))
		give_up(c);
	arm_timer(c, now_ns);
}

static void step_msg(struct conn *conn, const struct msg *msg, uint64_t greeted_ns)
{
	if (msg->type == MSG_JOIN && !conn->name) {
		conn->name = mem_strdup(msg->join.node->name);
		str_make_printable(conn->name);
	}
	if (msg->type == MSG_LEAVE && msg->leave.why != LEAVE_CLOSED)
		note(conn->owner, TOLD_LEFT, conn, notes_leave(msg->leave.why));
	step(conn->owner, conn,
	     &(struct coordinator_event){ .type = COORDINATOR_MSG,
					  .link = conn->id,
					  .msg = msg,
					  .greeted_ns = greeted_ns });
}

static void step_link_down(struct coordinating *c, uint64_t id, bool dead)
{
	step(c, NULL,
	     &(struct coordinator_event){
		     .type = COORDINATOR_LINK_DOWN, .link = id, .dead = dead });
}

/* ---- agents elsewhere ---- */

/* Behind a translation of addresses an agent does not know the one under which others see it. */
static void add_seen_address(const struct link *link, struct node_info *node)
{
	struct addr peer;
	struct msg_addr seen;
	link_peer_addr(link, &peer);
	addr_to_msg(&peer, &seen);
	for (size_t i = 0; i < node->addr_count; i++)
		if (memcmp(&node->addrs[i], &seen, sizeof(seen)) == 0)
			return;
	if (node->addr_count < MSG_ADDRS_MAX)
		node->addrs[node->addr_count++] = seen;
}

static void agent_msg(void *arg, struct link *link, const struct msg *msg)
{
	if (msg->type != MSG_JOIN) {
		step_msg(arg, msg, link_up_ns(link));
		return;
	}
	struct node_info node = *msg->join.node;
	struct msg join = *msg;
	add_seen_address(link, &node);
	join.join.node = &node;
	step_msg(arg, &join, link_up_ns(link));
}

static void agent_down(void *arg, struct link *link UNUSED, const struct link_end *end)
{
	struct conn *conn = arg;
	struct coordinating *c = conn->owner;
	uint64_t id = conn->id;
	const struct member *member = roster_by_link(&c->machine.roster, id);
	if (member && member->status != MEMBER_LEAVING)
		note(c, TOLD_LOST, conn, end->text);
	remove_conn(conn);
	step_link_down(c, id, end->dead);
}

static const struct link_handler agent_handler = { .on_msg = agent_msg, .on_down = agent_down };

static bool on_agent(void *arg, struct link *link)
{
	struct coordinating *c = arg;
	if (!c->active)
		return false;
	link_set_handler(link, &agent_handler, add_conn(c, link));
	return true;
}

static void on_probe(void *arg, struct frame_standing *ret_standing)
{
	const struct coordinating *c = arg;
	ret_standing->coordinates = c->active;
	ret_standing->ballot = coordinating_ballot(c);
}

static void on_turned_away(void *arg, const struct addr *peer, const char *why)
{
	struct coordinating *c = arg;
	char name[ADDR_TEXT_MAX];
	addr_format(peer, name);
	if (c->handler->on_note)
		c->handler->on_note(c->arg, TOLD_TURNED_AWAY, name, why);
}

static const struct link_listener_handler listener_handler = {
	.on_agent = on_agent,
	.on_probe = on_probe,
	.on_turned_away = on_turned_away,
};

/* ---- the agent of this process ---- */

void coordinating_local_attach(struct coordinating *c)
{
	assert(c->active && !c->local);
	c->to_agent.count = 0;
	c->local = add_conn(c, NULL)->id;
}

void coordinating_local_send(struct coordinating *c, const struct msg *msg)
{
	if (c->local)
		post(c, &c->to_machine, &(struct local_mail){ .conn = c->local, .msg = *msg });
}

void coordinating_local_hang_up(struct coordinating *c)
{
	if (!c->local)
		return;
	post(c, &c->to_machine, &(struct local_mail){ .conn = c->local, .down = true });
	c->to_agent.count = 0;
	c->local = 0;
}

static void take_local(struct coordinating *c, const struct local_mail *mail)
{
	struct conn *conn = find_conn(c, mail->conn);
	if (!conn)
		return; /* was hung up on meanwhile */
	if (!mail->down) {
		step_msg(conn, &mail->msg, clock_now_ns());
		return;
	}
	remove_conn(conn);
	step_link_down(c, mail->conn, true);
}

/* The box is emptied first: who hears its mail may answer, and that is for the next turn. */
static struct mailbox take_box(struct mailbox *box)
{
	struct mailbox taken = *box;
	*box = (struct mailbox){ .items = NULL };
	return taken;
}

static void deliver_to_machine(struct coordinating *c)
{
	struct mailbox box = take_box(&c->to_machine);
	for (size_t i = 0; i < box.count && c->active; i++)
		take_local(c, &box.items[i]);
	free(box.items);
}

static void deliver_to_agent(struct coordinating *c)
{
	struct mailbox box = take_box(&c->to_agent);
	for (size_t i = 0; i < box.count; i++)
		if (box.items[i].down)
			c->handler->on_local_down(c->arg);
		else
			c->handler->on_local_msg(c->arg, &box.items[i].msg);
	free(box.items);
}

static void on_deferred(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct coordinating *c = arg;
	deliver_to_machine(c);
	deliver_to_agent(c);
	bool stepped_down = c->stepped_down, finished = c->finished;
	c->stepped_down = c->finished = false;
	if (stepped_down)
		c->handler->on_step_down(c->arg);
	if (finished)
		c->handler->on_finished(c->arg);
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct coordinating *c = arg;
	c->timer_ns = NS_NEVER;
	step(c, NULL, &(struct coordinator_event){ .type = COORDINATOR_TIMER });
}

/* ---- life ---- */

struct coordinating *coordinating_new(struct event_base *base, int listen_fd,
				      const struct link_self *self,
				      const struct coordinating_handler *handler, void *arg)
{
	struct coordinating *c = NEW(struct coordinating);
	c->base = base;
	c->handler = handler;
	c->arg = arg;
	c->actions = COORDINATOR_ACTIONS_INIT;
	c->conns = MAP_INIT;
	c->timer_ns = NS_NEVER;
	evtimer_assign(&c->timer, base, on_timer, c);
	evtimer_assign(&c->deferred, base, on_deferred, c);
	c->listener = link_listener_new(base, listen_fd, self, &listener_handler, c);
	return c;
}

void coordinating_adopt(struct coordinating *c, int fd, const struct addr *peer)
{
	link_listener_adopt(c->listener, fd, peer);
}

static void end_conns(struct coordinating *c, bool at_once)
{
	map_foreach(entry, &c->conns)
	{
		struct conn *conn = entry->value;
		if (conn->link && at_once)
			link_drop(conn->link);
		else if (conn->link)
			link_hang_up(conn->link);
		remove_conn(conn);
	}
}

void coordinating_free(struct coordinating *c)
{
	if (!c)
		return;
	end_conns(c, true);
	if (c->active)
		go_standby(c);
	link_listener_free(c->listener);
	event_del(&c->timer);
	event_del(&c->deferred);
	coordinator_actions_done(&c->actions);
	map_done(&c->conns);
	free(c->to_machine.items);
	free(c->to_agent.items);
	free(c);
}

static uint64_t draw(void)
{
	uint64_t value = 0;
	while (value == 0 || value == UINT64_MAX)
		value = random_u64();
	return value;
}

void coordinating_start(struct coordinating *c, const struct coordinator_config *config)
{
	assert(!c->active);
	struct coordinator_config drawn = *config;
	if (!drawn.id)
		drawn.id = draw();
	if (!drawn.salt)
		drawn.salt = (uint32_t)draw();
	coordinator_init(&c->machine, &drawn);
	c->active = true;
}

void coordinating_supersede(struct coordinating *c)
{
	if (c->active)
		step(c, NULL, &(struct coordinator_event){ .type = COORDINATOR_SUPERSEDED });
}

void coordinating_stop(struct coordinating *c)
{
	if (!c->active)
		return;
	end_conns(c, false);
	c->to_agent.count = 0;
	go_standby(c);
}

/* ---- about it ---- */

bool coordinating_active(const struct coordinating *c)
{
	return c->active;
}

bool coordinating_settled(const struct coordinating *c)
{
	return c->active && coordinator_settled(&c->machine);
}

struct ballot coordinating_ballot(const struct coordinating *c)
{
	return c->active ? coordinator_ballot(&c->machine) : BALLOT_NONE;
}

const struct coordinator *coordinating_machine(const struct coordinating *c)
{
	return c->active ? &c->machine : NULL;
}

void coordinating_stats(const struct coordinating *c, struct coordinating_stats *ret_stats)
{
	*ret_stats = (struct coordinating_stats){ .links = c->conns.count };
	if (c->listener)
		link_listener_stats(c->listener, &ret_stats->listener);
}
