/* Which of the agents that are here are fit for the next round. Part of the coordinator.
 *
 * rule: fitness */
#ifndef CORE_ROUNDS_INSPECTION_H
#define CORE_ROUNDS_INSPECTION_H

#include "core/rounds/coordinator_step.h"

/* Judges the agents that are here again, if something about them has changed, and notes who is not
 * fit and who is fit again. */
void inspection_judge(struct step *s);

/* A PING of this member has told of its wall clock: notes a clock that is wrong, its own or that of
 * the coordinator, once. rule: clocks */
void inspection_clock(struct step *s, struct member *member);

/* After a round has formed: notes who is in it although it is not fit. */
void inspection_note_needed(struct step *s);

/* A worker's failure ended the round: a strike against its host. */
void inspection_strike(struct step *s, const struct cause *cause);

#endif
