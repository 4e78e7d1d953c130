/* `muster run --hosts`: the job starts on other hosts, from here. */
#ifndef CLI_RUN_HOSTS_H
#define CLI_RUN_HOSTS_H

#include "cli/command.h"
#include "run/options.h"

/* argv[first] is the command of the workers. Returns the exit code. */
int run_on_hosts(const struct command *self, const struct run_options *o,
		 const struct opt_seen *seen, char **argv, int first);

#endif
