/* Whether the job hangs: hosts tell what their workers no longer do (core/worker/hang.h), only when
 * that changes, and the coordinator judges all of them together. A host that tells nothing goes on.
 * Members that are done do not count.
 *
 * The first host to make the verdict complete is told to LOOK: it asks all hosts for the records
 * and places of their workers and finds out who is to blame. If that worker is on another host, it
 * says so (FOUND), and that host is told to end it: so the round fails with the worker that holds
 * the others up as its cause. A look that found nothing is repeated when the host asks for it, a
 * time-out later.
 *
 * rule: silence */
#ifndef CORE_ROUNDS_SILENCE_H
#define CORE_ROUNDS_SILENCE_H

#include "core/rounds/coordinator_step.h"

void silence_take(struct step *s);  /* SIGNS */
void silence_found(struct step *s); /* FOUND */

/* A member becomes done; the review comes after its status has changed. */
void silence_done(struct step *s, struct member *member);
void silence_review(struct step *s);

void silence_forget(struct coordinator *c); /* the round is past */

#endif
