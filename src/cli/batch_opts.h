/* The options of `muster batch`: fields of struct batch_config. */
#ifndef CLI_BATCH_OPTS_H
#define CLI_BATCH_OPTS_H

#include "cli/opt.h"

extern const struct opt batch_opts[];

#endif
