/* Forms a round: may it form, who is in it, with which ranks. Part of the coordinator. */
#ifndef CORE_ROUNDS_FORMATION_H
#define CORE_ROUNDS_FORMATION_H

#include "core/rounds/coordinator.h"

/* Members of the last round that are gone for good: they sent LEAVE. Its coordinator cannot tell us
 * itself: it counts when all present members saw it die. */
uint32_t formation_gone(const struct coordinator *coordinator);

/* Not the members of previous rounds decide, but the lease of an arbiter. rule: fence */
bool formation_by_lease(const struct coordinator *coordinator);

/* Enough members of the previous rounds are here that no other coordinator can have enough too. */
bool formation_has_quorum(const struct coordinator *coordinator);

/* `heard` never had, and never can have, workers on more than half of the members of `base`, which
 * are here: what follows needs a quorum of `base` only. */
bool formation_heard_is_void(const struct coordinator *coordinator);

/* Enough members of both rounds know the ruling that each later quorum contains one of them.
 * half_is_enough: with the casting vote of the coordinator that formed the round. */
bool formation_may_close(const struct coordinator *coordinator, bool half_is_enough);

/* How many more agents the quorum needs, of the previous round or, before the first, of any; 0 if
 * it is there. */
uint32_t formation_missing(const struct coordinator *coordinator);

/* The quorum if all linked members come back: false means that others may form rounds. */
bool formation_can_have_quorum(const struct coordinator *coordinator);

/* Forms the next round from READY agents: sets the rounds, the ranks and the statuses. The caller
 * has checked that there are MIN nodes, that none is busy, and the quorum. */
void formation_form(struct coordinator *coordinator);

/* The FORMED of a member of the current round. */
void formation_msg(const struct coordinator *coordinator, const struct member *member,
		   struct msg *ret_msg);

/* The current round has changed: no agent has shown yet that it knows it. */
void formation_forget_acks(struct coordinator *coordinator);

/* The base has changed: counts again which of its members know the current round. */
void formation_recount_acks(struct coordinator *coordinator);

/* An agent has shown that it knows the current round, which may make it the base. */
void formation_ack(struct coordinator *coordinator, struct member *member);

#endif
