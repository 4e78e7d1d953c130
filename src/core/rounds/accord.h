/* The coordinator's part in leaving, or saving, together: all workers of a round do it after the
 * same step. docs/RENDEZVOUS.md, rule `together`, has the reasons.
 *
 *     agents                        coordinator                     agents
 *     NOTICE               ───►     ASKED                  ───►     all workers tell where they are
 *     VOTE at              ───►     PROPOSED step          ───►     nobody goes on after it
 *     VOTE at <= step      ───►     COMMITTED step         ───►     workers act after it
 *
 * A vote with `at` beyond the step is a refusal: a worker had gone on already. Then a later step is
 * proposed, each time further away, since workers that do not wait for each other go on meanwhile.
 *
 * It ends with the round. Agents that know of a notice to leave do not join another one; so if the
 * coordinator dies between any two of these messages, those who act are those who got the same
 * COMMITTED, and nobody acts after another step. */
#ifndef CORE_ROUNDS_ACCORD_H
#define CORE_ROUNDS_ACCORD_H

#include "core/rounds/coordinator_step.h"

/* A member enters a round that has just formed; or it is active no more, while the round runs on.
 */
void accord_begin(struct coordinator *c, const struct member *member);
void accord_end(struct coordinator *c, const struct member *member);

/* NOTICE and VOTE of a member while the round runs. */
void accord_notice(struct step *s);
void accord_vote(struct step *s);

/* A member is done: perhaps it was the last one that others waited for. */
void accord_review(struct step *s);

/* Gives a save up that is not agreed on in time. */
void accord_timer(struct step *s);

uint64_t accord_deadline_ns(const struct accord *accord);

#endif
