/* The coordinator's part of what ranks of all hosts put for each other (core/pmi/want.h), while
 * a round runs:
 *
 *     PUT pairs of a fence   ───►     once all members have put: UNION ───►   its beginning
 *     WANT more of it        ───►                                UNION ───►   so many pieces
 *     WANT key, set, unset   ───►                                VALUE ───►   to this host only
 *
 * It ends with the round. A member that is lost ends the round, so no fence waits for it. */
#ifndef CORE_ROUNDS_EXCHANGE_H
#define CORE_ROUNDS_EXCHANGE_H

#include "core/rounds/coordinator_step.h"

/* A round has formed: nothing is put yet. */
void exchange_begin(struct coordinator *c);
void exchange_done(struct exchange *exchange);

/* PUT and WANT of a member while the round runs. */
void exchange_put(struct step *s);
void exchange_want(struct step *s);

#endif
