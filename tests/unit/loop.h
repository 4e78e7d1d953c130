/* For tests that turn an event loop until something has happened. */
#ifndef TESTS_UNIT_LOOP_H
#define TESTS_UNIT_LOOP_H

#include <check.h>
#include <event2/event.h>

#include "base/util.h"

#define DEADLINE_S 20 /* a bound, never a measurement */

static void on_deadline(evutil_socket_t fd UNUSED, short what UNUSED, void *arg UNUSED)
{
	ck_abort_msg("nothing happened for %d s", DEADLINE_S);
}

/* Turns the loop until `happened`. */
#define WAIT_FOR(w, happened) \
	do { \
		struct event *deadline_ = evtimer_new((w)->base, on_deadline, NULL); \
		evtimer_add(deadline_, &(struct timeval){ .tv_sec = DEADLINE_S }); \
		while (!(happened)) \
			event_base_loop((w)->base, EVLOOP_ONCE); \
		event_free(deadline_); \
	} while (0)

#endif
