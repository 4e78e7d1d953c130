/* This host's answers to questions to the whole job (core/rounds/asking.h).
 *
 * What is known is answered at once; stacks and log files are read by threads. Answers
 * go out piece by piece, as far as the node has room for them, and the loop never waits. */
#ifndef RUN_ASK_ANSWERS_H
#define RUN_ASK_ANSWERS_H

#include <event2/event.h>

#include "core/node/node.h"
#include "run/tell/pages.h"

#define ANSWERS_SOCKET "ask" /* of askers on this host; its name in the job's private directory */

struct answers;

struct answers_hooks {
	/* The next piece of an answer, or what arrives from an asker: step the node now. */
	void (*on_event)(void *arg, const struct node_event *event);
	void (*on_stop)(void *arg);
	bool (*on_restart)(void *arg); /* false: no round is running */
	/* false: no worker here asks for it, or no round is running */
	bool (*on_notice)(void *arg, enum plan_kind kind);
	/* What there was for the job's one log has been sent, as far as there was room. */
	void (*on_log_sent)(void *arg);
	void *arg;
};

/* All is borrowed. */
struct answers *answers_new(struct event_base *base, const struct node *node,
			    const struct pages *pages, const struct answers_hooks *hooks);
void answers_free(struct answers *answers); /* NULL is fine */

/* Lets commands on this host ask, at this socket. `run_id` is borrowed. */
int answers_listen(struct answers *answers, const char *path, const char *run_id,
		   struct routes *routes, struct err *err);

/* A NODE_DO_ASKED: QUESTION or GRANT. Calls no hook before the loop's next turn. */
void answers_take(struct answers *answers, const struct msg *msg);

/* The next round is about to begin: the workers of the last are gone; it has begun. */
void answers_round_ends(struct answers *answers);
void answers_round_begins(struct answers *answers);

/* Whether the coordinator has taken all that was sent for the job's one log. */
bool answers_log_is_taken(const struct answers *answers);

#endif
