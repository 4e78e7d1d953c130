/* The coordinator loses a member, or is about to lose its lease: which workers may still run, and
 * whether the round can go on. */
#ifndef CORE_ROUNDS_LOSSES_H
#define CORE_ROUNDS_LOSSES_H

#include "core/rounds/coordinator_step.h"

/* LEAVE and LINK_DOWN. */
void losses_leave(struct step *s);
void losses_link_down(struct step *s);

/* Who of the last round was lost first and is not back. False: nobody, or it is not known. */
bool losses_cause(struct step *s, struct cause *ret_cause);

/* A host that the job needs is lost: how long it is waited for. 0: for ever. rule: lost-host */
uint64_t losses_patience_ns(const struct coordinator *coordinator);

/* LEASE: it lasts longer now. */
void losses_renew(struct step *s);

/* Both before every event. Before our lease can end, and another coordinator begin, all workers
 * must be dead. rule: fence */
void losses_keep_fence(struct step *s);
/* rule: silence-first: after a pause, messages may come from agents that have left since. */
void losses_part_silent(struct step *s);

#endif
