/* This process's part in the job's rounds: alone with a coordinator of its own
 * (core/rounds/local.h), or as a node among others (nodes/wiring.h). To the job both look the same.
 */
#ifndef RUN_MEMBERSHIP_H
#define RUN_MEMBERSHIP_H

#include "core/rounds/local.h"
#include "nodes/wiring.h"
#include "run/config.h"

struct membership {
	struct local local;
	struct wiring *node; /* NULL: alone */
};

/* All but this struct is borrowed. */
int membership_init(struct membership *membership, struct event_base *base,
		    const struct run_config *config, const struct wiring_handler *handler,
		    void *arg, struct err *err);
void membership_done(struct membership *membership);

/* The address at which this host would serve the workers' store of the next round. */
void membership_set_store(struct membership *membership, const char *host, uint16_t port);

/* As wiring_step(). */
void membership_step(struct membership *membership, const struct agent_event *event,
		     uint64_t now_ns, struct agent_actions *actions);
uint64_t membership_deadline_ns(const struct membership *membership);

const struct agent *membership_agent(const struct membership *membership);

#endif
