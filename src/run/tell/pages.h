/* The HTTP pages of a job: health for probes, metrics for Prometheus, its state as JSON for `muster
 * status`, and on the private socket the requests to stop and to restart. */
#ifndef RUN_TELL_PAGES_H
#define RUN_TELL_PAGES_H

#include "core/rounds/agent.h"
#include "net/http.h"
#include "run/tell/torch_metrics.h"
#include "run/workers.h"

#define PAGES_SOCKET "http"		    /* its name in the job's private directory */
#define PAGES_LATENCY_MAX_NS (5 * NS_PER_S) /* a slower loop is unhealthy */

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
	const struct torch_metrics *torch;
	const char *log_dir;
	void (*on_stop)(void *arg);
	bool (*on_restart)(void *arg); /* false: no round is running */
	void *arg;

	struct http_server *server;
};

/* Fill in the borrowed part first. Listens on the private socket if there is one, and on --http. */
int pages_open(struct pages *pages, struct err *err);
void pages_close(struct pages *pages);

#endif
