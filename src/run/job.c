#include "run/job_private.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "watch/jobdir.h"

void job_push_group(struct job *job, struct group_event event)
{
	const struct job_event pushed = { .for_group = true, .group = event };
	if (!job->warden && event.type == GROUP_EV_START)
		holdback_begin(&job->holdback, HOLD_FOR_WARDEN);
	holdback_push(&job->holdback, &pushed, &job->queue);
}

void job_push_node(struct job *job, struct node_event event)
{
	const struct job_event pushed = { .for_group = false, .node = event };
	holdback_push(&job->holdback, &pushed, &job->queue);
}

void job_push_agent(struct job *job, struct agent_event event)
{
	job_push_node(job, (struct node_event){ .type = NODE_EV_HOST, .agent = event });
}

void job_keep_agent_event(void *arg, const struct agent_event *event)
{
	job_push_agent(arg, *event);
}

void job_take_agent_event(void *arg, const struct agent_event *event)
{
	job_push_agent(arg, *event);
	job_pump(arg);
}

void job_release(struct job *job, enum hold why)
{
	holdback_release(&job->holdback, why, &job->queue);
}

/* ---- the loop ---- */

static void arm_timer(struct job *job)
{
	uint64_t deadline_ns = MIN(node_deadline_ns(&job->node), joblog_deadline_ns(&job->log));
	deadline_ns = MIN(deadline_ns, job->words_ns);
	if (!job->ended)
		deadline_ns = MIN(deadline_ns, group_deadline_ns(&job->group));
	if (deadline_ns == NS_NEVER) {
		event_del(job->timer);
		return;
	}
	struct timeval left = clock_left(deadline_ns, clock_now_ns());
	event_add(job->timer, &left);
}

static void step_log(struct job *job)
{
	if (job->log.sender && joblog_step(&job->log, job->node.coordinator,
					   answers_log_is_taken(job->answers), clock_now_ns()))
		job_release(job, HOLD_FOR_LOG);
}

void job_pump(struct job *job)
{
	if (!job_drive(&job->queue, job_take, job))
		return;
	step_log(job);
	job_drive(&job->queue, job_take, job);
	happening_flush(&job->telling);
	arm_timer(job);
}

static void on_warden(struct warden *warden, void *arg);

/* Where we are killed our private directory goes, too. */
static const struct warden_opts warden_opts = { .after_agent = jobdir_clear_dead };

/* Nothing is left of what the dead warden had: a new one takes over. */
static void on_clear(void *arg)
{
	struct job *job = arg;
	struct err err = ERR_INIT;
	if (warden_new(&warden_opts, &job->warden, &err) < 0 ||
	    warden_watch(job->warden, job->base, on_warden, job) < 0) {
		log_error("cannot replace the warden: %s", err.msg);
		_exit(EXIT_CODE_SYSTEM); /* nothing is alive, and nothing can be started any more */
	}
	job->workers.warden = job->warden;
	preload_start(job->workers.preload, job->warden);
	job_push_group(job, (struct group_event){ GROUP_EV_LOST });
	job_release(job, HOLD_FOR_WARDEN);
	job_pump(job);
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct job *job = arg;
	uint64_t now_ns = clock_now_ns();
	if (group_deadline_ns(&job->group) <= now_ns)
		job_push_group(job, (struct group_event){ GROUP_EV_TIMER });
	if (node_deadline_ns(&job->node) <= now_ns)
		job_push_node(job, (struct node_event){ .type = NODE_EV_TIMER });
	job_take_words(job);
	job_pump(job);
}

static void on_preload_failed(void *arg, uint64_t id, int error)
{
	struct job *job = arg;
	int64_t rank = workers_rank_of(&job->workers, id);
	if (rank >= 0)
		job_not_started(job, (size_t)rank, error, NULL);
	else
		output_worker_ended(job->output, id);
	/* not from here: the caller does not expect a callback */
	event_active(job->timer, EV_TIMEOUT, 0);
}

static void worker_started(struct job *job, size_t rank, const struct warden_event *event)
{
	job->workers.pids[rank] = event->pid;
	guard_set_warden(job->guard, warden_pid(job->warden));
	guard_started(job->guard, rank, event->pid);
	TELL_LATER(&job->telling, HAPPENED_WORKER_STARTED, .rank = rank, .when_ns = event->ns);
	job_push_group(job, (struct group_event){ GROUP_EV_SPAWNED, .rank = rank,
						  .when_ns = event->ns });
}

static void worker_exited(struct job *job, size_t rank, const struct warden_event *event)
{
	job->workers.usages[rank] = event->usage;
	TELL_LATER(&job->telling, HAPPENED_WORKER_EXITED, .rank = rank, .ended = event);
	guard_ended(job->guard, rank);
	if (job->group.state == GROUP_ACTIVE && guard_explain_end(job->guard, rank, &event->status))
		holdback_begin(&job->holdback, HOLD_FOR_EXPLANATION);
	enum failure_reason reason = mpi_ended(job->workers.mpi, rank, &event->status);
	job_push_group(job, (struct group_event){ GROUP_EV_EXITED, .rank = rank, .reason = reason,
						  .status = event->status, .when_ns = event->ns });
}

static void take_worker_event(struct job *job, const struct warden_event *event)
{
	int64_t rank = workers_rank_of(&job->workers, event->id);
	if (rank < 0 && event->type != WARDEN_SPAWNED)
		output_worker_ended(job->output, event->id);
	if (rank < 0)
		return;
	if (event->type == WARDEN_SPAWNED)
		worker_started(job, (size_t)rank, event);
	else if (event->type == WARDEN_EXITED)
		worker_exited(job, (size_t)rank, event);
	else
		job_not_started(job, (size_t)rank, event->error, NULL);
}

static void warden_lost(struct job *job)
{
	job_release(job, HOLD_FOR_EXPLANATION);
	TELL_LATER(&job->telling, HAPPENED_WARDEN_LOST);
	preload_lost(job->workers.preload);
	sweeper_start(job->sweeper, job->warden);
	job->warden = NULL;
	job->workers.warden = NULL;
}

static void take_warden_event(struct job *job, const struct warden_event *event)
{
	if (preload_take_event(job->workers.preload, event))
		return;
	switch (event->type) {
	case WARDEN_SPAWNED:
	case WARDEN_SPAWN_FAILED:
	case WARDEN_EXITED:
		take_worker_event(job, event);
		break;
	case WARDEN_EMPTY:
		job_push_group(job, (struct group_event){ GROUP_EV_EMPTY });
		break;
	case WARDEN_SURVIVOR:
		TELL_LATER(&job->telling, HAPPENED_SURVIVOR, .ended = event);
		job_push_group(job,
			       (struct group_event){ GROUP_EV_SURVIVOR, .error = event->error });
		break;
	case WARDEN_LOST:
		warden_lost(job);
		break;
	case WARDEN_SYNCED: /* only the template of warm workers asks for it */
	case WARDEN_EVENT_COUNT:
		break;
	}
}

static void on_warden(struct warden *warden, void *arg)
{
	struct job *job = arg;
	struct warden_event event;
	while (warden == job->warden && warden_next(warden, &event))
		take_warden_event(job, &event);
	job_pump(job);
}

static void suspend(struct job *job)
{
	if (!job->warden)
		return;
	warden_signal_all(job->warden, SIGSTOP);
	uint64_t pause_ns = signals_suspend_self();
	guard_paused(job->guard, pause_ns);
	warden_signal_all(job->warden, SIGCONT);
	job_push_group(job, (struct group_event){ GROUP_EV_PAUSED, .grace_ns = pause_ns });
}

/* Each worker gets the signal once: an engine that sent it to us has sent it to all of them. */
static void relay(struct job *job, const struct signal_taken *taken)
{
	if (job->warden && !signals_sent_by(taken, job->config->engine.signaller))
		workers_relay(&job->workers, &job->group, taken->signal);
}

static void on_signal(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct job *job = arg;
	struct signal_taken taken;
	while (signals_next(&job->signals, &taken)) {
		switch (taken.meaning) {
		case SIGNAL_STOP:
			/* only a paused terminal keeps us: do not wait for it */
			if (job->ended) {
				job->result->hurried = true;
				event_base_loopbreak(job->base);
				break;
			}
			if (!notice_signal(&job->notice, taken.signal))
				job_stop(job, taken.signal);
			break;
		case SIGNAL_RELAY:
			if (!notice_signal(&job->notice, taken.signal))
				relay(job, &taken);
			break;
		case SIGNAL_SUSPEND:
			suspend(job);
			break;
		}
	}
	job_pump(job);
}

static void on_output(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct job *job = arg;
	struct output_event event;
	while (output_next(job->output, &event)) {
		switch (event.type) {
		case OUTPUT_DRAINED:
			TELL(&job->telling, HAPPENED_WORKER_DRAINED, .id = event.id);
			job_take_words(job);
			break;
		case OUTPUT_TROUBLE:
			log_warn("%s", event.text);
			break;
		case OUTPUT_LINES:
			log_sender_wake(job->log.sender);
			break;
		case OUTPUT_FINISHED:
			pages_complete(&job->pages);
			event_base_loopexit(job->base, NULL);
			break;
		}
	}
	job_pump(job);
}

/* ---- beginning and end ---- */

static int set_up_loop(struct job *job, struct err *err)
{
	struct event_config *config = event_config_new();
	event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
	event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
	event_config_set_flag(config, EVENT_BASE_FLAG_IGNORE_ENV);
	job->base = event_base_new_with_config(config);
	event_config_free(config);
	if (!job->base)
		return err_set(err, errno ? errno : ENOMEM, "cannot make the event loop: %m");

	job->timer = evtimer_new(job->base, on_timer, job);
	job->sweeper = sweeper_new(job->base, on_clear, job);
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
	/* The warden first: it is a copy of this process, which should be small then. */
	int r = warden_new(&warden_opts, &job->warden, err);
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
	job->telling.output = job->output;
	r = logdir_open(&job->result->logdir, job->config->log_dir, job->config->run_id,
			job->config->shared_log_dir, err);
	if (r < 0)
		return r;
	if (!job->result->logdir.run && err->code)
		log_warn("no log directory: %s", err->msg);
	workers_init(&job->workers, job->config, job->warden, job->output, &job->result->logdir);
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
	job_open_mpi(job);
	job->telling.trainer = trainer_new(job->base, &job->telling.steps);
	group_init(&job->group, SIGTERM, job->config->shutdown_ns);
	job_join_others(job);
	job_open_log(job);
	r = job_open_pages(job, err);
	job_open_answers(job);
	return r < 0 ? r : job_open_store(job, err);
}

static void tear_down(struct job *job)
{
	log_set_sink(NULL, NULL);
	warden_close(job->warden); /* unless the job has: it ends while we do the rest */
	if (job->timer)
		event_free(job->timer);
	if (job->on_signal)
		event_free(job->on_signal);
	if (job->on_output)
		event_free(job->on_output);
	if (job->on_lifeline)
		event_free(job->on_lifeline);
	sweeper_free(job->sweeper);
	job_checks_done(&job->checks);
	TELL(&job->telling, HAPPENED_JOB_ENDED,
	     .outcome = job->ended ? &job->result->outcome : NULL);
	events_close(&job->telling.events);
	trainer_free(job->telling.trainer, job->result->hurried ? 0 : TRAINER_LAST_NS);
	answers_free(job->answers);
	joblog_close(&job->log);
	if (job->base)
		link_drop_lingering(job->base);
	pages_close(&job->pages);
	steps_done(&job->telling.steps);
	notice_done(&job->notice);
	pace_report_free(job->pace);
	still_watch_close(&job->still);
	guard_free(job->guard);
	own_question_free(job->asker);
	preload_free(job->workers.preload);
	/* No report is written into the temporary directory of a job that ended well. */
	if (history_final_code(&job->result->history, &job->result->outcome, job->config) == 0)
		logdir_drop_empty(&job->result->logdir);
	output_free(job->output);
	wiring_free(job->wiring);
	routes_done(&job->routes);
	node_done(&job->node);
	node_actions_done(&job->actions);
	round_store_done(&job->store);
	if (job->base)
		event_base_free(job->base);
	mpi_free(job->workers.mpi);
	workers_done(&job->workers);
	group_done(&job->group);
	job_queue_done(&job->queue);
	holdback_done(&job->holdback);
	free(job->telling.later);
	warden_free(job->warden); /* waits for its end */
	signals_close(&job->signals);
}

int job_run(const struct run_config *config, struct job_result *ret_result, struct err *err)
{
	*ret_result = (struct job_result){ .logdir = LOGDIR_INIT };
	struct job job = {
		.config = config,
		.result = ret_result,
		.signals.fd = -1,
		.words_ns = NS_NEVER,
		.store = ROUND_STORE_INIT,
		.routes = ROUTES_INIT,
		.telling = {
			.config = config,
			.workers = &job.workers,
			.group = &job.group,
			.history = &ret_result->history,
		},
	};
	history_begin(&ret_result->history, clock_now_ns());
	int r = set_up(&job, err);
	if (r == 0) {
		log_set_sink(output_log, job.output);
		job_push_node(&job, (struct node_event){ .type = NODE_EV_START });
		job_pump(&job);
		event_base_dispatch(job.base);
		output_missing(job.output, &ret_result->missing);
		joblog_finish(&job.log, &ret_result->missing);
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
