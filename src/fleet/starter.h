/* Starts a job on many hosts from one terminal (`muster run --hosts`): reaches them, has an agent
 * started on each, shows their output, passes on signals, and ends with the job's exit code. Or
 * starts `muster doctor` on each, and keeps what each prints.
 *
 * core/fleet/fleet.h decides; fleet/relay.h is the other end. */
#ifndef FLEET_STARTER_H
#define FLEET_STARTER_H

#include <signal.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/strv.h"
#include "core/fleet/hostfile.h"
#include "core/worker/exit_status.h"

#define STARTER_TEXT_MAX 256
#define STARTER_OUTPUT_MAX ((size_t)1 << 20) /* of a host; more is read and forgotten */

/* What a host has printed, and how it ended. */
struct starter_answer {
	char *name;	    /* that its agent is told, from the caller */
	struct buf outs[2]; /* stdout, stderr */
	char version[32];   /* of muster there; "": it was not reached */
	bool late, lost;    /* it was not reached in time, or did not end; not at all, or no more */
	char why[STARTER_TEXT_MAX]; /* it was lost */
	struct exit_status status;  /* if it was not */
};

void starter_answer_done(struct starter_answer *answer);

struct starter_config {
	const struct hostfile *hosts;
	uint32_t min_nodes, max_nodes;
	uint32_t fanout;
	uint64_t timeout_ns; /* for a host to answer */
	uint64_t run_ns;     /* for agents to end; 0: any time */
	const char *ssh;     /* the command and its options, words with blanks between them */
	const char *program; /* our own path: tried first on the other hosts */
	sigset_t stop_signals;

	/* For the agents. */
	const char *token;    /* the secret of the job */
	const char *endpoint; /* NULL: on the first hosts */
	/* "run"; or "batch": a coordinator elsewhere has the orders and tells how it ended; or
	 * "doctor", which gets nothing but its options. */
	const char *what;
	/* One for each host, which is filled in; nothing is shown then. NULL: all is shown. */
	struct starter_answer *answers;
	const struct strv *options; /* as typed */
	const char *conf;	    /* --rdzv-conf as typed */
	const char *run_id;	    /* NULL: the user has named the job */
	const struct strv *command;
};

/* Returns the exit code; -errno if nothing could be started. */
int starter_run(const struct starter_config *config, struct err *err);

#endif
