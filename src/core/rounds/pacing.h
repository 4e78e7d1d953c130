/* Who holds the others up: the coordinator joins looks at all ranks (core/pace/looks.h), and the
 * times at which those of a group came to their collectives, and tells a host whose worker is
 * waited for too often (core/pace/waits.h). Steps tell whether ranks wait for each other at all.
 * Nothing is done about it.
 *
 * Hosts send PACE while their workers tell steps, or have a flight recorder, and only then. */
#ifndef CORE_ROUNDS_PACING_H
#define CORE_ROUNDS_PACING_H

#include "core/rounds/coordinator_step.h"

void pacing_take(struct step *s);

#endif
