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

static void on_exchange(void *arg, const struct agent_event *event)
{
	job_push_agent(arg, *event);
	pump_soon(arg);
}

void job_refuse_mpi(struct job *job)
{
	const struct exit_status status = { .kind = EXIT_CODE, .value = EXIT_CODE_FAILED };
	on_failed(job, 0, FAILURE_PMI, &status,
		  "the coordinator is of a version that does not serve MPI programs on several "
		  "hosts: start the same muster everywhere");
}

void job_open_mpi(struct job *job)
{
	static const struct mpi_handler handler = { .on_failed = on_failed,
						    .on_exchange = on_exchange };
	job->workers.mpi = mpi_new(job->config, job->base, &handler, job);
}
