/* The end of the job: a ruling is made known to all, and only then acted on. Part of the
 * coordinator. */
#ifndef CORE_ROUNDS_CLOSING_H
#define CORE_ROUNDS_CLOSING_H

#include "core/rounds/coordinator_step.h"

/* A ruling that an agent brings from a coordinator that is gone, or that the agents' states
 * imply. */
enum ruling closing_inherited(const struct coordinator *coordinator);

/* Decides: tells all members the ruling, which they acknowledge with JOIN. */
void closing_rule(struct step *s, enum ruling ruling);

/* Those who wait already, or come back, must know it too, before anyone acts on it. */
void closing_tell(struct step *s, const struct member *member);

/* While CLOSING: sends CLOSED when a quorum and all who are here know the ruling. */
void closing_advance(struct step *s);

/* While CLOSED: finished when all have gone, or had the time to. */
void closing_linger(struct step *s);

void closing_send(struct step *s, const struct member *member);

#endif
