/* The job's one log (--job-log): the job's part in sending its lines and in writing them. */
#include "run/job_private.h"

#include <inttypes.h>

static void on_event(void *arg, const struct node_event *event)
{
	struct job *job = arg;
	job_push_node(job, *event);
	job_pump(job);
}

void job_open_log(struct job *job)
{
	const struct own_question_hooks hooks = { on_event, job };
	const struct run_config *config = job->config;
	if (!config->job_log)
		return;
	job->log_sender = log_sender_new(job->base, job->output);
	job->log_writer = log_writer_new(job->base, config->job_log,
					 config->streams.output.log_max_size, &job->routes, &hooks);
	job->pages.log_sender = job->log_sender;
}

void job_close_log(struct job *job)
{
	if (!job->log_sender)
		return;
	log_writer_free(job->log_writer);
	log_sender_free(job->log_sender);
}

void job_log_round(struct job *job)
{
	parting_round(&job->parting);
}

void job_log_asked(struct job *job)
{
	parting_asked(&job->parting);
}

void job_part(struct job *job, struct agent_event event)
{
	if (job->log_sender && parting_begin(&job->parting, clock_now_ns())) {
		holdback_begin(&job->holdback, HOLD_FOR_LOG);
		log_sender_hurry(job->log_sender, true);
	}
	job_push_agent(job, event);
}

void job_log_stepped(struct job *job)
{
	if (!job->log_sender)
		return;
	if (!job->node.coordinator)
		log_writer_pause(job->log_writer);
	if (!holdback_holds(&job->holdback, HOLD_FOR_LOG))
		return;
	bool sent = output_is_drained(job->output) && log_sender_is_empty(job->log_sender) &&
		    answers_log_is_taken(job->answers);
	if (!parting_over(&job->parting, sent, clock_now_ns()))
		return;
	log_sender_hurry(job->log_sender, false);
	job_release(job, HOLD_FOR_LOG);
}

void job_log_missing(struct job *job, struct buf *missing)
{
	if (!job->log_sender)
		return;
	log_writer_finish(job->log_writer, missing);
	uint64_t left = log_sender_left(job->log_sender);
	if (left)
		buf_printf(missing, "%s: %" PRIu64 " lines did not leave this host\n",
			   job->config->job_log, left);
}
