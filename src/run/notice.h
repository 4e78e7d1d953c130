/* Notices: all workers of the job are to leave, or to save, together (core/rounds/accord.h). This
 * shows plans to the workers of this host, through their pages, and tells the node what they do.
 *
 * Workers write into memory, which makes no event: while there is a plan, and only then, their
 * pages are looked at every NOTICE_LOOK_NS. */
#ifndef RUN_NOTICE_H
#define RUN_NOTICE_H

#include <event2/event.h>

#include "core/rounds/agent.h"
#include "run/tell/happening.h"
#include "watch/worker_pages.h"

#define NOTICE_LOOK_NS (2 * NS_PER_MS)

struct notice {
	/* Borrowed, for as long as this is used. */
	struct event_base *base;
	const struct group *group;
	const struct agent *agent;
	struct worker_pages *pages;
	struct telling *telling;
	uint64_t left_ns; /* from a notice to its end; 0: there are none */
	/* For the node, perhaps in one of its steps: it takes the event after that. */
	void (*on_event)(void *arg, const struct agent_event *event);
	void *arg;

	struct event *timer; /* NULL until it is needed */
	struct stop_plan shown;
	struct plan_positions told; /* of what is shown */
	bool has_told;
	bool signalled; /* this host got notice itself, since its round began */
};

void notice_done(struct notice *notice);

/* A round begins with fresh pages. */
void notice_begin(struct notice *notice);

/* Gives notice, unless no worker here asks for that, or no round runs: false. */
bool notice_give(struct notice *notice, enum plan_kind kind, int signal);

/* A signal that ends the job, or SIGUSR1: true if it has become a notice. */
bool notice_signal(struct notice *notice, int signal);

/* Shows a plan to the workers, as the node wants it; NONE: they go on as if there were none. */
void notice_show(struct notice *notice, const struct stop_plan *plan);

/* Whether workers of the last round, which have ended, left as agreed, and the state of all is
 * safe. */
bool notice_left(const struct notice *notice);

#endif
