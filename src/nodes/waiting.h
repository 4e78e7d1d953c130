/* Messages of an agent that waits for a round: every WAITING_PERIOD_NS, what it waits for, since
 * when, and when it will give up. */
#ifndef NODES_WAITING_H
#define NODES_WAITING_H

#include "base/buf.h"
#include "base/clock.h"
#include "core/rounds/agent.h"

#define WAITING_PERIOD_NS (10 * NS_PER_S)

struct waiting {
	uint64_t since_ns; /* NS_NEVER: does not wait */
	uint64_t next_ns;  /* when to log the next message */
	bool as_spare;	   /* logged once, which is enough */
};

#define WAITING_INIT ((struct waiting){ .since_ns = NS_NEVER, .next_ns = NS_NEVER })

/* Call it after every step of the agent. */
void waiting_update(struct waiting *waiting, const struct agent *agent, uint64_t now_ns);

/* True if a message is due, which it appends to `out`. `tried` is the state of the search for a
 * coordinator; `reach`, unless NULL, is the address of the coordinator here, if no other host can
 * reach it. */
bool waiting_say(struct waiting *waiting, const struct agent *agent, const char *tried,
		 const char *reach, uint64_t now_ns, struct buf *out);

/* Why no round formed, for an agent that gave up waiting. */
void waiting_in_vain(const struct agent *agent, bool linked, const char *tried, struct buf *out);

#endif
