/* `muster batch --noise`: how good this host is for measuring. */
#ifndef BATCH_NOISE_CHECK_H
#define BATCH_NOISE_CHECK_H

#include "batch/config.h"

/* Runs one command against itself with the options of a batch and prints what the runs say.
 * `command` NULL: a loop of the shell. Returns the exit code. */
int noise_check(const struct batch_config *config, const char *command);

#endif
