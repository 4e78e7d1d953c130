/* One job on this host, from the first round to the last process gone.
 *
 * The shell around the cores: sockets, exits, signals and timers become events of the agent
 * (core/rounds/agent.h) and of the local worker group (core/worker/group.h), and what these decide
 * is carried out through the warden and the output thread. Nothing is decided here.
 */
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
	bool hurried;	    /* told to end once more, while output was still waited for */
	struct buf missing; /* what could not be written to logs, one line each */
};

/* Runs the job to its end. 0 when it ran, however it ended; -errno when it could not be set up, and
 * then nothing was started. The result is the caller's in both cases. Call it once, early in a
 * process without threads. */
int job_run(const struct run_config *config, struct job_result *ret_result, struct err *err);

void job_result_done(struct job_result *result);

#endif
