/* Time. Decisions use monotonic nanoseconds; the wall clock is for display and for deadlines that
 * other programs give us in it. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <sys/time.h>

#include "base/util.h"

#define NS_PER_US ((uint64_t)1000)
#define NS_PER_MS ((uint64_t)1000000)
#define NS_PER_S ((uint64_t)1000000000)
#define NS_NEVER UINT64_MAX

uint64_t clock_now_ns(void);  /* CLOCK_MONOTONIC */
uint64_t clock_wall_ns(void); /* CLOCK_REALTIME, since the epoch */

/* a + b, but never past NS_NEVER. */
static inline uint64_t ns_add(uint64_t a, uint64_t b)
{
	return a > NS_NEVER - b ? NS_NEVER : a + b;
}

/* A time span for a timer that must not be early: rounded up. */
static inline struct timeval clock_timeval(uint64_t ns)
{
	uint64_t us = ns / NS_PER_US + (ns % NS_PER_US != 0);
	return (struct timeval){ .tv_sec = (time_t)(us / 1000000),
				 .tv_usec = (suseconds_t)(us % 1000000) };
}

/* The time left until a deadline. */
static inline struct timeval clock_left(uint64_t deadline_ns, uint64_t now_ns)
{
	return clock_timeval(deadline_ns > now_ns ? deadline_ns - now_ns : 0);
}

/* The same for poll(), which takes no more at once. */
static inline int clock_left_ms(uint64_t deadline_ns, uint64_t now_ns)
{
	uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
	return (int)MIN(left_ns / NS_PER_MS + (left_ns % NS_PER_MS != 0), (uint64_t)INT32_MAX);
}

/* "2026-11-16T00:32:10.123456Z" */
#define CLOCK_ISO_MAX 32
void clock_iso(uint64_t wall_ns, char text[CLOCK_ISO_MAX]);

/* "950 ms", "2.4 s", "3 min 20 s", "4 h 12 min": for reports. */
#define CLOCK_HUMAN_MAX 32
void clock_human(uint64_t ns, char text[CLOCK_HUMAN_MAX]);

#endif
