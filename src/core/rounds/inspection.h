/* Which of the agents that are here are fit for the next round. Part of the coordinator.
 *
 * rule: fitness */
#ifndef CORE_ROUNDS_INSPECTION_H
#define CORE_ROUNDS_INSPECTION_H

#include "core/rounds/coordinator_step.h"

/* Judges the agents that are here again, if something about them has changed, and notes who is not
 * fit and who is fit again. */
void inspection_judge(struct step *s);

/* After a round has formed: notes who is in it although it is not fit. */
void inspection_note_needed(struct step *s);

/* A worker's failure ended the round: a strike against its host. */
void inspection_strike(struct step *s, const struct cause *cause);

#endif
