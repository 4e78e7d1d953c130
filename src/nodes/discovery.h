/* Discovery: where a coordinator may be, and how to find out. One table of functions for each way.
 *
 * core/node/node.h decides which endpoint to probe, when to link and when to coordinate; a
 * discovery resolves names, listens, probes endpoints or follows a program. Its callbacks come from
 * the loop, and on_target also from inside seek(); they may call all of its functions but
 * done(). */
#ifndef NODES_DISCOVERY_H
#define NODES_DISCOVERY_H

#include "base/buf.h"
#include "core/node/node.h"
#include "net/link.h"
#include "nodes/rendezvous.h"

struct event_base;

struct discovery_handler {
	/* This process listens here, under `name`, from now on: answer probes, let agents in while
	 * it coordinates. `listen_fd` is handed over. */
	void (*on_listen)(void *arg, int listen_fd, const struct addr_name *name);
	/* LISTENING, ANSWER, TERM or RECORDED. */
	void (*on_event)(void *arg, const struct node_event *event);
	/* The address of the coordinator that seek() asked for. */
	void (*on_target)(void *arg, const struct link_target *target);
	/* We cannot listen where we must, or the like: why. */
	void (*on_barred)(void *arg, const char *text);
	/* Whoever is there refuses us, at each place where a coordinator may be: why. */
	void (*on_refused)(void *arg, const char *text);
};

struct discovery {
	const struct discovery_ops *ops;
	struct event_base *base;
	const struct rendezvous *rdzv;
	const struct link_self *self;
	const struct discovery_handler *handler;
	void *arg;
};

struct discovery_ops {
	const char *name;
	size_t size; /* of the struct that begins with a struct discovery */
	/* NODE_DO_LISTEN: the first time it begins to work. */
	void (*listen)(struct discovery *discovery);
	/* NODE_DO_PROBE; NULL where nothing is ever probed. */
	void (*probe)(struct discovery *discovery, uint32_t index, uint32_t number);
	/* NODE_DO_CONNECT: on_target follows, at once or when a name has been looked up. */
	void (*seek)(struct discovery *discovery, int32_t index);
	/* NODE_DO_RECORD; NULL where there are no leases. */
	void (*record)(struct discovery *discovery, const struct recorded_end *end);
	/* What it tries, with which result, for display: "node1:29400: connection refused". */
	void (*explain)(const struct discovery *discovery, struct buf *out);
	void (*done)(struct discovery *discovery);
};

extern const struct discovery_ops discovery_endpoints;
extern const struct discovery_ops discovery_program;

/* The discovery for the configuration. All is borrowed. */
struct discovery *discovery_new(struct event_base *base, const struct rendezvous *rdzv,
				const struct link_self *self,
				const struct discovery_handler *handler, void *arg);
void discovery_free(struct discovery *discovery);

#endif
