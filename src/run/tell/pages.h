/* The HTTP pages of a job: health for probes, metrics for Prometheus, its state as JSON for `muster
 * status`, the page of the whole job for people (run/dash/dash.h), and on the private socket the
 * requests to stop and to restart. */
#ifndef RUN_TELL_PAGES_H
#define RUN_TELL_PAGES_H

#include "core/rounds/agent.h"
#include "net/http.h"
#include "run/dash/dash.h"
#include "run/tell/steps.h"
#include "run/workers.h"

#define PAGES_NO_NOTICE \
	"no worker here asks for it (muster_stop_after(3)), or no group is running just now"
#define PAGES_SOCKET "http"		    /* its name in the job's private directory */
#define PAGES_LATENCY_MAX_NS (5 * NS_PER_S) /* a slower loop is unhealthy */

struct log_sender;

struct pages {
	/* Borrowed, for as long as this is used. */
	struct event_base *base;
	const struct run_config *config;
	const struct workers *workers;
	const struct group *group;
	const struct history *history;
	struct output *output;
	struct guard *guard;
	const struct agent *agent;
	const struct round_store *store;
	const struct steps *steps;
	struct routes *routes;
	const char *log_dir;
	struct log_sender *log_sender; /* NULL: there is no --job-log */
	void (*on_stop)(void *arg);
	bool (*on_restart)(void *arg); /* false: no round is running */
	/* false: no worker asks for it, or no round is running */
	bool (*on_notice)(void *arg, enum plan_kind kind);
	/* A message for the node: a NODE_EV_MSG. Step it now. */
	void (*on_event)(void *arg, const struct node_event *event);
	void *arg;

	struct http_server *server;
	struct dash *dash;
	bool listens;		/* over TCP, */
	struct addr address;	/* there */
	bool decided;		/* the job is over, */
	struct outcome outcome; /* like this */
};

/* Fill in the borrowed part first. Listens on the private socket if there is one, and on --http. */
int pages_open(struct pages *pages, struct err *err);

/* Appends the state as /api/state shows it: JSON, and a newline. `detail`: only the workers that it
 * asks for, with their commands, environments and CPUs; NULL: all workers. */
void pages_put_state(const struct pages *pages, const struct inquiry *detail, struct buf *ret_text);

/* The job is over: open pages are told. */
void pages_finish(struct pages *pages, const struct outcome *outcome);
void pages_complete(struct pages *pages); /* all output has been read */
void pages_close(struct pages *pages);

#endif
