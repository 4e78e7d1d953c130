/* Starts a job on many hosts from one terminal (`muster run --hosts`): reaches them, has an agent
 * started on each, shows their output, passes on signals, and ends with the job's exit code.
 *
 * core/fleet/fleet.h decides; fleet/relay.h is the other end. */
#ifndef FLEET_STARTER_H
#define FLEET_STARTER_H

#include <signal.h>

#include "base/err.h"
#include "base/strv.h"
#include "core/fleet/hostfile.h"

struct starter_config {
	const struct hostfile *hosts;
	uint32_t min_nodes, max_nodes;
	uint32_t fanout;
	uint64_t timeout_ns;
	const char *ssh;     /* the command and its options, words with blanks between them */
	const char *program; /* our own path: tried first on the other hosts */
	sigset_t stop_signals;

	/* For the agents. */
	const char *token;    /* the secret of the job */
	const char *endpoint; /* NULL: on the first hosts */
	/* The agents are those of `muster batch`: a coordinator elsewhere has the orders and tells
	 * how it ended. */
	bool batch;
	const struct strv *options; /* as typed */
	const char *conf;	    /* --rdzv-conf as typed */
	const char *run_id;	    /* NULL: the user has named the job */
	const struct strv *command;
};

/* Returns the exit code; -errno if nothing could be started. */
int starter_run(const struct starter_config *config, struct err *err);

#endif
