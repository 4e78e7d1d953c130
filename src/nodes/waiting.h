/* What an agent that waits for a round tells its user, and when: every WAITING_PERIOD_NS, with what
 * it waits for, since when, and when it will give up. */
#ifndef NODES_WAITING_H
#define NODES_WAITING_H

#include "base/buf.h"
#include "base/clock.h"
#include "core/rounds/agent.h"

#define WAITING_PERIOD_NS (10 * NS_PER_S)

struct waiting {
	uint64_t since_ns; /* NS_NEVER: does not wait */
	uint64_t next_ns;  /* when to say so */
	bool as_spare;	   /* said once, that is enough */
};

#define WAITING_INIT ((struct waiting){ .since_ns = NS_NEVER, .next_ns = NS_NEVER })

/* After every step of the agent. */
void waiting_update(struct waiting *waiting, const struct agent *agent, uint64_t now_ns);

/* True if something is to be said now; it is appended to `out`. `tried` says what became of the
 * search for a coordinator; `reach`, unless NULL, is where it is here, if nobody elsewhere can
 * reach that. */
bool waiting_say(struct waiting *waiting, const struct agent *agent, const char *tried,
		 const char *reach, uint64_t now_ns, struct buf *out);

/* Why no round came about, for an agent that has waited in vain. */
void waiting_in_vain(const struct agent *agent, bool linked, const char *tried, struct buf *out);

#endif
