/* The end of the job: the coordinator makes a ruling known to all, and only then acts on it. */
#ifndef CORE_ROUNDS_CLOSING_H
#define CORE_ROUNDS_CLOSING_H

#include "core/rounds/coordinator_step.h"

/* The ruling that an agent brings from an earlier coordinator, or that the agents' states imply. */
enum ruling closing_inherited(const struct coordinator *coordinator);

/* Makes the ruling and tells it to all members, which acknowledge with JOIN. */
void closing_rule(struct step *s, enum ruling ruling);

/* Tells it to a member that waits already, or comes back, before any agent acts on it. */
void closing_tell(struct step *s, const struct member *member);

/* While CLOSING: sends CLOSED when a quorum and all connected members know the ruling. */
void closing_advance(struct step *s);

/* While CLOSED: finished when all have gone, or had time to. */
void closing_linger(struct step *s);

void closing_send(struct step *s, const struct member *member);

/* Sends CLOSED in answer to the JOIN of an agent of a job that an earlier coordinator closed. */
void closing_send_past(struct step *s);

#endif
