/* What the coordinator does next: it forms a round when those are there who must be, charges the
 * end of the last one, lets newcomers in, and goes on with the end of the job. */
#ifndef CORE_ROUNDS_ADVANCE_H
#define CORE_ROUNDS_ADVANCE_H

#include "core/rounds/coordinator_step.h"

/* Acts on the current counts: after every change of the roster, of a clock or of the lease. */
void advance_job(struct step *s);

#endif
