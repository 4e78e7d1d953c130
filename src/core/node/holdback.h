/* What the two machines of a host, its group and its node, may not hear of yet: an event that has
 * to wait for something outside them is kept here, in order, until that is over.
 *
 * Pure. Every event for either machine goes through holdback_push(); the shell says when something
 * is to be waited for, and when no longer. */
#ifndef CORE_NODE_HOLDBACK_H
#define CORE_NODE_HOLDBACK_H

#include "core/node/node.h"
#include "core/worker/group.h"

/* An event for the group or for the node. */
struct job_event {
	bool for_group;
	union {
		struct group_event group;
		struct node_event node;
	};
};

QUEUE_OF(job);

enum hold {
	/* There is none: a round may form all the same. Its START, and what is asked of the group
	 * after it, wait for the next warden. */
	HOLD_FOR_WARDEN,
	/* The end of a worker is being explained, which takes the others alive: neither that end
	 * nor those after it are known to the group. */
	HOLD_FOR_EXPLANATION,
	/* What the workers printed last is on its way to the job's log (core/lines/log_wait.h): the
	 * node does not know that they have ended. */
	HOLD_FOR_LOG,
	/* What the worker that failed first wrote last is still being read. */
	HOLD_FOR_WORDS,
	HOLD_COUNT,
};

/* All 0 is the beginning. Fields are private. */
struct holdback {
	struct job_queue kept[HOLD_COUNT];
	bool begun[HOLD_COUNT];
};

void holdback_done(struct holdback *holdback);

/* From now on such events wait. */
void holdback_begin(struct holdback *holdback, enum hold why);

/* Puts an event into `queue`, or keeps it. */
void holdback_push(struct holdback *holdback, const struct job_event *event,
		   struct job_queue *queue);

/* They no longer wait: puts those that did into `queue`, unless they have to wait for something
 * else, too. */
void holdback_release(struct holdback *holdback, enum hold why, struct job_queue *queue);

static inline bool holdback_holds(const struct holdback *holdback, enum hold why)
{
	return holdback->begun[why];
}

#endif
