/* What the agent passes on between its host and the coordinator and decides nothing about: figures
 * of the host and of its workers up, what is asked of them down. */
#ifndef CORE_ROUNDS_AGENT_PASS_H
#define CORE_ROUNDS_AGENT_PASS_H

#include "core/rounds/agent_step.h"

/* Before a round: who may use the store here, and the wire to another node (rule: pairs). */
void agent_pass_peers(struct step *s);
void agent_pass_pair(struct step *s);
void agent_pass_measured(struct step *s);

/* While it runs: how the workers keep pace, and whether they hang (rule: silence). */
void agent_pass_pace(struct step *s);
void agent_pass_late(struct step *s);
void agent_pass_signs(struct step *s);
void agent_pass_found(struct step *s);
void agent_pass_look(struct step *s);

/* Pairs of MPI's ranks (core/pmi/want.h): PUT and WANT up, UNION and VALUE down. */
void agent_pass_put(struct step *s);
void agent_pass_want(struct step *s);
void agent_pass_exchanged(struct step *s);

#endif
