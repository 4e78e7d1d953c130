#include "run/job.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "run/report.h"
#include "run/round_store.h"
#include "run/events.h"
#include "run/membership.h"
#include "run/pages.h"
#include "run/signals.h"
#include "run/torch_events.h"
#include "run/torch_metrics.h"
#include "run/workers.h"
#include "sys/proctree.h"

/* How soon to look again for processes that a dead warden left to us: the kernel tells of their end,
 * but not of the moment when a fork loop stops. */
#define SWEEP_PERIOD_NS (5 * NS_PER_MS)

/* One step of either core that waits for its turn. */
struct pending {
	bool for_group;
	union {
		struct group_event group;
		struct agent_event agent;
	};
};

struct job {
	const struct run_config *config;
	struct job_result *result;

	struct event_base *base;
	struct event *timer, *on_signal, *on_output, *on_lifeline;
	struct signals signals;
	struct warden *warden;
	struct output *output;
	struct guard *guard;
	struct pages pages;
	struct events events;
	struct torch_metrics torch;
	struct workers workers;
	struct round_store store;

	struct group group;
	struct membership membership;
	struct pending *queue; /* steps to take, in order */
	size_t queued, cap;

	uint64_t sweep_ns;   /* when to sweep again; NS_NEVER: there is a warden */
	uint64_t cause_id;   /* the start that failed first in the last failed attempt; 0: none */
	bool restart_asked;  /* the round under way ends because somebody asked for it */
	bool ended;	     /* the agent has left; only output is waited for */
};

static void push_group(struct job *job, struct group_event event)
{
	ARRAY_RESERVE(job->queue, job->queued, job->cap);
	job->queue[job->queued++] = (struct pending){ .for_group = true, .group = event };
}

static void push_agent(struct job *job, struct agent_event event)
{
	ARRAY_RESERVE(job->queue, job->queued, job->cap);
	job->queue[job->queued++] = (struct pending){ .for_group = false, .agent = event };
}

/* Opens the workers' store of the next round and says where; the one of the last round ends. */
static int offer_store(struct job *job, struct err *err)
{
	uint16_t port = 0;
	int r = round_store_offer(&job->store, &port, err);
	membership_set_store(&job->membership, job->store.host, port);
	return r;
}

/* ---- events ---- */

static struct event_body about(const struct job *job, size_t rank)
{
	return (struct event_body){ .rank = job->workers.round.rank_base + (int64_t)rank,
				    .local_rank = (int64_t)rank,
				    .pid = job->workers.pids[rank] };
}

static void tell_started(struct job *job, size_t rank)
{
	AUTO_FREE char *error_file = logdir_error_file(&job->result->logdir, (uint32_t)rank);
	struct event_body body = about(job, rank);
	body.error_file = error_file;
	events_add(&job->events, EVENT_WORKER_STARTED, &body);
}

static void tell_exited(struct job *job, size_t rank, const struct warden_event *event)
{
	job->workers.usages[rank] = event->usage;
	AUTO(buf_done) struct buf status = BUF_INIT;
	exit_status_describe(&event->status, &status);
	struct event_body body = about(job, rank);
	body.status = buf_str(&status);
	body.exit_code = event->status.kind == EXIT_CODE ? &event->status.value : NULL;
	body.signal = event->status.kind == EXIT_SIGNAL ? str_signal_name(event->status.value) : NULL;
	body.user_us = (uint64_t)event->usage.ru_utime.tv_sec * 1000000 + (uint64_t)event->usage.ru_utime.tv_usec;
	body.system_us = (uint64_t)event->usage.ru_stime.tv_sec * 1000000 + (uint64_t)event->usage.ru_stime.tv_usec;
	body.max_rss_kb = (uint64_t)event->usage.ru_maxrss;
	events_add(&job->events, EVENT_WORKER_EXITED, &body);
}

/* ---- the group's actions ---- */

static void tell_failed(struct job *job, size_t rank)
{
	const struct worker *worker = &job->group.workers[rank];
	struct agent_event event = { .type = AGENT_GROUP_FAILED, .died_ns = worker->ended_ns };
	event.cause = (struct cause){
		.reason = worker->reason,
		.status = worker->status,
		.spawn_errno = worker->spawn_errno,
		.local_rank = (int32_t)rank,
		.pid = job->workers.pids[rank],
	};
	output_forget(job->output, job->cause_id); /* of an earlier attempt, if there was one */
	job->cause_id = workers_id_of(&job->workers, rank);
	struct event_body body = about(job, rank);
	body.reason = failure_reason_name(worker->reason);
	struct err why = ERR_INIT;
	if (worker->reason == FAILURE_SPAWN)
		entry_explain_spawn(&job->config->entry, worker->spawn_errno, &why);
	body.detail = why.code ? why.msg : NULL;
	events_add(&job->events, EVENT_GROUP_FAILED, &body);
	push_agent(job, event);
}

/* Closes the books of the round. */
static void record_round(struct job *job)
{
	struct history *history = &job->result->history;
	workers_record(&job->workers, &job->group, history);
	if (history_last(history)->end != ATTEMPT_RUNNING)
		return;
	history_end_attempt(history,
			    job->group.failed	   ? ATTEMPT_FAILED
			    : history->stop_signal ? ATTEMPT_STOPPED
			    : job->restart_asked   ? ATTEMPT_RESTARTED
			    : history_cause(history_last(history)) ? ATTEMPT_FAILED
						   : ATTEMPT_REGROUP,
			    clock_now_ns());
}

static void tell_gone(struct job *job)
{
	record_round(job);
	job->restart_asked = false;
	struct err err = ERR_INIT;
	if (offer_store(job, &err) < 0)
		log_error("%s", err.msg);
	guard_gone(job->guard);
	torch_metrics_gone(&job->torch, clock_now_ns());
	if (job->config->console_events)
		torch_events_watchdog(&job->workers, &job->result->history, false);
	events_add(&job->events, EVENT_GROUP_GONE, EVENTS_ALL(.pid = 0));
	push_agent(job, (struct agent_event){ .type = AGENT_GROUP_GONE });
}

/* Something neither dies nor may be killed: nothing can be started on this host any more. */
static void tell_stuck(struct job *job)
{
	size_t rank = 0;
	while (rank + 1 < job->group.count && job->group.workers[rank].state == WORKER_ENDED)
		rank++;
	record_round(job);
	push_agent(job, (struct agent_event){
				.type = AGENT_GROUP_STUCK,
				.cause = { .local_rank = (int32_t)rank, .pid = job->workers.pids[rank] },
				.died_ns = clock_now_ns(),
			});
}

static void not_started(struct job *job)
{
	guard_not_started(job->guard);
	torch_metrics_worker(&job->torch, false, clock_now_ns());
}

static void spawn(struct job *job, size_t rank)
{
	struct err err = ERR_INIT;
	int r = workers_spawn(&job->workers, (uint32_t)rank, &err);
	if (r == 0)
		return;
	log_info("cannot start rank %zu: %s", job->workers.round.rank_base + rank, err.msg);
	not_started(job);
	push_group(job, (struct group_event){ GROUP_EV_SPAWN_FAILED, .rank = rank, .error = -r });
}

/* What goes through the warden. Between two wardens everything is being killed anyway. */
static void ask_warden(struct job *job, const struct group_action *action)
{
	if (!job->warden)
		return;
	uint64_t id = workers_id_of(&job->workers, action->rank);
	if (action->type == GROUP_DO_SIGNAL_ORPHANS) {
		warden_signal_orphans(job->warden, action->signal);
	} else if (action->type == GROUP_DO_KILL_ALL) {
		preload_cancel_all(job->workers.preload);
		warden_kill_all(job->warden);
	} else if (!preload_cancel(job->workers.preload, id)) {
		warden_signal(job->warden, id, action->signal);
	}
}

static void act_group(struct job *job, const struct group_action *action)
{
	switch (action->type) {
	case GROUP_DO_SPAWN:
		spawn(job, action->rank);
		break;
	case GROUP_DO_SIGNAL:
	case GROUP_DO_SIGNAL_ORPHANS:
	case GROUP_DO_KILL_ALL:
		ask_warden(job, action);
		break;
	case GROUP_DO_TELL_FAILED:
		tell_failed(job, action->rank);
		break;
	case GROUP_DO_TELL_DONE:
		history_end_attempt(&job->result->history, ATTEMPT_DONE, clock_now_ns());
		events_add(&job->events, EVENT_GROUP_DONE, EVENTS_ALL(.pid = 0));
		push_agent(job, (struct agent_event){ .type = AGENT_GROUP_DONE });
		break;
	case GROUP_DO_TELL_GONE:
		tell_gone(job);
		break;
	case GROUP_DO_TELL_STUCK:
		tell_stuck(job);
		break;
	}
}

static void step_group(struct job *job, const struct group_event *event)
{
	struct group_actions actions = { 0 };
	group_step(&job->group, event, clock_now_ns(), &actions);
	for (size_t i = 0; i < actions.count; i++)
		act_group(job, &actions.items[i]);
	group_actions_done(&actions);
}

/* ---- the agent's actions ---- */

static void tell_restart(struct job *job, const struct history_attempt *before, uint32_t restarts)
{
	AUTO(buf_done) struct buf line = BUF_INIT;
	report_restart(before, restarts, job->config->max_restarts, &line);
	log_warn("%s", buf_str(&line));
	const struct history_failure *cause = history_cause(before);
	const char *reason = cause ? failure_reason_name(cause->reason) : attempt_end_name(before->end);
	events_add(&job->events, EVENT_GROUP_RESTART, EVENTS_ALL(.reason = reason));
}

static void start_group(struct job *job, const struct msg_formed *formed)
{
	struct history *history = &job->result->history;
	const struct history_attempt *before = history_last(history);
	uint64_t since_ns = before ? before->ended_ns : history->started_ns, now_ns = clock_now_ns();
	if (before)
		tell_restart(job, before, formed->restarts);
	struct err err = ERR_INIT;
	if (round_store_begin(&job->store, formed->hosts_store, &err) < 0)
		log_error("the workers' store: %s", err.msg);
	history_begin_attempt(history, formed->restarts, formed->world_size, now_ns);
	torch_metrics_formed(&job->torch, job->config->nproc, now_ns);
	events_add(&job->events, EVENT_ROUND_FORMED, EVENTS_ALL(.world_size = formed->world_size));
	workers_begin(&job->workers, formed);
	if (job->config->console_events) {
		torch_events_round(&job->workers, history, now_ns - since_ns);
		torch_events_watchdog(&job->workers, history, true);
	}
	push_group(job, (struct group_event){ GROUP_EV_START, .count = job->config->nproc });
}

/* The first cause over all nodes is known, also to one that was in no round. */
static void blame(struct job *job, const struct cause *cause)
{
	uint64_t now_ns = clock_now_ns();
	history_blame(&job->result->history, cause, now_ns);
	history_end_attempt(&job->result->history, ATTEMPT_FAILED, now_ns);
}

static void end_job(struct job *job, const struct outcome *outcome)
{
	job->result->outcome = *outcome;
	job->ended = true;
	torch_metrics_end(&job->torch, outcome->kind == OUTCOME_DONE || outcome->kind == OUTCOME_FAILED, clock_now_ns());
	if (job->membership.node && outcome->kind == OUTCOME_FAILED && outcome->has_cause)
		blame(job, &outcome->cause);
	if (job->config->console_events)
		torch_events_end(&job->workers, &job->result->history);
	output_finish(job->output);
}

static void act_agent(struct job *job, const struct agent_action *action)
{
	switch (action->type) {
	case AGENT_GROUP_START:
		start_group(job, &action->formed);
		break;
	case AGENT_GROUP_STOP:
		torch_metrics_stop(&job->torch, clock_now_ns());
		if (action->why == GROUP_STOP_ROUND && action->has_cause)
			history_blame(&job->result->history, &action->cause, clock_now_ns());
		push_group(job, (struct group_event){
					GROUP_EV_STOP,
					.signal = action->signal ? action->signal : job->group.stop_signal,
					.grace_ns = job->config->shutdown_ns,
				});
		break;
	case AGENT_GROUP_KILL:
		torch_metrics_stop(&job->torch, clock_now_ns());
		push_group(job, (struct group_event){ GROUP_EV_KILL });
		break;
	case AGENT_EXIT:
		end_job(job, &action->outcome);
		break;
	case AGENT_PEERS:
		round_store_admit(&job->store, &action->msg.peers);
		break;
	case AGENT_SEND:
	case AGENT_HANG_UP:
		assert(!"links are not the job's business");
		break;
	}
}

static void act_all(struct job *job, const struct agent_actions *actions)
{
	for (size_t i = 0; i < actions->count; i++)
		act_agent(job, &actions->items[i]);
}

static void step_agent(struct job *job, const struct agent_event *event)
{
	struct agent_actions actions = AGENT_ACTIONS_INIT;
	membership_step(&job->membership, event, clock_now_ns(), &actions);
	act_all(job, &actions);
	agent_actions_done(&actions);
}

/* ---- the loop ---- */

static void arm_timer(struct job *job)
{
	uint64_t deadline_ns = MIN(MIN(group_deadline_ns(&job->group), membership_deadline_ns(&job->membership)),
				   job->sweep_ns);
	if (deadline_ns == NS_NEVER || job->ended) {
		event_del(job->timer);
		return;
	}
	uint64_t now_ns = clock_now_ns();
	uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
	struct timeval tv = { .tv_sec = (time_t)(left_ns / NS_PER_S),
			      .tv_usec = (suseconds_t)(left_ns % NS_PER_S / NS_PER_US) + 1 };
	event_add(job->timer, &tv);
}

/* Takes all steps that are due, those they cause included, then waits for the next event. */
static void pump(struct job *job)
{
	for (size_t i = 0; i < job->queued; i++) {
		struct pending pending = job->queue[i];
		if (pending.for_group)
			step_group(job, &pending.group);
		else
			step_agent(job, &pending.agent);
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
	if (start_warden(job, &err) < 0 || warden_watch(job->warden, job->base, on_warden, job) < 0) {
		log_error("cannot replace the warden: %s", err.msg);
		_exit(125); /* nothing is alive, and nothing can be started any more */
	}
	preload_start(job->workers.preload, job->warden);
	push_group(job, (struct group_event){ GROUP_EV_LOST });
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct job *job = arg;
	uint64_t now_ns = clock_now_ns();
	if (job->sweep_ns <= now_ns)
		sweep(job);
	if (group_deadline_ns(&job->group) <= now_ns)
		push_group(job, (struct group_event){ GROUP_EV_TIMER });
	if (membership_deadline_ns(&job->membership) <= now_ns)
		push_agent(job, (struct agent_event){ .type = AGENT_TIMER });
	pump(job);
}

static void on_preload_failed(void *arg, uint64_t id, int error)
{
	struct job *job = arg;
	int64_t rank = workers_rank_of(&job->workers, id);
	output_worker_ended(job->output, id);
	if (rank >= 0) {
		not_started(job);
		push_group(job, (struct group_event){ GROUP_EV_SPAWN_FAILED, .rank = (size_t)rank, .error = error });
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
		tell_started(job, (size_t)rank);
		if (job->config->console_events)
			torch_events_started(&job->workers, &job->result->history, (size_t)rank);
		push_group(job, (struct group_event){ GROUP_EV_SPAWNED, .rank = (size_t)rank,
						      .when_ns = event->ns });
		break;
	case WARDEN_SPAWN_FAILED:
		output_worker_ended(job->output, event->id);
		if (rank < 0)
			break;
		not_started(job);
		push_group(job, (struct group_event){ GROUP_EV_SPAWN_FAILED, .rank = (size_t)rank,
						      .error = event->error });
		break;
	case WARDEN_EXITED:
		output_worker_ended(job->output, event->id);
		if (rank >= 0)
			guard_ended(job->guard, (size_t)rank);
		if (rank >= 0)
			tell_exited(job, (size_t)rank, event);
		if (rank >= 0)
			push_group(job, (struct group_event){ GROUP_EV_EXITED, .rank = (size_t)rank,
							      .status = event->status, .when_ns = event->ns });
		break;
	case WARDEN_EMPTY:
		push_group(job, (struct group_event){ GROUP_EV_EMPTY });
		break;
	case WARDEN_SYNCED: /* taken above, by who asked for it */
		break;
	case WARDEN_SURVIVOR:
		log_warn("process %d (%s) %s", (int)event->pid, event->comm,
			 event->error == EPERM ? "may not be signalled by us and stays"
					       : "was killed but does not end yet");
		push_group(job, (struct group_event){ GROUP_EV_SURVIVOR, .error = event->error });
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
	pump(job);
}

static void suspend(struct job *job)
{
	if (!job->warden)
		return;
	warden_signal_all(job->warden, SIGSTOP);
	uint64_t pause_ns = signals_suspend_self();
	warden_signal_all(job->warden, SIGCONT);
	push_group(job, (struct group_event){ GROUP_EV_PAUSED, .grace_ns = pause_ns });
}

static void on_signal(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct job *job = arg;
	int sig;
	enum signal_meaning meaning;
	while (signals_next(&job->signals, &sig, &meaning)) {
		switch (meaning) {
		case SIGNAL_STOP:
			if (job->ended) { /* only a paused terminal keeps us: the user does not wait */
				event_base_loopbreak(job->base);
				break;
			}
			events_add(&job->events, EVENT_STOP_REQUESTED, EVENTS_ALL(.signal = str_signal_name(sig)));
			if (!job->result->history.stop_signal)
				job->result->history.stop_signal = sig;
			push_agent(job, (struct agent_event){ .type = AGENT_STOP_REQUESTED, .signal = sig });
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
	pump(job);
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

/* ---- verdicts of the guard ---- */

static void on_condemned(void *arg, size_t rank, enum failure_reason reason, int signal, bool final)
{
	struct job *job = arg;
	struct event_body body = about(job, rank);
	body.reason = failure_reason_name(reason);
	body.signal = str_signal_name(signal);
	events_add(&job->events, EVENT_WORKER_CONDEMNED, &body);
	push_group(job, (struct group_event){ GROUP_EV_EXPIRED, .rank = rank, .reason = reason,
					      .signal = signal });
	if (final)
		push_agent(job, (struct agent_event){ .type = AGENT_STOP_REQUESTED, .signal = SIGTERM });
	pump(job);
}

static void on_expired(void *arg, const struct watchdog_expiry *expiry)
{
	struct job *job = arg;
	struct event_body body = about(job, expiry->rank);
	body.pid = expiry->pid;
	body.scope = expiry->scope;
	body.signal = expiry->signal > 0 ? str_signal_name(expiry->signal) : NULL;
	events_add(&job->events, EVENT_TIMER_EXPIRED, &body);
	if (job->config->console_events)
		torch_events_expired(&job->workers, &job->result->history, expiry);
}

static void on_rejected(void *arg, const char *reason, const char *detail)
{
	struct job *job = arg;
	events_add(&job->events, EVENT_TIMER_REJECTED, EVENTS_ALL(.reason = reason, .detail = detail));
}

static uint64_t progress_of(void *arg, size_t rank)
{
	const struct job *job = arg;
	return output_bytes(job->output, workers_id_of(&job->workers, rank));
}

static void hold_worker(void *arg, size_t rank, bool still)
{
	struct job *job = arg;
	if (job->warden)
		warden_signal(job->warden, workers_id_of(&job->workers, rank), still ? SIGSTOP : SIGCONT);
}

static char *stacks_path(void *arg)
{
	const struct job *job = arg;
	const char *attempt = job->result->logdir.attempt;
	return attempt ? mem_printf("%s/stacks.txt", attempt) : NULL;
}

static void keep_stacks(void *arg, const char *text)
{
	struct job *job = arg;
	struct history_attempt *attempt = history_last(&job->result->history);
	free(attempt->stacks);
	attempt->stacks = mem_strdup(text);
}

static int start_guard(struct job *job, struct err *err)
{
	struct guard_hooks hooks = {
		.on_condemned = on_condemned,
		.on_expired = on_expired,
		.on_rejected = on_rejected,
		.progress = progress_of,
		.hold = hold_worker,
		.stacks_path = stacks_path,
		.on_stacks = keep_stacks,
		.arg = job,
	};
	int r = guard_new(&job->config->guard, job->base, &hooks, &job->guard, err);
	job->workers.guard = job->guard;
	return r;
}

static void on_stop_asked(void *arg)
{
	struct job *job = arg;
	events_add(&job->events, EVENT_STOP_REQUESTED, EVENTS_ALL(.signal = "SIGTERM"));
	if (!job->result->history.stop_signal)
		job->result->history.stop_signal = SIGTERM;
	push_agent(job, (struct agent_event){ .type = AGENT_STOP_REQUESTED, .signal = SIGTERM });
	pump(job);
}

/* Whoever started us holds the other end; the end of it is the end of him. */
static void on_lifeline(evutil_socket_t fd, short what UNUSED, void *arg)
{
	struct job *job = arg;
	char bytes[64];
	ssize_t n = read(fd, bytes, sizeof(bytes));
	if (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)))
		return;
	event_del(job->on_lifeline);
	log_warn("whoever started this job is gone; stopping it");
	on_stop_asked(job);
}

static bool on_restart_asked(void *arg)
{
	struct job *job = arg;
	if (membership_agent(&job->membership)->state != AGENT_RUNNING || job->group.state != GROUP_ACTIVE)
		return false;
	job->restart_asked = true;
	events_add(&job->events, EVENT_RESTART_REQUESTED, EVENTS_ALL(.pid = 0));
	push_agent(job, (struct agent_event){ .type = AGENT_RESTART_REQUESTED });
	pump(job);
	return true;
}

static int open_pages(struct job *job, struct err *err)
{
	job->pages = (struct pages){
		.base = job->base,
		.config = job->config,
		.workers = &job->workers,
		.group = &job->group,
		.history = &job->result->history,
		.output = job->output,
		.guard = job->guard,
		.agent = membership_agent(&job->membership),
		.store = &job->store,
		.torch = &job->torch,
		.log_dir = job->result->logdir.run,
		.on_stop = on_stop_asked,
		.on_restart = on_restart_asked,
		.arg = job,
	};
	events_open(&job->events, job->config->run_id, &job->result->history,
		    membership_agent(&job->membership), job->config->events,
		    job->config->log_dir ? job->result->logdir.run : NULL);
	events_add(&job->events, EVENT_JOB_STARTED, EVENTS_ALL(.pid = getpid()));
	return pages_open(&job->pages, err);
}

/* ---- the other nodes ---- */

static void on_actions(void *arg, const struct agent_actions *actions)
{
	struct job *job = arg;
	act_all(job, actions);
	pump(job);
}

static int on_placed(void *arg, const char *host, const struct addr *addr, struct err *err)
{
	struct job *job = arg;
	int r = round_store_place(&job->store, host, addr, err);
	return r < 0 ? r : offer_store(job, err);
}

static void on_store_client(void *arg, int fd, const struct addr *peer)
{
	struct job *job = arg;
	round_store_adopt(&job->store, fd, peer);
}

static int join_others(struct job *job, struct err *err)
{
	static const struct node_handler handler = {
		.on_actions = on_actions, .on_placed = on_placed, .on_store_client = on_store_client,
	};
	return membership_init(&job->membership, job->base, job->config, &handler, job, err);
}

/* Where nobody else has a say its place is known; otherwise it is when the nodes meet. */
static int open_store(struct job *job, struct err *err)
{
	const struct run_config *config = job->config;
	round_store_init(&job->store, job->base, config->master_port, config->store_access);
	job->store.shares_port = config->store_at_endpoint;
	if (!config->master_addr || config->store_at_endpoint)
		return 0;
	int r = round_store_name(&job->store, config->master_addr, err);
	return r < 0 ? r : offer_store(job, err);
}

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
	job->on_signal = event_new(job->base, job->signals.fd, EV_READ | EV_PERSIST, on_signal, job);
	job->on_output = event_new(job->base, output_fd(job->output), EV_READ | EV_PERSIST, on_output, job);
	if (job->config->lifeline >= 0)
		job->on_lifeline = event_new(job->base, job->config->lifeline, EV_READ | EV_PERSIST, on_lifeline, job);
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
	uint64_t nofile_soft = fd_limit_raise(); /* the store may get a connection from every worker */
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
		job->workers.preload = preload_new(job->config, nofile_soft, job->base, on_preload_failed, job);
	preload_start(job->workers.preload, job->warden);
	r = start_guard(job, err);
	if (r < 0)
		return r;
	group_init(&job->group, SIGTERM, job->config->shutdown_ns);
	r = join_others(job, err);
	if (r < 0)
		return r;
	r = open_pages(job, err);
	return r < 0 ? r : open_store(job, err);
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
		.config = config, .result = ret_result, .signals.fd = -1, .sweep_ns = NS_NEVER,
		.store = ROUND_STORE_INIT,
	};
	history_begin(&ret_result->history, clock_now_ns());
	torch_metrics_begin(&job.torch, ret_result->history.started_ns);
	int r = set_up(&job, err);
	if (r == 0) {
		log_set_sink(output_log, job.output);
		push_agent(&job, (struct agent_event){ .type = AGENT_START });
		pump(&job);
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
