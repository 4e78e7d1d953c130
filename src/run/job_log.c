/* The job's one log (--job-log): the job's part in sending its lines and in writing them. */
#include "run/job_private.h"

#include <inttypes.h>

static void on_event(void *arg, const struct node_event *event)
{
	struct job *job = arg;
	job_step_node(job, event);
	job_pump(job);
}

/* Whoever waited for the lines to be taken. */
static void release(struct job *job)
{
	for (size_t i = 0; i < job->parting_count; i++)
		job_push_agent(job, job->partings[i]);
	job->parting_count = 0;
	log_sender_hurry(job->log_sender, false);
	event_del(job->part_timer);
}

static void on_part_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	job_pump(arg); /* which calls job_log_stepped() */
}

static void set_part_timer(struct job *job, uint64_t now_ns)
{
	struct timeval left = clock_left(parting_deadline_ns(&job->parting), now_ns);
	event_add(job->part_timer, &left);
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
	job->part_timer = evtimer_new(job->base, on_part_timer, job);
	job->pages.log_sender = job->log_sender;
}

void job_close_log(struct job *job)
{
	if (!job->log_sender)
		return;
	event_free(job->part_timer);
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
	uint64_t now_ns = clock_now_ns();
	if (!job->log_sender || job->parting_count == ARRAY_LEN(job->partings) ||
	    !parting_begin(&job->parting, now_ns)) {
		job_push_agent(job, event);
		return;
	}
	job->partings[job->parting_count++] = event;
	log_sender_hurry(job->log_sender, true);
	set_part_timer(job, now_ns);
}

void job_log_stepped(struct job *job)
{
	if (!job->log_sender)
		return;
	if (!job->node.coordinator)
		log_writer_pause(job->log_writer);
	if (!job->parting_count)
		return;
	bool sent = output_is_drained(job->output) && log_sender_is_empty(job->log_sender) &&
		    answers_log_is_taken(job->answers);
	uint64_t now_ns = clock_now_ns();
	if (parting_over(&job->parting, sent, now_ns))
		release(job);
	else
		set_part_timer(job, now_ns); /* it waits longer once it has been asked */
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
