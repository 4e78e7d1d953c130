/* MPI in the workers: what it asks of the job's machines. */
#include "run/job_private.h"

#include <signal.h>
#include <stdio.h>

#include "base/log.h"

/* Callers do not expect the machines to be stepped. */
static void pump_soon(struct job *job)
{
	event_active(job->timer, EV_TIMEOUT, 0);
}

static void on_failed(void *arg, size_t rank, enum failure_reason reason,
		      const struct exit_status *status, const char *text)
{
	struct job *job = arg;
	int signal = reason == FAILURE_ABORT ? SIGTERM : SIGKILL;
	if (job->group.state != GROUP_ACTIVE)
		return;
	if (!*job->cause.blame.text) {
		snprintf(job->cause.blame.text, sizeof(job->cause.blame.text), "%s", text);
		TELL_LATER(&job->telling, HAPPENED_HANG_EXPLAINED, .text = job->cause.blame.text);
	}
	TELL_LATER(&job->telling, HAPPENED_WORKER_CONDEMNED, .rank = rank, .reason = reason,
		   .signal = signal);
	job_push_group(job, (struct group_event){ GROUP_EV_EXPIRED, .rank = rank, .reason = reason,
						  .status = *status, .signal = signal });
	pump_soon(job);
}

static void on_fence(void *arg UNUSED, uint32_t seq UNUSED, struct bytes pairs UNUSED)
{
}

void job_open_mpi(struct job *job)
{
	static const struct mpi_handler handler = { .on_failed = on_failed, .on_fence = on_fence };
	job->workers.mpi = mpi_new(job->config, job->base, &handler, job);
}
