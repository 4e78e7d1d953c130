/* How long a host keeps back that its workers have ended, so that what they printed last reaches
 * the job's one log: the coordinator may end the job, and with it all connections, as soon as it
 * hears of it. A failure is told at once all the same. Pure. */
#ifndef CORE_LINES_LOG_WAIT_H
#define CORE_LINES_LOG_WAIT_H

#include "base/clock.h"

/* At most, and at most while the coordinator has not asked for the lines. */
#define LOG_WAIT_NS (10 * NS_PER_S)
#define LOG_WAIT_UNASKED_NS (2 * NS_PER_S)

/* All 0 is the beginning. Fields are private. */
struct log_wait {
	bool asked; /* the coordinator wants the lines of this round */
	bool deaf;  /* it never asked, although we waited: it writes no log */
	bool waits;
	uint64_t since_ns;
};

void log_wait_round(struct log_wait *wait); /* a round begins */
void log_wait_asked(struct log_wait *wait);

/* The workers have ended. False: nothing is to be waited for. */
bool log_wait_begin(struct log_wait *wait, uint64_t now_ns);

/* True when the wait is over. `sent`: the workers' pipes are at their ends, and the coordinator has
 * taken all lines. */
bool log_wait_over(struct log_wait *wait, bool sent, uint64_t now_ns);

/* When log_wait_over() is worth calling without news. */
uint64_t log_wait_deadline_ns(const struct log_wait *wait);

#endif
