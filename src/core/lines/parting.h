/* How long a host keeps back that its workers have ended, so that what they printed last reaches
 * the job's one log: the coordinator may end the job, and with it all connections, as soon as it
 * hears of it. A failure is told at once all the same. Pure. */
#ifndef CORE_LINES_PARTING_H
#define CORE_LINES_PARTING_H

#include "base/clock.h"

/* At most, and at most while the coordinator has not asked for the lines. */
#define PARTING_NS (10 * NS_PER_S)
#define PARTING_UNASKED_NS (2 * NS_PER_S)

/* All 0 is the beginning. Fields are private. */
struct parting {
	bool asked; /* the coordinator wants the lines of this round */
	bool deaf;  /* it never asked, although we waited: it writes no log */
	bool waits;
	uint64_t since_ns;
};

void parting_round(struct parting *parting); /* a round begins */
void parting_asked(struct parting *parting);

/* The workers have ended. False: nothing is to be waited for. */
bool parting_begin(struct parting *parting, uint64_t now_ns);

/* True when the wait is over. `sent`: the workers' pipes are at their ends, and the coordinator has
 * taken all lines. */
bool parting_over(struct parting *parting, bool sent, uint64_t now_ns);

/* When parting_over() is worth calling without news. */
uint64_t parting_deadline_ns(const struct parting *parting);

#endif
