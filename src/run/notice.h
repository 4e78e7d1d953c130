/* Notices: all workers of the job are to leave, or to save, together (core/rounds/accord.h). This
 * shows plans to the workers of this host, through their pages, and tells the node what they do.
 *
 * Workers write into memory, which makes no event: while there is a plan, and only then, their
 * pages are looked at every NOTICE_LOOK_NS. */
#ifndef RUN_NOTICE_H
#define RUN_NOTICE_H

#include "core/worker/stop_plan.h"

#define NOTICE_LOOK_NS (2 * NS_PER_MS)

struct job;

struct notice {
	struct event *timer; /* NULL until it is needed */
	struct stop_plan shown;
	struct plan_positions told; /* of what is shown */
	bool has_told;
	bool signalled; /* this host got notice itself, since its round began */
};

void notice_done(struct notice *notice);

/* A round begins with fresh pages. */
void notice_begin(struct job *job);

/* Gives notice, unless no worker here asks for that, or no round runs: false. */
bool notice_give(struct job *job, enum plan_kind kind, int signal);

/* A signal that ends the job, or SIGUSR1: true if it has become a notice. */
bool notice_signal(struct job *job, int signal);

/* Shows a plan to the workers, as the node wants it; NONE: they go on as if there were none. */
void notice_show(struct job *job, const struct stop_plan *plan);

/* Whether workers of the last round, which have ended, left as agreed, and the state of all is
 * safe. */
bool notice_left(const struct job *job);

#endif
