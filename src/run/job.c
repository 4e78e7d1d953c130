#include "run/job_private.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "run/tell/torch_events.h"
#include "sys/proctree.h"

/* How soon to look again for processes that a dead warden left to us: the kernel tells of their
 * end, but not of the moment when a fork loop stops. */
#define SWEEP_PERIOD_NS (5 * NS_PER_MS)

void job_push_group(struct job *job, struct group_event event)
{
	ARRAY_RESERVE(job->queue, job->queued, job->cap);
	job->queue[job->queued++] = (struct pending){ .for_group = true, .group = event };
}

void job_push_agent(struct job *job, struct agent_event event)
{
	ARRAY_RESERVE(job->queue, job->queued, job->cap);
	job->queue[job->queued++] = (struct pending){ .for_group = false, .agent = event };
}

/* ---- the loop ---- */

static void arm_timer(struct job *job)
{
	uint64_t deadline_ns =
		MIN(MIN(group_deadline_ns(&job->group), membership_deadline_ns(&job->membership)),
		    job->sweep_ns);
	if (deadline_ns == NS_NEVER || job->ended) {
		event_del(job->timer);
		return;
	}
	struct timeval left = clock_left(deadline_ns, clock_now_ns());
	event_add(job->timer, &left);
}

void job_pump(struct job *job)
{
	for (size_t i = 0; i < job->queued; i++) {
		struct pending pending = job->queue[i];
		if (pending.for_group)
			job_step_group(job, &pending.group);
		else
			job_step_agent(job, &pending.agent);
	}
	job->queued = 0;
	arm_timer(job);
}

static void on_warden(struct warden *warden, void *arg);

static int start_warden(struct job *job, struct err *err)
{
	int r = warden_new(NULL, &job->warden, err);
	if (r < 0)
		return r;
	job->workers.warden = job->warden;
	return 0;
}

/* Clears away what the dead warden left; when nothing is, a new one takes over. */
static void sweep(struct job *job)
{
	if (proctree_sweep(NULL) > 0) {
		job->sweep_ns = clock_now_ns() + SWEEP_PERIOD_NS;
		return;
	}
	job->sweep_ns = NS_NEVER;
	struct err err = ERR_INIT;
	if (start_warden(job, &err) < 0 ||
	    warden_watch(job->warden, job->base, on_warden, job) < 0) {
		log_error("cannot replace the warden: %s", err.msg);
		_exit(125); /* nothing is alive, and nothing can be started any more */
	}
	preload_start(job->workers.preload, job->warden);
	job_push_group(job, (struct group_event){ GROUP_EV_LOST });
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct job *job = arg;
	uint64_t now_ns = clock_now_ns();
	if (job->sweep_ns <= now_ns)
		sweep(job);
	if (group_deadline_ns(&job->group) <= now_ns)
		job_push_group(job, (struct group_event){ GROUP_EV_TIMER });
	if (membership_deadline_ns(&job->membership) <= now_ns)
		job_push_agent(job, (struct agent_event){ .type = AGENT_TIMER });
	job_pump(job);
}

static void on_preload_failed(void *arg, uint64_t id, int error)
{
	struct job *job = arg;
	int64_t rank = workers_rank_of(&job->workers, id);
	output_worker_ended(job->output, id);
	if (rank >= 0) {
		job_not_started(job);
		job_push_group(job, (struct group_event){ GROUP_EV_SPAWN_FAILED,
							  .rank = (size_t)rank, .error = error });
	}
	event_active(job->timer, EV_TIMEOUT, 0); /* the caller is not to be called back from here */
}

static void take_warden_event(struct job *job, const struct warden_event *event)
{
	if (preload_take_event(job->workers.preload, event))
		return;
	int64_t rank = workers_rank_of(&job->workers, event->id);

	switch (event->type) {
	case WARDEN_SPAWNED:
		if (rank < 0)
			break;
		job->workers.pids[rank] = event->pid;
		guard_started(job->guard, (size_t)rank, event->pid);
		torch_metrics_worker(&job->torch, true, event->ns);
		job_tell_started(job, (size_t)rank);
		if (job->config->console_events)
			torch_events_started(&job->workers, &job->result->history, (size_t)rank);
		job_push_group(job, (struct group_event){ GROUP_EV_SPAWNED, .rank = (size_t)rank,
							  .when_ns = event->ns });
		break;
	case WARDEN_SPAWN_FAILED:
		output_worker_ended(job->output, event->id);
		if (rank < 0)
			break;
		job_not_started(job);
		job_push_group(job,
			       (struct group_event){ GROUP_EV_SPAWN_FAILED, .rank = (size_t)rank,
						     .error = event->error });
		break;
	case WARDEN_EXITED:
		output_worker_ended(job->output, event->id);
		if (rank >= 0)
			guard_ended(job->guard, (size_t)rank);
		if (rank >= 0)
			job_tell_exited(job, (size_t)rank, event);
		if (rank >= 0)
			job_push_group(job,
				       (struct group_event){ GROUP_EV_EXITED, .rank = (size_t)rank,
							     .status = event->status,
							     .when_ns = event->ns });
		break;
	case WARDEN_EMPTY:
		job_push_group(job, (struct group_event){ GROUP_EV_EMPTY });
		break;
	case WARDEN_SYNCED: /* taken above, by who asked for it */
		break;
	case WARDEN_SURVIVOR:
		log_warn("process %d (%s) %s", (int)event->pid, event->comm,
			 event->error == EPERM ? "may not be signalled by us and stays"
					       : "was killed but does not end yet");
		job_push_group(job,
			       (struct group_event){ GROUP_EV_SURVIVOR, .error = event->error });
		break;
	case WARDEN_LOST:
		log_warn("the warden was killed; starting over with a new one");
		preload_lost(job->workers.preload);
		warden_free(job->warden);
		job->warden = NULL;
		job->workers.warden = NULL;
		sweep(job);
		break;
	case WARDEN_EVENT_COUNT:
		break;
	}
}

static void on_warden(struct warden *warden, void *arg)
{
	struct job *job = arg;
	struct warden_event event;
	uint64_t began_ns = clock_now_ns();
	while (warden == job->warden && warden_next(warden, &event))
		take_warden_event(job, &event);
	torch_metrics_looked(&job->torch, began_ns, clock_now_ns());
	job_pump(job);
}

static void suspend(struct job *job)
{
	if (!job->warden)
		return;
	warden_signal_all(job->warden, SIGSTOP);
	uint64_t pause_ns = signals_suspend_self();
	warden_signal_all(job->warden, SIGCONT);
	job_push_group(job, (struct group_event){ GROUP_EV_PAUSED, .grace_ns = pause_ns });
}

static void on_signal(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct job *job = arg;
	int sig;
	enum signal_meaning meaning;
	while (signals_next(&job->signals, &sig, &meaning)) {
		switch (meaning) {
		case SIGNAL_STOP:
			/* only a paused terminal keeps us: the user does not wait */
			if (job->ended) {
				job->result->hurried = true;
				event_base_loopbreak(job->base);
				break;
			}
			events_add(&job->events, EVENT_STOP_REQUESTED,
				   EVENTS_ALL(.signal = str_signal_name(sig)));
			if (!job->result->history.stop_signal)
				job->result->history.stop_signal = sig;
			job_push_agent(job, (struct agent_event){ .type = AGENT_STOP_REQUESTED,
								  .signal = sig });
			break;
		case SIGNAL_RELAY:
			if (job->warden)
				workers_relay(&job->workers, &job->group, sig);
			break;
		case SIGNAL_SUSPEND:
			suspend(job);
			break;
		}
	}
	job_pump(job);
}

/* Puts what the worker that failed first wrote last into the history of the last attempt. */
static void keep_last_words(struct job *job)
{
	int64_t rank = workers_rank_of(&job->workers, job->cause_id);
	struct history_attempt *attempt = history_last(&job->result->history);
	for (size_t i = 0; attempt && rank >= 0 && i < attempt->count; i++)
		if (attempt->failures[i].local_rank == rank)
			output_tail(job->output, job->cause_id, &attempt->failures[i].tail);
}

static void on_output(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct job *job = arg;
	struct output_event event;
	while (output_next(job->output, &event)) {
		switch (event.type) {
		case OUTPUT_DRAINED:
			if (event.id != job->cause_id)
				output_forget(job->output, event.id);
			break;
		case OUTPUT_TROUBLE:
			log_warn("%s", event.text);
			break;
		case OUTPUT_FINISHED:
			event_base_loopexit(job->base, NULL);
			break;
		}
	}
}

/* ---- beginning and end ---- */

static int set_up_loop(struct job *job, struct err *err)
{
	struct event_config *config = event_config_new();
	event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
	event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
	job->base = event_base_new_with_config(config);
	event_config_free(config);
	if (!job->base)
		return err_set(err, errno ? errno : ENOMEM, "cannot make the event loop: %m");

	job->timer = evtimer_new(job->base, on_timer, job);
	job->on_signal =
		event_new(job->base, job->signals.fd, EV_READ | EV_PERSIST, on_signal, job);
	job->on_output =
		event_new(job->base, output_fd(job->output), EV_READ | EV_PERSIST, on_output, job);
	if (job->config->lifeline >= 0)
		job->on_lifeline = event_new(job->base, job->config->lifeline, EV_READ | EV_PERSIST,
					     job_on_lifeline, job);
	if (job->on_lifeline && event_add(job->on_lifeline, NULL) < 0)
		return err_set(err, errno, "--lifeline=%d: %m", job->config->lifeline);
	if (event_add(job->on_signal, NULL) < 0 || event_add(job->on_output, NULL) < 0 ||
	    warden_watch(job->warden, job->base, on_warden, job) < 0)
		return err_set(err, errno, "cannot watch for events: %m");
	return 0;
}

static int set_up(struct job *job, struct err *err)
{
	/* The warden first: it is a copy of this process, and should be one of a small process. */
	int r = start_warden(job, err);
	if (r < 0)
		return r;
	uint64_t nofile_soft =
		fd_limit_raise(); /* the store may get a connection from every worker */
	r = signals_open(&job->config->stop_signals, &job->signals, err);
	if (r < 0)
		return r;
	r = output_new(&job->config->streams.output, &job->output, err);
	if (r < 0)
		return r;
	r = logdir_open(&job->result->logdir, job->config->log_dir, job->config->run_id, err);
	if (r < 0)
		return r;
	if (!job->result->logdir.run && err->code)
		log_warn("no log directory: %s", err->msg);
	struct warden *warden = job->warden;
	workers_init(&job->workers, job->config, job->output, &job->result->logdir);
	job->workers.warden = warden;
	job->workers.nofile_soft = nofile_soft;
	r = set_up_loop(job, err);
	if (r < 0)
		return r;
	if (job->config->preload)
		job->workers.preload =
			preload_new(job->config, nofile_soft, job->base, on_preload_failed, job);
	preload_start(job->workers.preload, job->warden);
	r = job_start_guard(job, err);
	if (r < 0)
		return r;
	group_init(&job->group, SIGTERM, job->config->shutdown_ns);
	r = job_join_others(job, err);
	if (r < 0)
		return r;
	r = job_open_pages(job, err);
	return r < 0 ? r : job_open_store(job, err);
}

static void tell_ended(struct job *job)
{
	struct event_number metrics[TORCH_METRICS_MAX];
	size_t count = torch_metrics_list(&job->torch, &job->result->history, job->config->role,
					  job->config->max_restarts, metrics);
	events_add(&job->events, EVENT_JOB_ENDED,
		   EVENTS_ALL(.pid = getpid(), .metrics = metrics, .metric_count = count));
}

static void tear_down(struct job *job)
{
	log_set_sink(NULL, NULL);
	if (job->timer)
		event_free(job->timer);
	if (job->on_signal)
		event_free(job->on_signal);
	if (job->on_output)
		event_free(job->on_output);
	if (job->on_lifeline)
		event_free(job->on_lifeline);
	tell_ended(job);
	events_close(&job->events);
	pages_close(&job->pages);
	guard_free(job->guard);
	preload_free(job->workers.preload);
	warden_free(job->warden);
	output_free(job->output);
	membership_done(&job->membership);
	round_store_done(&job->store);
	if (job->base)
		event_base_free(job->base);
	signals_close(&job->signals);
	workers_done(&job->workers);
	group_done(&job->group);
	free(job->queue);
}

int job_run(const struct run_config *config, struct job_result *ret_result, struct err *err)
{
	*ret_result = (struct job_result){ .logdir = LOGDIR_INIT };
	struct job job = {
		.config = config,
		.result = ret_result,
		.signals.fd = -1,
		.sweep_ns = NS_NEVER,
		.store = ROUND_STORE_INIT,
	};
	history_begin(&ret_result->history, clock_now_ns());
	torch_metrics_begin(&job.torch, ret_result->history.started_ns);
	int r = set_up(&job, err);
	if (r == 0) {
		log_set_sink(output_log, job.output);
		job_push_agent(&job, (struct agent_event){ .type = AGENT_START });
		job_pump(&job);
		event_base_dispatch(job.base);
		keep_last_words(&job);
		output_missing(job.output, &ret_result->missing);
	}
	tear_down(&job);
	history_end(&ret_result->history, clock_now_ns());
	return r;
}

void job_result_done(struct job_result *result)
{
	history_done(&result->history);
	logdir_done(&result->logdir);
	buf_done(&result->missing);
}
