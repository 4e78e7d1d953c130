/* Checks of this host while the job runs: of itself, between a failed attempt and the next, and of
 * the wires to other nodes. What comes of them goes to the node.
 *
 * A child, `muster doctor --json`, does the former: this process has threads, and its loop must not
 * wait for anything. rule: checking */
#ifndef RUN_CHECKS_JOB_CHECKS_H
#define RUN_CHECKS_JOB_CHECKS_H

#include "base/piped.h"
#include "core/rounds/agent.h"
#include "run/checks/measuring.h"
#include "run/config.h"

struct job_checks {
	/* Borrowed, for as long as this is used. */
	struct event_base *base;
	const struct run_config *config;
	/* AGENT_CHECKED and AGENT_MEASURED, from the loop; what they point to is borrowed. */
	void (*on_event)(void *arg, const struct agent_event *event);
	void *arg;

	struct check_counters counters;
	struct measuring *measuring; /* NULL: this node does not measure wires */
	struct piped child;	     /* pid 0: none is under way */
	struct event *on_output, *on_end;
	struct buf output;
	struct err failed; /* it could not be started */
};

/* Fill in the borrowed part first. Listens for nodes that measure the wire to this one, if the user
 * wants wires measured, and sets where and for how long in `node`. */
void job_checks_open(struct job_checks *checks, struct node_info *node);
void job_checks_done(struct job_checks *checks); /* ends the children */

/* AGENT_CHECK: begins the checks between two attempts, unless they are under way. */
void job_checks_begin(struct job_checks *checks);

/* AGENT_MEASURE: begins to measure; the next round begins, and measuring ends. */
void job_checks_measure(struct job_checks *checks, const struct msg_pair *pair);
void job_checks_stop_measuring(struct job_checks *checks);

#endif
