/* Discovery: who coordinates the job, and where. One table of functions for each way to find out.
 *
 * A discovery makes no links and runs no coordinator; it says through its handler what to do, and
 * is told when what it found is lost. Its callbacks come from the loop, never from inside one of
 * its own functions, and may call all of them but free().
 */
#ifndef NODES_DISCOVERY_H
#define NODES_DISCOVERY_H

#include "base/buf.h"
#include "net/link.h"
#include "nodes/rendezvous.h"

struct event_base;

/* A term of office as coordinator; see struct coordinator_config. */
struct discovery_term {
	uint64_t epoch;
	int32_t index;
};

struct discovery_handler {
	/* This process listens here, under `name`, from now on: answer probes, let agents in while
	 * it coordinates. `listen_fd` is handed over. */
	void (*on_listen)(void *arg, int listen_fd, const struct addr_name *name);
	/* Somebody coordinates there: link to it, unless there is a link. `dead_indexes`, here and
	 * below, are for the agent's next LINK_UP (core/rounds/finder.h). */
	void (*on_found)(void *arg, const struct link_target *target, uint64_t dead_indexes);
	/* This process is to coordinate, and its agent to be linked to that, unless it has a
	 * link. */
	void (*on_chosen)(void *arg, const struct discovery_term *term, uint64_t dead_indexes);
	/* The coordinator here, if there is one, has to give way. With an epoch, which is that of
	 * the newest one, the link that there is may belong to one of the past, too. */
	void (*on_superseded)(void *arg, uint64_t epoch);
	/* Somebody is there and will never let us in, or we cannot listen where we must: why. */
	void (*on_barred)(void *arg, const char *text);
	/* What the coordinator here, if there is one, says of itself. */
	void (*standing)(void *arg, bool *ret_settled, struct ballot *ret_ballot);
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
	/* Begins to look. The first callbacks follow from the loop. */
	int (*start)(struct discovery *discovery, struct err *err);
	/* The link to what was found could not be made or has ended, or the coordinator here has
	 * stepped down. `linked`: the agent had a link since the last time. */
	void (*lost)(struct discovery *discovery, bool linked);
	/* What it tries and what came of it, for people: "node1:29400: nobody listens there". */
	void (*explain)(const struct discovery *discovery, struct buf *out);
	void (*done)(struct discovery *discovery);
};

extern const struct discovery_ops discovery_endpoints;
extern const struct discovery_ops discovery_program;

/* The one that the configuration asks for. All is borrowed. */
struct discovery *discovery_new(struct event_base *base, const struct rendezvous *rdzv,
				const struct link_self *self,
				const struct discovery_handler *handler, void *arg);
void discovery_free(struct discovery *discovery);

#endif
