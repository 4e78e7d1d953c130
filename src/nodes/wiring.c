#include "nodes/wiring.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "net/shared_port.h"
#include "net/munge_client.h"
#include "net/token.h"
#include "nodes/callers.h"
#include "nodes/discovery.h"
#include "nodes/notes.h"
#include "nodes/waiting.h"

#define PACE_PER_NODE_NS (100 * NS_PER_US)

struct wiring {
	const struct rendezvous *rdzv;
	const struct node *node;
	const struct wiring_handler *handler;
	void *arg;
	struct event_base *base;

	struct link_self self;
	struct discovery *discovery;
	bool connecting;	     /* the node wants a link, and its target is not known yet */
	struct link *link;	     /* to a coordinator elsewhere, or on the way to it */
	bool up;		     /* it stands, and its owner knows */
	char refusal[LINK_TEXT_MAX]; /* of the last try of one; empty: none */
	struct routes *routes;
	struct route route; /* of `link` once it is up, or of the last one */

	struct callers *callers;  /* NULL: we listen nowhere */
	struct shared_port *port; /* to them and to the workers' store, if they share a port */
	struct addr_name place;	  /* where that is */
	struct addr place_addr;

	struct waiting waiting;
	struct event say; /* logs what the node waits for */
};

static void tell(const struct wiring *w, const struct node_event *event)
{
	w->handler->on_event(w->arg, event);
}

/* ---- the agent's link ---- */

static void send_up(void *arg, const struct msg *msg)
{
	const struct wiring *w = arg;
	link_send(w->link, msg);
}

static void send_work_up(void *arg, const void *data, size_t len)
{
	const struct wiring *w = arg;
	link_send_work(w->link, data, len);
}

static void hang_up_own(void *arg)
{
	struct wiring *w = arg;
	if (w->link)
		link_hang_up(w->link);
	w->link = NULL;
	w->up = false;
	w->connecting = false;
}

static void on_up(void *arg, struct link *link)
{
	struct wiring *w = arg;
	struct err err = ERR_INIT;
	struct addr addr;
	if (link_local_addr(link, &addr, &err) < 0) {
		log_warn("%s", err.msg);
		hang_up_own(w);
		tell(w, &(struct node_event){ .type = NODE_EV_NOT_LINKED });
		return;
	}
	log_info("linked to the coordinator at %s", link_peer_name(link));
	routes_open(w->routes, &w->route);
	w->up = true;
	*w->refusal = '\0';
	tell(w, &(struct node_event){
			.type = NODE_EV_LINK_UP, .link = w->route.id, .can = link_peer_can(link) });
}

static void on_msg(void *arg, struct link *link UNUSED, const struct msg *msg)
{
	struct wiring *w = arg;
	tell(w, &(struct node_event){ .type = NODE_EV_MSG, .link = w->route.id, .msg = msg });
}

static void on_barred(void *arg, const char *text)
{
	tell(arg, &(struct node_event){ .type = NODE_EV_HOST,
					.agent = { .type = AGENT_BARRED, .text = text } });
}

static void on_refused(void *arg, const char *text)
{
	log_info("%s", text);
	tell(arg, &(struct node_event){
			  .type = NODE_EV_HOST,
			  .agent = { .type = AGENT_BARRED, .text = text, .by_peer = true } });
}

static void on_down(void *arg, struct link *link UNUSED, const struct link_end *end)
{
	struct wiring *w = arg;
	bool was_up = w->up;
	w->link = NULL;
	w->up = false;
	routes_close(w->routes, &w->route);
	if (was_up) {
		tell(w, &(struct node_event){ .type = NODE_EV_LINK_DOWN,
					      .link = w->route.id,
					      .dead = end->dead,
					      .why = end->text });
		return;
	}
	tell(w, &(struct node_event){ .type = NODE_EV_NOT_LINKED });
	/* With endpoints, probes find out whether another one is right. */
	if (end->kind != LINK_REFUSED || w->rdzv->kind != RENDEZVOUS_PROGRAM) {
		log_info("%s", end->text);
		return;
	}
	snprintf(w->refusal, sizeof(w->refusal), "%s", end->text);
	on_refused(w, end->text);
}

static const struct link_handler link_handler = {
	.on_up = on_up,
	.on_msg = on_msg,
	.on_down = on_down,
};

static void on_work(void *arg, struct link *link UNUSED, const void *data, size_t len)
{
	struct wiring *w = arg;
	w->handler->on_work(w->arg, w->route.id, data, len);
}

static void on_drained(void *arg, struct link *link UNUSED)
{
	struct wiring *w = arg;
	w->handler->on_drained(w->arg);
}

static void ignore_msg(void *arg UNUSED, struct link *link UNUSED, const struct msg *msg UNUSED)
{
}

/* Of a host of a batch, which says nothing in messages. */
static const struct link_handler work_handler = {
	.on_up = on_up,
	.on_msg = ignore_msg,
	.on_down = on_down,
	.on_work = on_work,
	.on_drained = on_drained,
};

/* ---- those elsewhere ---- */

static void standing(void *arg, struct frame_standing *ret_standing)
{
	const struct wiring *w = arg;
	w->handler->standing(w->arg, ret_standing);
}

static void on_host(void *arg, uint64_t link, const char *name)
{
	const struct wiring *w = arg;
	w->handler->on_host(w->arg, link, name);
}

static void on_work_of_host(void *arg, uint64_t link, const void *data, size_t len)
{
	const struct wiring *w = arg;
	w->handler->on_work(w->arg, link, data, len);
}

static void on_event(void *arg, const struct node_event *event)
{
	tell(arg, event);
}

static void on_turned_away(void *arg UNUSED, const char *name, const char *why)
{
	log_warn("rejected %s: %s", name, why);
}

static const struct callers_handler callers_handler = { .standing = standing,
							.on_event = on_event,
							.on_host = on_host,
							.on_work = on_work_of_host,
							.on_turned_away = on_turned_away };

static void on_agent_calls(void *arg, int fd, const struct addr *peer)
{
	struct wiring *w = arg;
	callers_adopt(w->callers, fd, peer);
}

static void on_store_calls(void *arg, int fd, const struct addr *peer)
{
	struct wiring *w = arg;
	w->handler->on_store_client(w->arg, fd, peer);
}

static const struct shared_port_handler shared_port_handler = { .on_agent = on_agent_calls,
								.on_store = on_store_calls };

/* ---- discovery ---- */

static void warn_of_strangers(const struct wiring *w, const struct addr *addr)
{
	if (!w->self.token && !w->self.munge && !w->rdzv->no_guard && !addr_is_loopback(addr))
		log_warn("there is no token: any process that can reach %s can %s; "
			 "set " TOKEN_VARIABLE
			 " or --rdzv-conf token_file=FILE, the same on all hosts",
			 w->place.host, w->handler->risk);
}

static void on_listen(void *arg, int listen_fd, const struct addr_name *name)
{
	struct wiring *w = arg;
	w->place = *name;
	if (addr_of_socket(listen_fd, &w->place_addr, NULL) == 0)
		warn_of_strangers(w, &w->place_addr);
	addr_set_port(&w->place_addr, 0);
	if (w->rdzv->store_at_endpoint) {
		w->port = shared_port_new(w->base, listen_fd, &shared_port_handler, w);
		listen_fd = -1;
	}
	w->callers = callers_new(w->base, w->handler->on_work ? CALLERS_HOSTS : CALLERS_ELSEWHERE,
				 listen_fd, &w->self, w->routes, &callers_handler, w);
}

static void on_target(void *arg, const struct link_target *target)
{
	struct wiring *w = arg;
	if (!w->connecting)
		return;
	w->connecting = false;
	w->link = link_connect(w->base, &w->self, target,
			       w->handler->on_work ? &work_handler : &link_handler, w);
}

static const struct discovery_handler discovery_handler = {
	.on_listen = on_listen,
	.on_event = on_event,
	.on_target = on_target,
	.on_barred = on_barred,
	.on_refused = on_refused,
};

/* ---- what the node wants ---- */

static void say(const struct note *note)
{
	static const struct {
		enum log_level level;
		const char *words;
	} notes[] = {
		[NOTE_COORDINATES] = { LOG_INFO, "this node coordinates the job" },
		[NOTE_JOINED] = { LOG_INFO, "has joined" },
		[NOTE_LOST] = { LOG_WARN, "is lost: " },
		[NOTE_LEFT] = { LOG_INFO, "leaves: " },
		[NOTE_REFUSED] = { LOG_WARN, "is refused: " },
		[NOTE_FORMED] = { LOG_INFO, "" },
		[NOTE_STOPPED] = { LOG_INFO, "" },
		[NOTE_EXCLUDED] = { LOG_WARN, "is left out of later rounds while enough other "
					      "nodes are there: its worker held the others up" },
		[NOTE_UNFIT] = { LOG_WARN, "is not fit and becomes a spare of last resort: " },
		[NOTE_FIT] = { LOG_INFO, "is fit again" },
		[NOTE_NEEDED] = { LOG_WARN, "is not fit, but takes part: too few others are here" },
		[NOTE_CLOCK] = { LOG_WARN, "has a wrong clock: " },
		[NOTE_DIFFERENT] = { LOG_WARN, "the nodes differ: " },
		[NOTE_LEASE] = { LOG_WARN, "no round forms: " },
		[NOTE_LATE] = { LOG_WARN, "holds the others up: " },
		[NOTE_IN_STEP] = { LOG_INFO, "keeps up again: " },
		[NOTE_WAITS] = { LOG_INFO, "" },
		[NOTE_CLOSED] = { LOG_INFO, "" },
		[NOTE_STAYS] = { LOG_WARN, "" },
		[NOTE_SUPERSEDED] = { LOG_INFO, "another coordinates this job now" },
	};
	static_assert(ARRAY_LEN(notes) == NOTE_KIND_COUNT, "every note needs a line");
	char name[MSG_NAME_MAX], text[NOTES_TEXT_MAX];
	snprintf(name, sizeof(name), "%s", note->name);
	str_make_printable(name);
	notes_describe(note, text);
	log_at(notes[note->kind].level, "%s%s%s%s", name, *name ? " " : "", notes[note->kind].words,
	       text);
}

void wiring_act(struct wiring *w, const struct node_action *action)
{
	struct discovery *d = w->discovery;
	switch (action->type) {
	case NODE_DO_LISTEN:
		d->ops->listen(d);
		break;
	case NODE_DO_PROBE:
		d->ops->probe(d, (uint32_t)action->index, action->probe);
		break;
	case NODE_DO_CONNECT:
		w->connecting = true;
		d->ops->seek(d, action->index);
		break;
	case NODE_DO_HANG_UP: /* the connection under way */
		hang_up_own(w);
		break;
	case NODE_DO_HANG_UP_ALL:
		callers_hang_up_all(w->callers);
		break;
	case NODE_DO_RECORD:
		if (d->ops->record)
			d->ops->record(d, &action->end);
		break;
	case NODE_DO_NOTE:
		say(&action->note);
		break;
	case NODE_DO_SEND:
	case NODE_DO_PLACE_STORE:
	case NODE_DO_HOST:
	case NODE_DO_ASKED:
	case NODE_ACTION_COUNT:
		assert(!"the job does that");
		break;
	}
}

int wiring_place(const struct wiring *w, uint64_t link, char host[ADDR_HOST_MAX],
		 struct addr *ret_addr, struct err *err)
{
	if (!link) {
		snprintf(host, ADDR_HOST_MAX, "%s", w->place.host);
		*ret_addr = w->place_addr;
		return 0;
	}
	char text[ADDR_TEXT_MAX];
	int r = link_local_addr(w->link, ret_addr, err);
	if (r < 0)
		return r;
	addr_set_port(ret_addr, 0);
	addr_format_ip(ret_addr, text);
	snprintf(host, ADDR_HOST_MAX, "%s", text);
	return 0;
}

size_t wiring_unsent(const struct wiring *w)
{
	return w->up ? link_unsent(w->link) : 0;
}

size_t wiring_caller_count(const struct wiring *w)
{
	return w->callers ? callers_count(w->callers) : 0;
}

void wiring_tried(const struct wiring *w, struct buf *out)
{
	w->discovery->ops->explain(w->discovery, out);
	if (*w->refusal)
		buf_printf(out, "; %s", w->refusal);
}

/* ---- waiting ---- */

static void on_say(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct wiring *w = arg;
	AUTO(buf_done) struct buf tried = BUF_INIT, text = BUF_INIT;
	uint64_t now_ns = clock_now_ns();
	bool private = w->node->link >= NODE_LOCAL_LINK && addr_is_loopback(&w->place_addr);
	wiring_tried(w, &tried);
	if (waiting_say(&w->waiting, &w->node->agent, buf_str(&tried),
			private ? w->place.host : NULL, now_ns, &text))
		log_warn("%s", buf_str(&text));
	wiring_stepped(w, now_ns);
}

void wiring_stepped(struct wiring *w, uint64_t now_ns)
{
	waiting_update(&w->waiting, &w->node->agent, now_ns);
	if (w->waiting.next_ns == NS_NEVER) {
		event_del(&w->say);
	} else if (!event_pending(&w->say, EV_TIMEOUT, NULL)) {
		struct timeval left = clock_left(w->waiting.next_ns, now_ns);
		event_add(&w->say, &left);
	}
}

void wiring_explain(const struct wiring *w, bool linked, struct outcome *outcome)
{
	AUTO(buf_done) struct buf tried = BUF_INIT, text = BUF_INIT;
	if (outcome->kind != OUTCOME_TIMED_OUT)
		return;
	wiring_tried(w, &tried);
	waiting_in_vain(&w->node->agent, linked, buf_str(&tried), &text);
	snprintf(outcome->text, sizeof(outcome->text), "%s", buf_str(&text));
}

/* ---- life ---- */

void wiring_configure(const struct rendezvous *rdzv, struct node_config *config)
{
	static const enum node_kind kinds[] = { [RENDEZVOUS_LOCAL] = NODE_ALONE,
						[RENDEZVOUS_ENDPOINTS] = NODE_ENDPOINTS,
						[RENDEZVOUS_PROGRAM] = NODE_ARBITER };
	struct coordinator_config *coordinator = &config->coordinator;
	config->kind = kinds[rdzv->kind];
	config->finder = (struct finder_config){
		.count = (uint32_t)rdzv->endpoint_count,
		.failover_after_ns = rdzv->failover_after_ns,
		.pace_ns = rdzv->max_nodes * PACE_PER_NODE_NS,
	};
	*coordinator = COORDINATOR_CONFIG_INIT;
	coordinator->id = 1 + random_u64() / 2; /* never 0 or all ones, however many follow */
	coordinator->salt = (uint32_t)random_u64();
	if (rdzv->kind == RENDEZVOUS_LOCAL)
		return;
	coordinator->quorum = rdzv->quorum;
	coordinator->last_call_ns = rdzv->last_call_ns;
	coordinator->scale_up_delay_ns = rdzv->scale_up_delay_ns;
	coordinator->close_timeout_ns = rdzv->close_timeout_ns;
}

struct wiring *wiring_new(struct event_base *base, const struct rendezvous *rdzv,
			  const struct node *node, struct routes *routes,
			  const struct wiring_handler *handler, void *arg)
{
	struct wiring *w = NEW(struct wiring);
	*w = (struct wiring){
		.rdzv = rdzv,
		.node = node,
		.handler = handler,
		.arg = arg,
		.base = base,
		.routes = routes,
		.route = { send_up, hang_up_own, w, send_work_up },
		.waiting = WAITING_INIT,
		.self = { .run_id = rdzv->run_id,
			  .token = rdzv->has_token ? &rdzv->token : NULL,
			  .munge = rdzv->munge ? munge_client_new(base) : NULL },
	};
	evtimer_assign(&w->say, base, on_say, w);
	w->discovery = discovery_new(base, rdzv, &w->self, &discovery_handler, w);
	return w;
}

void wiring_free(struct wiring *w)
{
	if (!w)
		return;
	discovery_free(w->discovery);
	event_del(&w->say);
	if (w->link)
		link_drop(w->link);
	shared_port_free(w->port);
	callers_free(w->callers);
	link_drop_lingering(w->base);
	munge_client_free(w->self.munge);
	free(w);
}
