#include "nodes/crew.h"

#include <event2/event.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/deal/meeting.h"
#include "net/munge_client.h"
#include "nodes/discovery.h"

struct peer {
	struct crew *crew;
	uint64_t id;
	struct link *link;
};

struct crew {
	struct event_base *base;
	const struct rendezvous *rdzv;
	const struct crew_handler *handler;
	void *arg;
	struct link_self self;
	struct discovery *discovery;
	struct meeting meeting;
	struct event *timer;
	struct link_listener *listener;
	struct link *link; /* to the coordinator elsewhere */
	bool up;
	struct map peers; /* id -> struct peer */
	uint64_t last_id;
};

static void act(struct crew *crew, const struct meeting_action *action)
{
	const struct discovery_ops *ops = crew->discovery->ops;
	switch (action->type) {
	case MEETING_DO_PROBE:
		ops->probe(crew->discovery, (uint32_t)action->index, action->probe);
		break;
	case MEETING_DO_CONNECT:
		ops->seek(crew->discovery, action->index);
		break;
	case MEETING_DO_COORDINATE:
		crew->handler->on_coordinate(crew->arg);
		break;
	case MEETING_DO_SUPERSEDED:
		crew->handler->on_superseded(crew->arg);
		break;
	}
}

static void step(struct crew *crew, struct meeting_event event)
{
	struct meeting_actions actions = { .count = 0 };
	meeting_step(&crew->meeting, &event, clock_now_ns(), &actions);
	for (size_t i = 0; i < actions.count; i++)
		act(crew, &actions.items[i]);
	uint64_t deadline_ns = meeting_deadline_ns(&crew->meeting);
	struct timeval left = clock_left(deadline_ns, clock_now_ns());
	if (deadline_ns == NS_NEVER)
		event_del(crew->timer);
	else
		event_add(crew->timer, &left);
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	step(arg, (struct meeting_event){ .type = MEETING_EV_TIMER });
}

/* ---- the coordinator elsewhere ---- */

static void on_up(void *arg, struct link *link)
{
	struct crew *crew = arg;
	log_info("linked to the coordinator at %s", link_peer_name(link));
	crew->up = true;
	step(crew, (struct meeting_event){ .type = MEETING_EV_LINK_UP });
	crew->handler->on_up(crew->arg);
}

static void on_msg(void *arg UNUSED, struct link *link UNUSED, const struct msg *msg UNUSED)
{
}

static void on_down(void *arg, struct link *link UNUSED, const struct link_end *end)
{
	struct crew *crew = arg;
	bool was_up = crew->up;
	crew->link = NULL;
	crew->up = false;
	step(crew, (struct meeting_event){ .type = MEETING_EV_LINK_DOWN });
	if (was_up)
		crew->handler->on_down(crew->arg, end->text);
	else if (end->kind == LINK_REFUSED && crew->rdzv->endpoint_count <= 1)
		crew->handler->on_barred(crew->arg, end->text);
}

static void on_work(void *arg, struct link *link UNUSED, const void *data, size_t len)
{
	struct crew *crew = arg;
	crew->handler->on_bytes(crew->arg, data, len);
}

static void on_drained(void *arg, struct link *link UNUSED)
{
	struct crew *crew = arg;
	crew->handler->on_drained(crew->arg);
}

static const struct link_handler link_handler = { .on_up = on_up,
						  .on_msg = on_msg,
						  .on_down = on_down,
						  .on_work = on_work,
						  .on_drained = on_drained };

/* ---- hosts that call on us ---- */

static void on_peer_down(void *arg, struct link *link UNUSED, const struct link_end *end)
{
	struct peer *peer = arg;
	struct crew *crew = peer->crew;
	uint64_t id = peer->id;
	map_remove(&crew->peers, &id, sizeof(id));
	free(peer);
	crew->handler->on_peer_down(crew->arg, id, end->dead);
}

static void on_peer_work(void *arg, struct link *link UNUSED, const void *data, size_t len)
{
	struct peer *peer = arg;
	peer->crew->handler->on_peer_bytes(peer->crew->arg, peer->id, data, len);
}

static const struct link_handler peer_handler = { .on_msg = on_msg,
						  .on_down = on_peer_down,
						  .on_work = on_peer_work };

static bool on_agent(void *arg, struct link *link)
{
	struct crew *crew = arg;
	if (!meeting_coordinates(&crew->meeting) || link_is_asker(link))
		return false;
	struct peer *peer = NEW(struct peer);
	*peer = (struct peer){ crew, ++crew->last_id, link };
	map_put(&crew->peers, &peer->id, sizeof(peer->id), peer);
	link_set_handler(link, &peer_handler, peer);
	crew->handler->on_peer(crew->arg, peer->id, link_peer_name(link));
	return true;
}

static void on_probe(void *arg, struct frame_standing *ret_standing)
{
	const struct crew *crew = arg;
	*ret_standing =
		(struct frame_standing){ .coordinates = meeting_coordinates(&crew->meeting) };
}

static void on_turned_away(void *arg UNUSED, const struct addr *addr, const char *why)
{
	char name[ADDR_TEXT_MAX];
	addr_format(addr, name);
	log_warn("turned away %s: %s", name, why);
}

static const struct link_listener_handler listener_handler = { .on_agent = on_agent,
							       .on_probe = on_probe,
							       .on_turned_away = on_turned_away };

/* ---- discovery ---- */

static void on_listen(void *arg, int listen_fd, const struct addr_name *name UNUSED)
{
	struct crew *crew = arg;
	struct addr addr;
	bool open = !crew->self.token && !crew->self.munge && !crew->rdzv->no_guard;
	if (open && addr_of_socket(listen_fd, &addr, NULL) == 0 && !addr_is_loopback(&addr))
		log_warn("there is no token: any process that reaches port %u can "
			 "%s. " TOKEN_VARIABLE
			 " or token_file=FILE in --rdzv-conf, the same on all hosts, keeps others "
			 "out",
			 addr_port(&addr), crew->handler->risk);
	crew->listener =
		link_listener_new(crew->base, listen_fd, &crew->self, &listener_handler, crew);
}

static void on_event(void *arg, const struct node_event *event)
{
	if (event->type == NODE_EV_LISTENING)
		step(arg,
		     (struct meeting_event){ .type = MEETING_EV_LISTENING, .index = event->index });
	else if (event->type == NODE_EV_ANSWER)
		step(arg, (struct meeting_event){ .type = MEETING_EV_ANSWER,
						  .index = event->index,
						  .probe = event->probe,
						  .answer = event->answer,
						  .ballot = event->ballot });
	else if (event->type == NODE_EV_TERM)
		step(arg,
		     (struct meeting_event){ .type = MEETING_EV_TERM, .here = event->term.here });
}

static void on_target(void *arg, const struct link_target *target)
{
	struct crew *crew = arg;
	if (!crew->link && !meeting_coordinates(&crew->meeting))
		crew->link = link_connect(crew->base, &crew->self, target, &link_handler, crew);
}

static void on_barred(void *arg, const char *text)
{
	struct crew *crew = arg;
	crew->handler->on_barred(crew->arg, text);
}

static const struct discovery_handler discovery_handler = {
	.on_listen = on_listen, .on_event = on_event, .on_target = on_target, .on_barred = on_barred
};

/* ---- for the user ---- */

struct crew *crew_new(struct event_base *base, const struct rendezvous *rdzv,
		      const struct crew_handler *handler, void *arg)
{
	struct crew *crew = NEW(struct crew);
	*crew = (struct crew){ .base = base,
			       .rdzv = rdzv,
			       .handler = handler,
			       .arg = arg,
			       .last_id = 1,
			       .self = { .run_id = rdzv->run_id,
					 .token = rdzv->has_token ? &rdzv->token : NULL,
					 .munge = rdzv->munge ? munge_client_new(base) : NULL } };
	crew->timer = evtimer_new(base, on_timer, crew);
	meeting_init(&crew->meeting,
		     &(struct meeting_config){
			     .arbiter = rdzv->kind == RENDEZVOUS_PROGRAM,
			     .finder = { .count = (uint32_t)rdzv->endpoint_count,
					 .own = -1,
					 .failover_after_ns = rdzv->failover_after_ns } });
	crew->discovery = discovery_new(base, rdzv, &crew->self, &discovery_handler, crew);
	crew->discovery->ops->listen(crew->discovery);
	return crew;
}

void crew_free(struct crew *crew)
{
	if (!crew)
		return;
	discovery_free(crew->discovery);
	if (crew->link)
		link_drop(crew->link);
	map_foreach(entry, &crew->peers)
	{
		struct peer *peer = entry->value;
		link_drop(peer->link);
		free(peer);
	}
	map_done(&crew->peers);
	if (crew->listener)
		link_listener_free(crew->listener);
	link_drop_lingering(crew->base);
	munge_client_free(crew->self.munge);
	event_free(crew->timer);
	free(crew);
}

void crew_send(struct crew *crew, const void *data, size_t len)
{
	if (crew->link && crew->up)
		link_send_work(crew->link, data, len);
}

size_t crew_unsent(const struct crew *crew)
{
	return crew->link && crew->up ? link_unsent(crew->link) : 0;
}

void crew_hang_up(struct crew *crew)
{
	if (crew->link)
		link_hang_up(crew->link);
	crew->link = NULL;
	crew->up = false;
	step(crew, (struct meeting_event){ .type = MEETING_EV_LINK_DOWN });
}

void crew_withdraw(struct crew *crew)
{
	step(crew, (struct meeting_event){ .type = MEETING_EV_WITHDRAW });
}

void crew_peer_send(struct crew *crew, uint64_t id, const void *data, size_t len)
{
	const struct peer *peer = map_get(&crew->peers, &id, sizeof(id));
	if (peer)
		link_send_work(peer->link, data, len);
}

void crew_peer_hang_up(struct crew *crew, uint64_t id)
{
	struct peer *peer = map_remove(&crew->peers, &id, sizeof(id));
	if (!peer)
		return;
	link_hang_up(peer->link);
	free(peer);
}

size_t crew_caller_count(const struct crew *crew)
{
	return crew->peers.count + (crew->listener ? link_listener_strangers(crew->listener) : 0);
}

void crew_explain(const struct crew *crew, struct buf *out)
{
	crew->discovery->ops->explain(crew->discovery, out);
}
