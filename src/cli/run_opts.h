/* The options of `muster run`: those of torchrun, and a few of our own. */
#ifndef CLI_RUN_OPTS_H
#define CLI_RUN_OPTS_H

#include "cli/opt.h"
#include "run/config.h"

extern const struct opt run_opts[]; /* fills a struct run_options */

/* The arguments of the command at argv[first]. The parser has dropped a "--" directly before it;
 * without one, a "--" directly after it is dropped. */
char *const *run_opts_args(char **argv, int first);

#endif
