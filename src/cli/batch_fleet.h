/* `muster batch --hosts`: the orders run on other hosts, over ssh; this process reads them, writes
 * the results and coordinates. A child reaches the hosts and has `muster batch` started on each
 * (fleet/starter.h); these connect to this process. */
#ifndef CLI_BATCH_FLEET_H
#define CLI_BATCH_FLEET_H

#include <sys/types.h>

#include "base/strv.h"
#include "batch/config.h"
#include "cli/command.h"
#include "core/fleet/hostfile.h"

struct batch_fleet {
	bool prepared;
	struct hostfile hosts;
	struct strv options;	       /* for the hosts */
	char *token, *run_id, *conf;   /* for the hosts */
	char *own_endpoint, *own_conf; /* for this process */
	pid_t starter;		       /* 0: not started */
	int lifeline;		       /* -1, or end of file: the starter has ended */
};

#define BATCH_FLEET_INIT ((struct batch_fleet){ .hosts = HOSTFILE_INIT, .lifeline = -1 })

/* In the terminal: checks the options and sets config->meeting for this process. Returns 0, or the
 * exit code of an error that was told, as the other two do. */
int batch_fleet_prepare(const struct command *self, struct batch_config *config,
			const struct opt_seen *seen, char **argv, int first,
			struct batch_fleet *fleet);

/* Starts the hosts, and sets config->hosts_fd. */
int batch_fleet_start(struct batch_config *config, struct batch_fleet *fleet);

/* On one of the hosts: where the terminal is. */
int batch_fleet_join(const struct command *self, struct batch_config *config,
		     struct batch_fleet *fleet);

/* Ends the starter, if it has not ended: nothing is left on any host then. */
void batch_fleet_done(struct batch_fleet *fleet);

#endif
