/* Classes of failures, how sure one is of them, and what to do. */
#ifndef CORE_WORKER_FAILURE_CLASS_H
#define CORE_WORKER_FAILURE_CLASS_H

enum failure_class {
	CLASS_UNKNOWN,
	CLASS_CODE,	     /* the program is wrong */
	CLASS_DATA,	     /* what it read is */
	CLASS_HOST,	     /* this host, as a whole */
	CLASS_DEVICE,	     /* a GPU or the like */
	CLASS_NETWORK,	     /* between hosts, or a peer that is gone */
	CLASS_STORAGE,	     /* a disk or file system */
	CLASS_MEMORY,	     /* of the host or a device: used up */
	CLASS_PREEMPTION,    /* somebody wanted it gone: a scheduler, a user */
	CLASS_CONFIGURATION, /* options, environment, installation */
	FAILURE_CLASS_COUNT,
};

enum failure_certainty {
	CERTAINTY_GUESS,
	CERTAINTY_LIKELY,
	CERTAINTY_KNOWN,
	CERTAINTY_COUNT,
};

enum failure_advice {
	ADVICE_NONE,
	ADVICE_RESTART,	  /* here will do */
	ADVICE_ELSEWHERE, /* restart on another host */
	ADVICE_FIX,	  /* a restart fails again until something is changed */
	FAILURE_ADVICE_COUNT,
};

const char *failure_class_name(enum failure_class class);
const char *failure_certainty_name(enum failure_certainty certainty);
const char *failure_advice_name(enum failure_advice advice);

#endif
