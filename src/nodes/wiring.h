/* This host's part in a job of several nodes: the agent, its link to the coordinator, the search
 * for one, and the coordinator itself while it is here.
 *
 * To the job it looks like core/rounds/local.h: events in, actions for the worker group out, a
 * deadline. What comes over the network leads to actions too; they are handed to on_actions, from
 * the loop.
 */
#ifndef NODES_WIRING_H
#define NODES_WIRING_H

#include "core/rounds/agent.h"
#include "net/addr.h"
#include "nodes/rendezvous.h"

struct event_base;
struct wiring;

struct wiring_handler {
	/* Carry them out in order, then go on: GROUP_START, GROUP_STOP, GROUP_KILL, PEERS and EXIT
	 * only. */
	void (*on_actions)(void *arg, const struct agent_actions *actions);
	/* The others reach this node under `host`, which is `addr` here: the place for the workers'
	 * store of the next round, unless the user named another. Answer with wiring_set_store(),
	 * or -errno: then this node cannot take part. */
	int (*on_placed)(void *arg, const char *host, const struct addr *addr, struct err *err);
	/* Somebody wants the workers' store that shares the endpoint's port. `fd` is handed
	 * over. */
	void (*on_store_client)(void *arg, int fd, const struct addr *peer);
};

/* All but `agent` is borrowed. Nothing happens before AGENT_START. */
int wiring_new(struct event_base *base, const struct rendezvous *rdzv,
	       const struct agent_config *agent, const struct wiring_handler *handler, void *arg,
	       struct wiring **ret_node, struct err *err);
void wiring_free(struct wiring *node);

void wiring_set_store(struct wiring *node, const char *host, uint16_t port);

/* As local_step(). AGENT_EXIT is held back while this process has to tell others of the job's end,
 * but not after a stop request. */
void wiring_step(struct wiring *node, const struct agent_event *event, uint64_t now_ns,
		 struct agent_actions *actions);
uint64_t wiring_deadline_ns(const struct wiring *node);

const struct agent *wiring_agent(const struct wiring *node);

#endif
