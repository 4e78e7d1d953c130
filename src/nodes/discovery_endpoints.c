/* Discovery with a list of endpoints (c10d, static): resolves names, probes endpoints, and listens
 * on the one that is on this host. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "nodes/discovery.h"
#include "nodes/resolved_name.h"

#define FIRST_LOOKUPS_NS \
	(3 * NS_PER_S) /* then the search begins without the names that are missing */
#define PROBE_LOOKUP_NS (NS_PER_S / 3) /* of a probe's time */

/* A process that exits closes its links and its listener one after the other. It accepts a probe in
 * between and closes it at once: that is not an answer, so probe again. */
#define AGAIN_NS (10 * NS_PER_MS)
#define AGAIN_MAX 10

/* So many probes in a row without an answer from a port of this host: a muster that starts or ends
 * takes no longer. */
#define MUTE_MAX 3

struct site {
	struct endpoints *endpoints;
	struct resolved_name resolved;
	struct link_probe *probe; /* under way */
	uint32_t asked;		  /* number of the unanswered probe; 0: none */
	unsigned shut_out;	  /* how often in this probe */
	bool foreign;		  /* refused us: another job, token or version */
	bool taken;		  /* on this host, by another process */
	unsigned mute;		  /* probes in a row that got no answer there */
	bool lost_port;		  /* to another program, see note_taken() */
	struct event again;
	struct event patience; /* with the look-up that a probe waits for */
};

struct endpoints {
	struct discovery base;
	struct site *sites;
	uint32_t count;
	int32_t own;	    /* where we listen; -1: nowhere */
	bool begun;	    /* the node knows whether we listen */
	bool delayed;	    /* `delay` is in use */
	struct event delay; /* before the first look-up */
	struct event timer; /* to try to listen */
};

static struct endpoints *endpoints_of(const struct discovery *discovery)
{
	return container_of(discovery, struct endpoints, base);
}

static void listen_in(struct endpoints *e, uint64_t ns)
{
	struct timeval left = clock_left(ns, 0);
	event_add(&e->timer, &left);
}

static void tell(const struct endpoints *e, const struct node_event *event)
{
	e->base.handler->on_event(e->base.arg, event);
}

/* ---- probes ---- */

static void answer(struct site *site, enum finder_answer said, struct ballot ballot)
{
	struct endpoints *e = site->endpoints;
	static const char *const said_what[] = { [FINDER_UNASKED] = "?",
						 [FINDER_COORDINATES] = "coordinates",
						 [FINDER_STANDBY] = "stands by",
						 [FINDER_REFUSED] = "refuses",
						 [FINDER_SILENT] = "is silent" };
	log_debug("%s %s", site->resolved.text, said_what[said]);
	uint32_t probe = site->asked;
	site->asked = 0;
	/* Its name may belong to another host by now. */
	if (said == FINDER_SILENT || said == FINDER_REFUSED)
		resolved_name_forget(&site->resolved);
	if (probe)
		tell(e, &(struct node_event){ .type = NODE_EV_ANSWER,
					      .index = (int32_t)(site - e->sites),
					      .probe = probe,
					      .answer = said,
					      .ballot = ballot });
}

/* Another job may have taken a port of ours. While one endpoint may be right, and be it our own, we
 * pass over those that are not. To be said again, all have to refuse us again. */
static void note_refusal(struct endpoints *e, const char *text)
{
	for (uint32_t i = 0; i < e->count; i++)
		if (!e->sites[i].foreign)
			return;
	for (uint32_t i = 0; i < e->count; i++)
		e->sites[i].foreign = false;
	e->base.handler->on_refused(e->base.arg, text);
}

static void say_taken(const struct resolved_name *resolved, const char *holder, const char *more,
		      char text[LINK_TEXT_MAX])
{
	snprintf(text, LINK_TEXT_MAX, "cannot listen on %s: the port is taken by %s%s",
		 resolved->text, holder, more);
}

/* Whoever has the port of an endpoint on this host does not answer, and nobody else can listen
 * there. Only a muster may begin to answer yet: it is started as this one is. */
static void note_taken(struct site *site)
{
	char holder[ADDR_HOLDER_MAX], own[32] = "";
	addr_port_holder(site->resolved.name.port, holder);
	prctl(PR_GET_NAME, own);
	strcat(own, " (");
	site->lost_port = !str_starts(holder, own);
	say_taken(&site->resolved, holder,
		  ", which does not answer as a muster: end it, or choose another port",
		  site->resolved.trouble);
}

static void hear(struct site *site, const struct link_standing *standing)
{
	bool silent = standing->answer == FINDER_SILENT;
	bool mute = silent && standing->why != LINK_REFUSED && site->taken;
	site->mute = mute ? site->mute + 1 : 0;
	if (site->mute < MUTE_MAX) {
		site->lost_port = false;
		snprintf(site->resolved.trouble, sizeof(site->resolved.trouble), "%s",
			 standing->text);
	} else if (site->mute == MUTE_MAX) {
		note_taken(site);
	}
	site->foreign = (silent && standing->why == LINK_REFUSED) || site->lost_port;
}

static void on_standing(void *arg, const struct link_standing *standing)
{
	struct site *site = arg;
	struct endpoints *e = site->endpoints;
	site->probe = NULL;
	if (standing->answer == FINDER_SILENT && standing->why == LINK_CLOSED &&
	    site->shut_out++ < AGAIN_MAX) {
		struct timeval soon = clock_left(AGAIN_NS, 0);
		event_add(&site->again, &soon);
		return;
	}
	hear(site, standing);
	if (site->foreign)
		note_refusal(e, site->resolved.trouble);
	answer(site, standing->answer, standing->ballot);
}

static void ask(struct site *site)
{
	struct endpoints *e = site->endpoints;
	event_del(&site->patience);
	struct link_target target = resolved_name_target(&site->resolved);
	link_probe_cancel(site->probe);
	site->probe = link_probe(e->base.base, e->base.self, &target, on_standing, site);
}

static void on_again(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	ask(arg);
}

/* A slow look-up counts as silence; its answer serves the next probe. */
static void on_impatient(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct site *site = arg;
	struct resolved_name *resolved = &site->resolved;
	if (resolved->lookup.fd >= 0)
		snprintf(resolved->trouble, sizeof(resolved->trouble),
			 "the look-up of '%.200s' takes long", resolved->name.host);
	answer(site, FINDER_SILENT, BALLOT_NONE);
}

static void endpoints_probe(struct discovery *discovery, uint32_t index, uint32_t number)
{
	struct site *site = &endpoints_of(discovery)->sites[index];
	site->asked = number;
	site->shut_out = 0;
	event_del(&site->again);
	if (site->resolved.count > 0) {
		ask(site);
		return;
	}
	struct timeval patience = clock_left(PROBE_LOOKUP_NS, 0);
	event_add(&site->patience, &patience);
	resolved_name_look_up(&site->resolved);
}

/* ---- listening ---- */

static bool try_site(struct endpoints *e, uint32_t index)
{
	struct resolved_name *resolved = &e->sites[index].resolved;
	bool must = e->base.rdzv->host == RENDEZVOUS_HOST_YES;
	int fd = resolved_name_listen(resolved, must);
	e->sites[index].taken = fd == -EADDRINUSE;
	if (fd >= 0) {
		e->own = (int32_t)index;
		e->base.handler->on_listen(e->base.arg, fd, &resolved->name);
		return true;
	}
	if (must) {
		char text[LINK_TEXT_MAX], holder[ADDR_HOLDER_MAX];
		if (fd == -EADDRINUSE) {
			addr_port_holder(resolved->name.port, holder);
			say_taken(resolved, holder, "", text);
		} else {
			snprintf(text, sizeof(text), "cannot listen on %s: %s", resolved->text,
				 strerror(-fd));
		}
		e->base.handler->on_barred(e->base.arg, text);
	}
	return false;
}

/* Becomes the owner of the first endpoint that is on this host and that no other agent here has. */
static void try_to_own(struct endpoints *e)
{
	enum rendezvous_host host = e->base.rdzv->host;
	if (e->own >= 0 || host == RENDEZVOUS_HOST_NO)
		return;
	for (uint32_t i = 0; i < e->count; i++)
		if (try_site(e, i) || host == RENDEZVOUS_HOST_YES)
			break;
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct endpoints *e = arg;
	bool begun = e->begun, owned = e->own >= 0;
	try_to_own(e);
	e->begun = true;
	if (!begun || (e->own >= 0 && !owned))
		tell(e, &(struct node_event){ .type = NODE_EV_LISTENING, .index = e->own });
}

static bool all_known(const struct endpoints *e)
{
	for (uint32_t i = 0; i < e->count; i++)
		if (e->sites[i].resolved.lookup.fd >= 0)
			return false;
	return true;
}

static void on_looked_up(void *arg, struct resolved_name *resolved)
{
	struct site *site = arg;
	struct endpoints *e = site->endpoints;
	if (!e->begun && all_known(e)) {
		listen_in(e, 0);
		return;
	}
	if (!site->asked)
		return;
	event_del(&site->patience);
	if (resolved->count > 0)
		ask(site);
	else
		answer(site, FINDER_SILENT, BALLOT_NONE);
}

/* ---- operations ---- */

static void start(struct endpoints *e)
{
	const struct rendezvous *rdzv = e->base.rdzv;
	e->own = -1;
	e->count = (uint32_t)rdzv->endpoint_count;
	e->sites = NEW_ARRAY(struct site, e->count);
	event_assign(&e->timer, e->base.base, -1, 0, on_timer, e);
	for (uint32_t i = 0; i < e->count; i++) {
		struct site *site = &e->sites[i];
		*site = (struct site){ .endpoints = e };
		event_assign(&site->patience, e->base.base, -1, 0, on_impatient, site);
		event_assign(&site->again, e->base.base, -1, 0, on_again, site);
		resolved_name_init(&site->resolved, &rdzv->endpoints[i], e->base.base, on_looked_up,
				   site);
		if (!site->resolved.numeric)
			resolved_name_look_up(&site->resolved);
	}
	log_debug("looking for a coordinator");
}

static void on_delay(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct endpoints *e = arg;
	start(e);
	listen_in(e, all_known(e) ? 0 : FIRST_LOOKUPS_NS);
}

/* A name server may remember for long that a name did not exist when it was asked for too early. */
static void endpoints_listen(struct discovery *discovery)
{
	struct endpoints *e = endpoints_of(discovery);
	if (e->sites) {
		listen_in(e, e->begun || all_known(e) ? 0 : FIRST_LOOKUPS_NS);
		return;
	}
	if (e->delayed)
		return;
	uint64_t delay_ns = e->base.rdzv->lookup_delay_ns;
	struct timeval delay = clock_timeval(delay_ns);
	event_assign(&e->delay, e->base.base, -1, 0, on_delay, e);
	e->delayed = true;
	if (!delay_ns) {
		on_delay(-1, 0, e);
		return;
	}
	log_debug("looking for a coordinator in %u s: its name may not exist yet",
		  (unsigned)(delay_ns / NS_PER_S));
	event_add(&e->delay, &delay);
}

static void endpoints_seek(struct discovery *discovery, int32_t index)
{
	const struct endpoints *e = endpoints_of(discovery);
	struct link_target target = resolved_name_target(&e->sites[index].resolved);
	discovery->handler->on_target(discovery->arg, &target);
}

static void endpoints_explain(const struct discovery *discovery, struct buf *out)
{
	const struct endpoints *e = endpoints_of(discovery);
	for (uint32_t i = 0; i < e->count; i++) {
		const struct resolved_name *resolved = &e->sites[i].resolved;
		if ((int32_t)i == e->own)
			buf_printf(out, "%s%s is this node", i ? "; " : "", resolved->text);
		else
			buf_printf(out, "%s%s", i ? "; " : "",
				   *resolved->trouble ? resolved->trouble : resolved->text);
	}
}

static void endpoints_done(struct discovery *discovery)
{
	struct endpoints *e = endpoints_of(discovery);
	for (uint32_t i = 0; i < e->count; i++) {
		link_probe_cancel(e->sites[i].probe);
		resolved_name_done(&e->sites[i].resolved);
		event_del(&e->sites[i].patience);
		event_del(&e->sites[i].again);
	}
	if (e->delayed)
		event_del(&e->delay);
	if (e->sites)
		event_del(&e->timer);
	free(e->sites);
}

const struct discovery_ops discovery_endpoints = {
	.name = "endpoints",
	.size = sizeof(struct endpoints),
	.listen = endpoints_listen,
	.probe = endpoints_probe,
	.seek = endpoints_seek,
	.explain = endpoints_explain,
	.done = endpoints_done,
};
