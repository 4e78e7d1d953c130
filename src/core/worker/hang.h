/* Decides when a worker counts as hung, from samples of what it did.
 *
 * The shell looks at each worker every hang_period_ns() and reports its progress counters (bytes
 * printed, heartbeats) and whether it is in uninterruptible sleep. Pure: no clock. */
#ifndef CORE_WORKER_HANG_H
#define CORE_WORKER_HANG_H

#include "base/util.h"

enum hang_kind {
	HANG_NONE,
	HANG_START,	      /* no sign of life since its start */
	HANG_SILENT,	      /* there were signs of life, and now there are none */
	HANG_UNINTERRUPTIBLE, /* in D state, where no signal reaches it */
	HANG_KIND_COUNT,
};

const char *hang_kind_text(enum hang_kind kind);

struct hang_policy { /* 0: no check */
	uint64_t start_ns;
	uint64_t silent_ns;
	uint64_t uninterruptible_ns;
};

/* Looks per shortest time-out: a verdict is late by at most one part in this many. */
#define HANG_LOOKS 10

/* How often to look; 0: never. */
uint64_t hang_period_ns(const struct hang_policy *policy);

struct hang { /* of one worker */
	uint64_t progress;
	uint64_t alive_ns;	 /* its last sign of life, or its start */
	uint64_t stuck_since_ns; /* in D state; 0: not */
	bool spoke;		 /* there was a sign of life */
	bool told;		 /* a verdict is given once, until the next sign of life */
};

void hang_begin(struct hang *hang, uint64_t now_ns);

/* Worker and watcher stood still for that long: it does not count. */
void hang_pause(struct hang *hang, uint64_t pause_ns);

/* The verdict on the worker now; *ret_since_ns is since when. */
enum hang_kind hang_look(struct hang *hang, const struct hang_policy *policy, uint64_t progress,
			 bool uninterruptible, uint64_t now_ns, uint64_t *ret_since_ns);

#endif
