/* Says once, by itself, that the workers of this host tell no step for far longer than usual
 * (core/worker/standstill.h), and that they go on.
 *
 * Looks every STILL_LOOK_NS while workers that may tell steps run, and never otherwise. */
#ifndef RUN_PACE_STILL_WATCH_H
#define RUN_PACE_STILL_WATCH_H

#include <event2/event.h>

#include "run/tell/happening.h"

#define STILL_LOOK_NS (15 * NS_PER_S)

struct still_watch {
	struct telling *telling; /* borrowed */
	struct event *timer;
	struct standstill standstill;
};

void still_watch_open(struct still_watch *watch, struct event_base *base, struct telling *telling);
void still_watch_close(struct still_watch *watch);

void still_watch_begin(struct still_watch *watch); /* a round begins */
void still_watch_wake(struct still_watch *watch);  /* a worker has asked for its page */

#endif
