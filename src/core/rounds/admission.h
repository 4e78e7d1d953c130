/* Handles a JOIN: may its sender take part, and what does its memory tell a coordinator that does
 * not know the job yet. Part of the coordinator. */
#ifndef CORE_ROUNDS_ADMISSION_H
#define CORE_ROUNDS_ADMISSION_H

#include "core/rounds/coordinator_step.h"

/* Makes the sender of a JOIN a READY member. NULL if it was refused or disconnected, or if it knows
 * of a higher ballot and this coordinator has stepped down. */
struct member *admission_join(struct step *s);

/* No job gets there by counting, and the ballots above it must not run out. */
bool admission_is_beyond_reason(const struct coordinator *c, struct ballot ballot);

#endif
