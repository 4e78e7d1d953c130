#include "nodes/callers.h"

#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/mem.h"

struct caller {
	struct callers *callers;
	struct list in_all;
	struct route route;
	struct link *link;
	bool joined;
};

struct callers {
	enum callers_kind kind;
	struct routes *routes;
	const struct callers_handler *handler;
	void *arg;
	struct link_listener *listener;
	struct list all;
	size_t count;
};

static void forget(struct caller *caller)
{
	routes_close(caller->callers->routes, &caller->route);
	caller->callers->count--;
	list_unlink(&caller->in_all);
	free(caller);
}

static void send_msg(void *arg, const struct msg *msg)
{
	const struct caller *caller = arg;
	link_send(caller->link, msg);
}

static void send_work(void *arg, const void *data, size_t len)
{
	const struct caller *caller = arg;
	link_send_work(caller->link, data, len);
}

static void hang_up(void *arg)
{
	struct caller *caller = arg;
	link_hang_up(caller->link);
	forget(caller);
}

/* Behind a translation of addresses an agent does not know the one under which others see it. */
static void add_seen_address(const struct link *link, struct node_info *node)
{
	struct addr peer;
	struct msg_addr seen;
	link_peer_addr(link, &peer);
	addr_to_msg(&peer, &seen);
	node_add_addr(node, &seen);
}

static void tell_msg(const struct caller *caller, const struct msg *msg)
{
	const struct callers *callers = caller->callers;
	callers->handler->on_event(callers->arg,
				   &(struct node_event){ .type = NODE_EV_MSG,
							 .link = caller->route.id,
							 .msg = msg,
							 .greeted_ns = link_up_ns(caller->link) });
}

static void tell_join(struct caller *caller, const struct msg *msg)
{
	struct node_info node = *msg->join.node;
	struct msg join = *msg;
	caller->joined = true;
	add_seen_address(caller->link, &node);
	node.can = link_peer_can(caller->link);
	join.join.node = &node;
	tell_msg(caller, &join);
}

/* An asker takes no part in the job. */
static bool may_send(const struct link *link, enum msg_type type)
{
	return !link_is_asker(link) || type == MSG_ASK || type == MSG_TAKEN;
}

static void on_msg(void *arg, struct link *link, const struct msg *msg)
{
	struct caller *caller = arg;
	if (!may_send(link, msg->type)) {
		hang_up(caller);
	} else if (msg->type != MSG_JOIN) {
		tell_msg(caller, msg);
	} else {
		tell_join(caller, msg);
	}
}

static void on_work(void *arg, struct link *link UNUSED, const void *data, size_t len)
{
	struct caller *caller = arg;
	const struct callers *callers = caller->callers;
	caller->joined = true;
	callers->handler->on_work(callers->arg, caller->route.id, data, len);
}

/* A host of a batch has nothing to say in messages. */
static void ignore_msg(void *arg UNUSED, struct link *link UNUSED, const struct msg *msg UNUSED)
{
}

static void on_down(void *arg, struct link *link, const struct link_end *end)
{
	struct caller *caller = arg;
	struct callers *callers = caller->callers;
	uint64_t id = caller->route.id;
	if (!caller->joined && end->kind == LINK_BROKEN)
		callers->handler->on_turned_away(callers->arg, link_peer_name(link), end->text);
	forget(caller);
	callers->handler->on_event(callers->arg, &(struct node_event){ .type = NODE_EV_LINK_DOWN,
								       .link = id,
								       .dead = end->dead,
								       .why = end->text });
}

static const struct link_handler link_handler = { .on_msg = on_msg, .on_down = on_down };
static const struct link_handler host_handler = { .on_msg = ignore_msg,
						  .on_down = on_down,
						  .on_work = on_work };

static bool is_welcome(const struct callers *callers, const struct link *link)
{
	struct frame_standing standing = { .coordinates = false };
	if (callers->kind == CALLERS_HERE)
		return link_is_asker(link);
	if (callers->kind == CALLERS_HOSTS && link_is_asker(link))
		return false;
	callers->handler->standing(callers->arg, &standing);
	return standing.coordinates;
}

static bool on_agent(void *arg, struct link *link)
{
	struct callers *callers = arg;
	if (!is_welcome(callers, link))
		return false;
	bool host = callers->kind == CALLERS_HOSTS;
	struct caller *caller = NEW(struct caller);
	*caller =
		(struct caller){ .callers = callers,
				 .link = link,
				 .route = { send_msg, hang_up, caller, host ? send_work : NULL } };
	list_append(&callers->all, &caller->in_all);
	callers->count++;
	routes_open(callers->routes, &caller->route);
	link_set_handler(link, host ? &host_handler : &link_handler, caller);
	if (host)
		callers->handler->on_host(callers->arg, caller->route.id, link_peer_name(link));
	return true;
}

static void on_probe(void *arg, struct frame_standing *ret_standing)
{
	const struct callers *callers = arg;
	callers->handler->standing(callers->arg, ret_standing);
}

static void on_turned_away(void *arg, const struct addr *peer, const char *why)
{
	const struct callers *callers = arg;
	char name[ADDR_TEXT_MAX];
	addr_format(peer, name);
	callers->handler->on_turned_away(callers->arg, name, why);
}

static const struct link_listener_handler listener_handler = {
	.on_agent = on_agent,
	.on_probe = on_probe,
	.on_turned_away = on_turned_away,
};

struct callers *callers_new(struct event_base *base, enum callers_kind kind, int listen_fd,
			    const struct link_self *self, struct routes *routes,
			    const struct callers_handler *handler, void *arg)
{
	struct callers *callers = NEW(struct callers);
	*callers = (struct callers){
		.kind = kind,
		.routes = routes,
		.handler = handler,
		.arg = arg,
	};
	list_init(&callers->all);
	callers->listener = link_listener_new(base, listen_fd, self, &listener_handler, callers);
	return callers;
}

void callers_free(struct callers *callers)
{
	if (!callers)
		return;
	list_foreach(it, &callers->all)
	{
		struct caller *caller = list_entry(it, struct caller, in_all);
		link_drop(caller->link);
		forget(caller);
	}
	link_listener_free(callers->listener);
	free(callers);
}

void callers_adopt(struct callers *callers, int fd, const struct addr *peer)
{
	link_listener_adopt(callers->listener, fd, peer);
}

size_t callers_count(const struct callers *callers)
{
	return callers->count + link_listener_strangers(callers->listener);
}

void callers_hang_up_all(struct callers *callers)
{
	list_foreach(it, &callers->all) hang_up(list_entry(it, struct caller, in_all));
}
