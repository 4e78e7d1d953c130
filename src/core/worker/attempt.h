/* How one life of the worker group on this host ended. */
#ifndef CORE_WORKER_ATTEMPT_H
#define CORE_WORKER_ATTEMPT_H

#include "base/util.h"

enum attempt_end {
	ATTEMPT_RUNNING,
	ATTEMPT_DONE,	   /* every worker ended well */
	ATTEMPT_FAILED,	   /* a worker did not, here or on another node */
	ATTEMPT_STOPPED,   /* by a signal to muster */
	ATTEMPT_REGROUP,   /* nodes came or went */
	ATTEMPT_RESTARTED, /* a user asked for it */
	ATTEMPT_END_COUNT,
};

const char *attempt_end_name(enum attempt_end end);

/* What is known once no process of the group is left. */
struct attempt_facts {
	bool done;	    /* the group said DONE */
	bool failed;	    /* the group said FAILED */
	bool stop_asked;    /* a signal or a request told muster to end */
	bool restart_asked; /* a request told muster to start the group again */
	bool blamed;	    /* the coordinator named the failure that ended the round */
};

enum attempt_end attempt_decide(const struct attempt_facts *facts);

#endif
