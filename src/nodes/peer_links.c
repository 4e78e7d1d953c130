#include "nodes/peer_links.h"

#include <event2/event.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/dispatch/party.h"
#include "nodes/wiring.h"

struct peer_links {
	const struct peer_links_handler *handler;
	void *arg;
	struct party party;
	struct routes routes;
	struct wiring_handler wiring_handler;
	struct wiring *wiring;
	struct event *timer;
	uint64_t up; /* the link to the coordinator elsewhere; 0: there is none */
};

static void act(struct peer_links *links, const struct party_action *action)
{
	static const enum node_action_type types[] = { [PARTY_DO_LISTEN] = NODE_DO_LISTEN,
						       [PARTY_DO_PROBE] = NODE_DO_PROBE,
						       [PARTY_DO_CONNECT] = NODE_DO_CONNECT,
						       [PARTY_DO_HANG_UP] = NODE_DO_HANG_UP };
	switch (action->type) {
	case PARTY_DO_LISTEN:
	case PARTY_DO_PROBE:
	case PARTY_DO_CONNECT:
	case PARTY_DO_HANG_UP:
		wiring_act(links->wiring, &(struct node_action){ .type = types[action->type],
								 .index = action->index,
								 .probe = action->probe });
		break;
	case PARTY_DO_COORDINATE:
		links->handler->on_coordinate(links->arg);
		break;
	case PARTY_DO_SUPERSEDED:
		links->handler->on_superseded(links->arg);
		break;
	case PARTY_DO_END:
		links->handler->on_barred(links->arg, action->why);
		break;
	}
}

static void step(struct peer_links *links, const struct party_event *event)
{
	struct party_actions actions = { .count = 0 };
	party_step(&links->party, event, clock_now_ns(), &actions);
	for (size_t i = 0; i < actions.count; i++)
		act(links, &actions.items[i]);
	uint64_t deadline_ns = party_deadline_ns(&links->party);
	struct timeval left = clock_left(deadline_ns, clock_now_ns());
	if (deadline_ns == NS_NEVER)
		event_del(links->timer);
	else
		event_add(links->timer, &left);
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	step(arg, &(struct party_event){ .type = PARTY_EV_TIMER });
}

/* ---- from the wiring ---- */

static void standing(void *arg, struct frame_standing *ret_standing)
{
	const struct peer_links *links = arg;
	ret_standing->coordinates = party_coordinates(&links->party);
}

static void on_link_up(struct peer_links *links, const struct node_event *event)
{
	links->up = event->link;
	step(links, &(struct party_event){ .type = PARTY_EV_LINK_UP });
	links->handler->on_up(links->arg);
}

static void on_link_down(struct peer_links *links, const struct node_event *event)
{
	if (event->link != links->up) {
		links->handler->on_peer_down(links->arg, event->link, event->dead);
		return;
	}
	links->up = 0;
	step(links, &(struct party_event){ .type = PARTY_EV_LINK_DOWN });
	links->handler->on_down(links->arg, event->why);
}

static void on_event(void *arg, const struct node_event *event)
{
	struct peer_links *links = arg;
	switch (event->type) {
	case NODE_EV_LISTENING:
		step(links,
		     &(struct party_event){ .type = PARTY_EV_LISTENING, .index = event->index });
		break;
	case NODE_EV_ANSWER:
		step(links, &(struct party_event){ .type = PARTY_EV_ANSWER,
						   .index = event->index,
						   .probe = event->probe,
						   .answer = event->answer,
						   .ballot = event->ballot });
		break;
	case NODE_EV_TERM:
		step(links, &(struct party_event){ .type = PARTY_EV_TERM, .term = &event->term });
		break;
	case NODE_EV_LINK_UP:
		on_link_up(links, event);
		break;
	case NODE_EV_NOT_LINKED:
		step(links, &(struct party_event){ .type = PARTY_EV_LINK_DOWN });
		break;
	case NODE_EV_LINK_DOWN:
		on_link_down(links, event);
		break;
	case NODE_EV_HOST:
		step(links, &(struct party_event){ .type = PARTY_EV_BARRED,
						   .by_peer = event->agent.by_peer,
						   .why = event->agent.text });
		break;
	default:
		break;
	}
}

static void on_host(void *arg, uint64_t link, const char *name)
{
	const struct peer_links *links = arg;
	links->handler->on_peer(links->arg, link, name);
}

static void on_work(void *arg, uint64_t link, const void *data, size_t len)
{
	const struct peer_links *links = arg;
	if (link == links->up)
		links->handler->on_bytes(links->arg, data, len);
	else
		links->handler->on_peer_bytes(links->arg, link, data, len);
}

static void on_drained(void *arg)
{
	const struct peer_links *links = arg;
	links->handler->on_drained(links->arg);
}

/* ---- for the user ---- */

static struct wiring_handler wiring_handler(const struct peer_links_handler *handler)
{
	return (struct wiring_handler){ .risk = handler->risk,
					.standing = standing,
					.on_event = on_event,
					.on_host = on_host,
					.on_work = on_work,
					.on_drained = on_drained };
}

struct peer_links *peer_links_new(struct event_base *base, const struct rendezvous *rdzv,
				  const struct peer_links_handler *handler, void *arg)
{
	static const enum search_by ways[] = { [RENDEZVOUS_LOCAL] = SEARCH_HERE,
					       [RENDEZVOUS_ENDPOINTS] = SEARCH_ENDPOINTS,
					       [RENDEZVOUS_PROGRAM] = SEARCH_ARBITER };
	struct peer_links *links = NEW(struct peer_links);
	*links = (struct peer_links){ .handler = handler,
				      .arg = arg,
				      .wiring_handler = wiring_handler(handler) };
	party_init(&links->party, ways[rdzv->kind],
		   &(struct finder_config){ .count = (uint32_t)rdzv->endpoint_count,
					    .own = -1,
					    .failover_after_ns = rdzv->failover_after_ns });
	links->timer = evtimer_new(base, on_timer, links);
	links->wiring = wiring_new(base, rdzv, NULL, &links->routes, &links->wiring_handler, links);
	step(links, &(struct party_event){ .type = PARTY_EV_START });
	return links;
}

void peer_links_free(struct peer_links *links)
{
	if (!links)
		return;
	wiring_free(links->wiring);
	routes_done(&links->routes);
	event_free(links->timer);
	free(links);
}

void peer_links_send(struct peer_links *links, const void *data, size_t len)
{
	routes_send_work(&links->routes, links->up, data, len);
}

size_t peer_links_unsent(const struct peer_links *links)
{
	return wiring_unsent(links->wiring);
}

void peer_links_hang_up(struct peer_links *links)
{
	routes_hang_up(&links->routes, links->up);
	links->up = 0;
	step(links, &(struct party_event){ .type = PARTY_EV_LINK_DOWN });
}

void peer_links_withdraw(struct peer_links *links)
{
	step(links, &(struct party_event){ .type = PARTY_EV_WITHDRAW });
}

void peer_links_send_to(struct peer_links *links, uint64_t id, const void *data, size_t len)
{
	routes_send_work(&links->routes, id, data, len);
}

void peer_links_hang_up_on(struct peer_links *links, uint64_t id)
{
	routes_hang_up(&links->routes, id);
}

size_t peer_links_caller_count(const struct peer_links *links)
{
	return wiring_caller_count(links->wiring);
}

void peer_links_explain(const struct peer_links *links, struct buf *out)
{
	wiring_tried(links->wiring, out);
}
