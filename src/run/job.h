/* One job on this host, from the first round to the last process.
 *
 * The shell around the cores: it turns sockets, exits, signals and timers into events of the agent
 * (core/rounds/agent.h) and of the local worker group (core/worker/group.h), and carries out what
 * these decide, through the warden and the output thread. It decides nothing. */
#ifndef RUN_JOB_H
#define RUN_JOB_H

#include "core/rounds/agent.h"
#include "run/config.h"
#include "run/tell/history.h"
#include "run/logdir.h"

struct job_result {
	struct history history;
	struct outcome outcome;
	/* still open, for the report; job_result_done() removes an empty one */
	struct logdir logdir;
	bool hurried;	    /* a second signal came while output was still being written */
	struct buf missing; /* losses of logs, one line each */
};

/* Runs the job to its end. 0 when it ran, however it ended; -errno when it could not be set up, and
 * then nothing was started. The caller frees the result in both cases. Call it once, early in a
 * process without threads. */
int job_run(const struct run_config *config, struct job_result *ret_result, struct err *err);

void job_result_done(struct job_result *result);

#endif
