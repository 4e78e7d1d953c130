/* The coordinator loses a member, or is about to lose its lease: which workers may still run, and
 * whether the round can go on. */
#ifndef CORE_ROUNDS_LOSSES_H
#define CORE_ROUNDS_LOSSES_H

#include "core/rounds/coordinator_step.h"

/* LEAVE and LINK_DOWN. */
void losses_leave(struct step *s);
void losses_link_down(struct step *s);

/* LEASE: it lasts longer now. */
void losses_renew(struct step *s);

/* Both before every event. Before our lease can end, and another coordinator begin, all workers
 * must be dead. rule: fence */
void losses_keep_fence(struct step *s);
/* rule: silence-first: after a pause, messages may come from agents that have left since. */
void losses_part_silent(struct step *s);

#endif
