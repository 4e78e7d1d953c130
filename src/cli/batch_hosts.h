/* The hosts of `muster batch`: how they find each other, from the command line and the engine. */
#ifndef CLI_BATCH_HOSTS_H
#define CLI_BATCH_HOSTS_H

#include "batch/config.h"
#include "cli/command.h"
#include "core/host/engine.h"

/* Fills in config->rdzv if there are several; it borrows `engine` and `rdzv`. Returns 0, or the
 * exit code of an error that was told. */
int batch_hosts_find(const struct command *self, struct batch_config *config,
		     struct engine_settings *engine, struct rendezvous *rdzv);

#endif
