/* muster run in the place of torchrun: Python's start gave it the process (docs/frameworks.md).
 * What only torch's own launcher can do, that does: it gets the process back. */
#ifndef CLI_STAND_IN_H
#define CLI_STAND_IN_H

#include <stdbool.h>

#include "run/options.h"

struct stand_in {
	char *python; /* the interpreter that was started; NULL: we are in nobody's place */
	char *module; /* that it was to run */
};

/* Workers do not find in their environment what this has read. */
void stand_in_take(struct stand_in *ret);
void stand_in_done(struct stand_in *stand_in);

/* torch.distributed.launch, unlike torchrun, gives each script its local rank as an argument. */
bool stand_in_passes_rank(const struct stand_in *stand_in);

/* Why muster cannot do this, and only torch's launcher can; NULL: it can. */
const char *stand_in_why_not(const struct run_options *options);

/* Becomes torch's launcher, with the same arguments; returns the exit code if that fails. */
int stand_in_leave(const struct stand_in *stand_in, char **argv, const char *why);

#endif
