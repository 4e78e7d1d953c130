#include "link_rig.h"

#include <check.h>
#include <event2/event.h>
#include <string.h>

#include "loop.h"

const struct msg ping_msg = { .type = MSG_PING, .ping = { 42 } };
const struct msg pong_msg = { .type = MSG_PONG, .pong = { .cookie = 43 } };

static void on_up(void *arg, struct link *link)
{
	struct world *w = arg;
	ck_assert_ptr_eq(link, w->client);
	w->ups++;
	event_base_loopbreak(w->base);
}

static void keep(struct world *w, const struct msg *msg)
{
	w->last = *msg;
	if (msg->type == MSG_JOIN) {
		w->last_node = *msg->join.node;
		w->last.join.node = &w->last_node;
	}
	event_base_loopbreak(w->base);
}

static void client_msg(void *arg, struct link *link UNUSED, const struct msg *msg)
{
	struct world *w = arg;
	w->client_msgs++;
	keep(w, msg);
}

static void server_msg(void *arg, struct link *link, const struct msg *msg)
{
	struct world *w = arg;
	w->server_msgs++;
	keep(w, msg);
	if (w->hang_up_on_msg) {
		link_hang_up(link);
		w->server = NULL;
	}
}

static void client_down(void *arg, struct link *link UNUSED, const struct link_end *end)
{
	struct world *w = arg;
	ck_assert(!w->client_down);
	w->client_down = true;
	w->client_end = *end;
	w->client = NULL;
	event_base_loopbreak(w->base);
}

static void server_down(void *arg, struct link *link UNUSED, const struct link_end *end)
{
	struct world *w = arg;
	ck_assert(!w->server_down);
	w->server_down = true;
	w->server_end = *end;
	w->server = NULL;
	event_base_loopbreak(w->base);
}

const struct link_handler client_handler = { on_up, client_msg, client_down };

static const struct link_handler server_handler = { NULL, server_msg, server_down };

static bool on_agent(void *arg, struct link *link)
{
	struct world *w = arg;
	if (w->standby)
		return false;
	w->agents++;
	w->server = link;
	link_set_handler(link, &server_handler, w);
	event_base_loopbreak(w->base);
	return true;
}

static void on_probe(void *arg, struct frame_standing *ret_standing)
{
	struct world *w = arg;
	ret_standing->coordinates = !w->standby;
	ret_standing->ballot = w->ballot;
}

static void on_turned_away(void *arg, const struct addr *peer UNUSED, const char *why)
{
	struct world *w = arg;
	strcpy(w->turned_away, why);
	event_base_loopbreak(w->base);
}

static const struct link_listener_handler listener_handler = { on_agent, on_probe, on_turned_away };

void on_standing(void *arg, const struct link_standing *standing)
{
	struct world *w = arg;
	w->standings++;
	w->standing = *standing;
	event_base_loopbreak(w->base);
}

int listen_somewhere(const char *ip, struct addr *ret_addr)
{
	addr_from_ip(ip, 0, ret_addr);
	struct err err = ERR_INIT;
	int fd = addr_listen(ret_addr, &err);
	ck_assert_msg(fd >= 0, "%s", err.msg);
	ck_assert_int_eq(addr_of_socket(fd, ret_addr, NULL), 0);
	return fd;
}

void world_init(struct world *w, const char *ip)
{
	memset(w, 0, sizeof(*w));
	w->base = event_base_new();
	w->server_self.run_id = w->client_self.run_id = "job";
	int fd = listen_somewhere(ip, &w->addr);
	addr_format(&w->addr, w->name);
	w->listener = link_listener_new(w->base, fd, &w->server_self, &listener_handler, w);
}

void world_done(struct world *w)
{
	if (w->client)
		link_drop(w->client);
	if (w->server)
		link_drop(w->server);
	link_listener_free(w->listener);
	link_drop_lingering(w->base);
	event_base_free(w->base);
}

void connect_client(struct world *w)
{
	const struct link_target target = { &w->addr, 1, w->name };
	w->client = link_connect(w->base, &w->client_self, &target, &client_handler, w);
}

void connect_up(struct world *w)
{
	connect_client(w);
	WAIT_FOR(w, w->ups == 1 && w->agents == 1);
}

void probe(struct world *w)
{
	int before = w->standings;
	const struct link_target target = { &w->addr, 1, w->name };
	link_probe(w->base, &w->client_self, &target, on_standing, w);
	WAIT_FOR(w, w->standings > before);
}

struct token make_token(const char *text)
{
	struct token token;
	ck_assert_int_eq(token_from_text(text, strlen(text), &token, NULL), 0);
	return token;
}

void exchange(struct world *w)
{
	connect_up(w);
	struct node_info node = {
		.min_nodes = 1, .max_nodes = 2, .nproc = 3, .node_rank = -1, .name = "here"
	};
	struct msg join = { .type = MSG_JOIN, .join = { .node = &node, .attempt = 7 } };
	join.join.memory.coordinator_index = join.join.memory.group_rank = -1;
	link_send(w->client, &join);
	link_send(w->client, &ping_msg);
	link_send(w->server, &pong_msg);
	WAIT_FOR(w, w->server_msgs == 2 && w->client_msgs == 1);
	ck_assert_str_eq(w->last_node.name, "here");
	ck_assert(!w->client_down && !w->server_down);
}
