/* Has the nodes measure the wires between them before a round forms. Part of the coordinator.
 *
 * core/checks/pairs.h chooses the pairs and judges; this sends PAIR, gathers PAIRED, and gives up
 * waiting in time: a measurement that fails says nothing, and keeps no round from forming.
 *
 * rule: pairs */
#ifndef CORE_ROUNDS_PAIRING_H
#define CORE_ROUNDS_PAIRING_H

#include "core/rounds/coordinator_step.h"

/* For connections and slow answers, beside the time in which bytes flow. */
#define PAIRING_SLACK_NS (2 * NS_PER_S)
#define PAIRING_SHARES 8 /* of struct msg_pair's `ms` */

void pairing_done(struct pairing *pairing);

/* True: the next round waits for a measurement, which this begins if one is due. It looks again
 * after each PAIRED and at the deadline. */
bool pairing_holds(struct step *s);

static inline bool pairing_is_under_way(const struct coordinator *c, uint64_t now_ns)
{
	return c->pairing.active && now_ns < c->pairing.deadline_ns;
}

/* MSG_PAIRED. */
void pairing_take(struct step *s);

/* A failure ended the round: all wires are due again. */
void pairing_expire(struct coordinator *c);

#endif
