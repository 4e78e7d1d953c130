/* Forming a round: may it be formed, who is in, which ranks. Part of the coordinator. */
#ifndef CORE_ROUNDS_FORMATION_H
#define CORE_ROUNDS_FORMATION_H

#include "core/rounds/coordinator.h"

/* Members of the last round that are gone for good: they said so. The one who formed it cannot tell
 * us itself: it counts when all who are here saw it die. */
uint32_t formation_gone(const struct coordinator *coordinator);

/* Enough of the rounds before are here that no other coordinator can have enough of them too. */
bool formation_has_quorum(const struct coordinator *coordinator);

/* The same without us having the casting vote of the one who formed the round. */
bool formation_has_majority(const struct coordinator *coordinator);

/* The quorum once all that are linked have come back: false means that others may form rounds. */
bool formation_can_have_quorum(const struct coordinator *coordinator);

/* Forms the next round from READY agents: sets the rounds, the ranks and the statuses. The caller
 * has checked that there are MIN nodes, nobody is busy, and the quorum. */
void formation_form(struct coordinator *coordinator);

/* The FORMED of a member of the current round. */
void formation_msg(const struct coordinator *coordinator, const struct member *member,
		   struct msg *ret_msg);

/* The current round is another one: who knows it has yet to be seen. */
void formation_forget_acks(struct coordinator *coordinator);

/* The base is another: its members that know the current round have to be counted anew. */
void formation_recount_acks(struct coordinator *coordinator);

/* An agent has shown that it knows the current round: it may become the base of the next. */
void formation_ack(struct coordinator *coordinator, struct member *member);

#endif
