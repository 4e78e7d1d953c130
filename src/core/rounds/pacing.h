/* Who holds the others up: the coordinator compares when the hosts of a round told their steps, and
 * tells a host whose worker comes last too often (core/pace/straggler.h). The same for the times at
 * which the ranks of a group came to their collectives (core/pace/waits.h). Nothing is done about
 * it.
 *
 * Hosts send PACE while their workers tell steps, or have a flight recorder, and only then. */
#ifndef CORE_ROUNDS_PACING_H
#define CORE_ROUNDS_PACING_H

#include "core/rounds/coordinator_step.h"

void pacing_take(struct step *s);

#endif
