/* What the two machines of the job want done: the group's workers, the agent's rounds. */
#include "run/job_private.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "run/tell/report.h"
#include "run/tell/torch_events.h"

int job_offer_store(struct job *job, struct err *err)
{
	uint16_t port = 0;
	int r = round_store_offer(&job->store, &port, err);
	membership_set_store(&job->membership, job->store.host, port);
	return r;
}

/* ---- events ---- */

struct event_body job_about(const struct job *job, size_t rank)
{
	return (struct event_body){ .rank = job->workers.round.rank_base + (int64_t)rank,
				    .local_rank = (int64_t)rank,
				    .pid = job->workers.pids[rank] };
}

void job_tell_started(struct job *job, size_t rank)
{
	AUTO_FREE char *error_file = logdir_error_file(&job->result->logdir, (uint32_t)rank);
	struct event_body body = job_about(job, rank);
	body.error_file = error_file;
	events_add(&job->events, EVENT_WORKER_STARTED, &body);
}

void job_tell_exited(struct job *job, size_t rank, const struct warden_event *event)
{
	job->workers.usages[rank] = event->usage;
	AUTO(buf_done) struct buf status = BUF_INIT;
	exit_status_describe(&event->status, &status);
	struct event_body body = job_about(job, rank);
	body.status = buf_str(&status);
	body.exit_code = event->status.kind == EXIT_CODE ? &event->status.value : NULL;
	body.signal =
		event->status.kind == EXIT_SIGNAL ? str_signal_name(event->status.value) : NULL;
	body.user_us = (uint64_t)event->usage.ru_utime.tv_sec * 1000000 +
		       (uint64_t)event->usage.ru_utime.tv_usec;
	body.system_us = (uint64_t)event->usage.ru_stime.tv_sec * 1000000 +
			 (uint64_t)event->usage.ru_stime.tv_usec;
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
	struct event_body body = job_about(job, rank);
	body.reason = failure_reason_name(worker->reason);
	struct err why = ERR_INIT;
	if (worker->reason == FAILURE_SPAWN)
		entry_explain_spawn(&job->config->entry, worker->spawn_errno, &why);
	body.detail = why.code ? why.msg : NULL;
	events_add(&job->events, EVENT_GROUP_FAILED, &body);
	job_push_agent(job, event);
}

/* Closes the books of the round. */
static void record_round(struct job *job)
{
	struct history *history = &job->result->history;
	workers_record(&job->workers, &job->group, history);
	if (history_last(history)->end != ATTEMPT_RUNNING)
		return;
	history_end_attempt(history,
			    job->group.failed			   ? ATTEMPT_FAILED
			    : history->stop_signal		   ? ATTEMPT_STOPPED
			    : job->restart_asked		   ? ATTEMPT_RESTARTED
			    : history_cause(history_last(history)) ? ATTEMPT_FAILED
								   : ATTEMPT_REGROUP,
			    clock_now_ns());
}

static void tell_gone(struct job *job)
{
	record_round(job);
	job->restart_asked = false;
	struct err err = ERR_INIT;
	if (job_offer_store(job, &err) < 0)
		log_info("%s", err.msg);
	guard_gone(job->guard);
	torch_metrics_gone(&job->torch, clock_now_ns());
	if (job->config->console_events)
		torch_events_watchdog(&job->workers, &job->result->history, false);
	events_add(&job->events, EVENT_GROUP_GONE, EVENTS_ALL(.pid = 0));
	job_push_agent(job, (struct agent_event){ .type = AGENT_GROUP_GONE });
}

/* Something neither dies nor may be killed: nothing can be started on this host any more. */
static void tell_stuck(struct job *job)
{
	size_t rank = 0;
	while (rank + 1 < job->group.count && job->group.workers[rank].state == WORKER_ENDED)
		rank++;
	record_round(job);
	job_push_agent(job, (struct agent_event){
				    .type = AGENT_GROUP_STUCK,
				    .cause = { .local_rank = (int32_t)rank,
					       .pid = job->workers.pids[rank] },
				    .died_ns = clock_now_ns(),
			    });
}

void job_not_started(struct job *job)
{
	guard_not_started(job->guard);
	torch_metrics_worker(&job->torch, false, clock_now_ns());
}

static void spawn(struct job *job, size_t rank)
{
	struct err err = job->no_store;
	int r = err.code ? -err.code : workers_spawn(&job->workers, (uint32_t)rank, &err);
	if (r == 0)
		return;
	log_info("cannot start rank %zu: %s", job->workers.round.rank_base + rank, err.msg);
	job_not_started(job);
	job_push_group(job,
		       (struct group_event){ GROUP_EV_SPAWN_FAILED, .rank = rank, .error = -r });
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
		job_push_agent(job, (struct agent_event){ .type = AGENT_GROUP_DONE });
		break;
	case GROUP_DO_TELL_GONE:
		tell_gone(job);
		break;
	case GROUP_DO_TELL_STUCK:
		tell_stuck(job);
		break;
	}
}

void job_step_group(struct job *job, const struct group_event *event)
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
	const char *reason =
		cause ? failure_reason_name(cause->reason) : attempt_end_name(before->end);
	events_add(&job->events, EVENT_GROUP_RESTART, EVENTS_ALL(.reason = reason));
}

static void start_group(struct job *job, const struct msg_formed *formed)
{
	struct history *history = &job->result->history;
	const struct history_attempt *before = history_last(history);
	uint64_t since_ns = before ? before->ended_ns : history->started_ns,
		 now_ns = clock_now_ns();
	if (before)
		tell_restart(job, before, formed->restarts);
	job->no_store = ERR_INIT;
	if (round_store_begin(&job->store, formed->hosts_store, &job->no_store) < 0)
		log_error("%s", job->no_store.msg);
	history_begin_attempt(history, formed->restarts, formed->world_size, now_ns);
	torch_metrics_formed(&job->torch, job->config->nproc, now_ns);
	events_add(&job->events, EVENT_ROUND_FORMED,
		   EVENTS_ALL(.world_size = formed->world_size, .nodes = formed->nodes,
			      .group_rank = formed->group_rank));
	workers_begin(&job->workers, formed);
	if (job->config->console_events) {
		torch_events_round(&job->workers, history, now_ns - since_ns);
		torch_events_watchdog(&job->workers, history, true);
	}
	job_push_group(job, (struct group_event){ GROUP_EV_START, .count = job->config->nproc });
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
	torch_metrics_end(&job->torch,
			  outcome->kind == OUTCOME_DONE || outcome->kind == OUTCOME_FAILED,
			  clock_now_ns());
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
		job_push_group(job, (struct group_event){
					    GROUP_EV_STOP,
					    .signal = action->signal ? action->signal
								     : job->group.stop_signal,
					    .grace_ns = job->config->shutdown_ns,
				    });
		break;
	case AGENT_GROUP_KILL:
		torch_metrics_stop(&job->torch, clock_now_ns());
		job_push_group(job, (struct group_event){ GROUP_EV_KILL });
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

void job_act_all(struct job *job, const struct agent_actions *actions)
{
	for (size_t i = 0; i < actions->count; i++)
		act_agent(job, &actions->items[i]);
}

void job_step_agent(struct job *job, const struct agent_event *event)
{
	struct agent_actions actions = AGENT_ACTIONS_INIT;
	membership_step(&job->membership, event, clock_now_ns(), &actions);
	job_act_all(job, &actions);
	agent_actions_done(&actions);
}
