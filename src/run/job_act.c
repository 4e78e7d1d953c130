/* Carries out the actions of the job's two machines: the group's workers, the node's rounds. */
#include "run/job_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "run/tell/text.h"

int job_offer_store(struct job *job, struct err *err)
{
	uint16_t port = 0;
	int r = round_store_offer(&job->store, job->group.done, &port, err);
	job_push_node(job, (struct node_event){
				   .type = NODE_EV_STORE, .host = job->store.host, .port = port });
	return r;
}

/* ---- the group's actions ---- */

#define WORDS_NS (NS_PER_S / 2) /* for the last words, which a paused terminal holds up */

static void tell_failed(struct job *job, size_t rank)
{
	const struct worker *worker = &job->group.workers[rank];
	const struct history *history = &job->result->history;
	struct cause *cause = &job->cause;
	cause->reason = worker->reason;
	cause->status = worker->status;
	cause->spawn_errno = worker->spawn_errno;
	cause->local_rank = (int32_t)rank;
	cause->pid = job->workers.pids[rank];
	cause->lived_ns = worker->started_ns ? worker->ended_ns - worker->started_ns : 0;
	cause->wall_ns = worker->ended_ns + history->wall_offset_ns;
	struct agent_event event = { .type = AGENT_GROUP_FAILED,
				     .cause = *cause,
				     .leaves = job->leaves,
				     .died_ns = worker->ended_ns };
	TELL_LATER(&job->telling, HAPPENED_GROUP_FAILED, .rank = rank);
	job_push_agent(job, event);
}

static bool words_wait(const struct job *job)
{
	const struct group *group = &job->group;
	return group->failed && job->workers.keeps_tail[group->first][OUTPUT_STDERR] &&
	       !job->telling.cause_drained;
}

/* What the worker that failed first wrote last, for people on all hosts. */
static void find_words(struct job *job)
{
	AUTO(buf_done) struct buf tail = BUF_INIT, clean = BUF_INIT;
	const struct group *group = &job->group;
	struct cause *cause = &job->cause;
	if (!group->failed)
		return;
	cause->status = group->workers[group->first].status;
	if (cause->reason == FAILURE_SPAWN)
		return;
	output_tail(job->output, job->telling.cause_id, OUTPUT_STDERR, &tail);
	text_clean(&clean, buf_data(&tail), buf_len(&tail));
	text_last_words(buf_str(&clean), cause->words, sizeof(cause->words));
}

void job_take_words(struct job *job)
{
	if (job->words_ns == NS_NEVER || (words_wait(job) && clock_now_ns() < job->words_ns))
		return;
	job->words_ns = NS_NEVER;
	find_words(job);
	job_release(job, HOLD_FOR_WORDS);
}

/* Queues this step of the agent, the end of the group, once what the workers printed is taken. */
static void push_end(struct job *job, struct agent_event event)
{
	event.left = notice_left(&job->notice);
	if (joblog_ended(&job->log, clock_now_ns()))
		holdback_begin(&job->holdback, HOLD_FOR_LOG);
	job_push_agent(job, event);
}

static void tell_gone(struct job *job)
{
	struct err err = ERR_INIT;
	if (job_offer_store(job, &err) < 0)
		log_info("%s", err.msg);
	/* Nothing is left to be signalled, and the next round overwrites what listeners read. */
	TELL(&job->telling, HAPPENED_GROUP_GONE);
	guard_gone(job->guard);
	mpi_end(job->workers.mpi);
	struct step_progress_span span = steps_span(&job->telling.steps);
	struct agent_event gone = { .type = AGENT_GROUP_GONE,
				    .reached = span.workers ? span.most + 1 : 0,
				    .ended = &job->cause };
	guard_kept(job->guard, gone.kept);
	if (words_wait(job)) {
		job->words_ns = ns_add(clock_now_ns(), WORDS_NS);
		holdback_begin(&job->holdback, HOLD_FOR_WORDS);
	} else {
		find_words(job);
	}
	push_end(job, gone);
}

/* A process neither dies nor may be killed: this host can start nothing any more. */
static void tell_stuck(struct job *job)
{
	size_t rank = 0;
	while (rank + 1 < job->group.count && job->group.workers[rank].state == WORKER_ENDED)
		rank++;
	TELL_LATER(&job->telling, HAPPENED_GROUP_STUCK);
	job_push_agent(job, (struct agent_event){
				    .type = AGENT_GROUP_STUCK,
				    .cause = { .local_rank = (int32_t)rank,
					       .pid = job->workers.pids[rank] },
				    .died_ns = clock_now_ns(),
			    });
}

static void explain_spawn(struct job *job, int error, const struct err *why)
{
	struct err err = ERR_INIT;
	if (!why)
		entry_explain_spawn(&job->config->entry, error, &err);
	snprintf(job->cause.words, sizeof(job->cause.words), "%s", why ? why->msg : err.msg);
	str_make_printable(job->cause.words);
}

void job_not_started(struct job *job, size_t rank, int error, const struct err *why)
{
	TELL_LATER(&job->telling, HAPPENED_WORKER_NOT_STARTED, .rank = rank, .why = why);
	guard_not_started(job->guard);
	if (!*job->cause.words)
		explain_spawn(job, error, why);
	job_push_group(job,
		       (struct group_event){ GROUP_EV_SPAWN_FAILED, .rank = rank, .error = error });
}

static void spawn(struct job *job, size_t rank)
{
	struct err err = job->no_store;
	int r = err.code ? -err.code : workers_spawn(&job->workers, (uint32_t)rank, &err);
	if (r < 0)
		job_not_started(job, rank, -r, &err);
}

/* Actions for the warden. Between two wardens everything is being killed anyway. */
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
	} else if (preload_cancel(job->workers.preload, id)) {
		return;
	} else if (action->type == GROUP_DO_SIGNAL_MAIN) {
		warden_signal(job->warden, id, action->signal);
	} else {
		warden_signal_group(job->warden, id, action->signal);
	}
}

static void act_group(struct job *job, const struct group_action *action)
{
	switch (action->type) {
	case GROUP_DO_SPAWN:
		spawn(job, action->rank);
		break;
	case GROUP_DO_SIGNAL:
	case GROUP_DO_SIGNAL_MAIN:
	case GROUP_DO_SIGNAL_ORPHANS:
	case GROUP_DO_KILL_ALL:
		ask_warden(job, action);
		break;
	case GROUP_DO_TELL_FAILED:
		tell_failed(job, action->rank);
		break;
	case GROUP_DO_TELL_DONE:
		TELL_LATER(&job->telling, HAPPENED_GROUP_DONE);
		push_end(job, (struct agent_event){ .type = AGENT_GROUP_DONE });
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
	AUTO(group_actions_done) struct group_actions actions = { 0 };
	group_step(&job->group, event, clock_now_ns(), &actions);
	for (size_t i = 0; i < actions.count; i++)
		act_group(job, &actions.items[i]);
}

/* ---- the node's actions ---- */

/* Of a failure of this round, what is known before: where there is more to read. */
static void begin_cause(struct job *job)
{
	const char *dir = job->result->logdir.run;
	struct cause *cause = &job->cause;
	*cause = (struct cause){ .reason = FAILURE_EXIT };
	job->leaves = false;
	if (dir && strlen(dir) + sizeof("/report.json") <= sizeof(cause->report))
		snprintf(cause->report, sizeof(cause->report), "%s/report.json", dir);
}

static void start_group(struct job *job, const struct msg_formed *formed, struct ballot ballot)
{
	uint64_t now_ns = clock_now_ns();
	job_push_group(job, (struct group_event){ GROUP_EV_START, .count = job->config->nproc });
	if (history_last(&job->result->history))
		TELL_LATER(&job->telling, HAPPENED_RESTART, .restarts = formed->restarts);
	job->no_store = ERR_INIT;
	if (round_store_begin(&job->store, formed->hosts_store, &job->no_store) < 0)
		log_error("%s", job->no_store.msg);
	answers_round_ends(job->answers);
	begin_cause(job);
	job_checks_stop_measuring(&job->checks);
	guard_keep(job->guard, ballot, &formed->kept);
	workers_begin(&job->workers, formed);
	mpi_begin(job->workers.mpi, formed, ballot, job->store.host);
	TELL_LATER(&job->telling, HAPPENED_ROUND_FORMED, .formed = formed, .when_ns = now_ns);
	notice_begin(&job->notice);
	joblog_round(&job->log);
	pace_report_begin(job->pace, guard_flight(job->guard).dir);
	still_watch_begin(&job->still);
	answers_round_begins(job->answers);
}

/* A notice that could not be followed ends the job as its signal would have. Other stops are told
 * by who asked for them; that of the guard is not one of the user. */
static void tell_stopped(struct job *job, int signal)
{
	if (job->node.agent.noticed && !job->stop_told)
		job_tell_stop(job, signal);
}

static void end_job(struct job *job, const struct outcome *outcome, bool linked)
{
	job->result->outcome = *outcome;
	if (outcome->kind == OUTCOME_SIGNAL)
		tell_stopped(job, outcome->signal);
	if (job->wiring)
		wiring_explain(job->wiring, linked, &job->result->outcome);
	job->ended = true;
	TELL(&job->telling, HAPPENED_JOB_DECIDED, .outcome = outcome);
	pages_finish(&job->pages, outcome);
	output_finish(job->output);
	warden_close(job->warden); /* it ends while the last output is written */
}

static void stop_group(struct job *job, const struct agent_action *action)
{
	job_release(job, HOLD_FOR_EXPLANATION);
	job_push_group(job,
		       (struct group_event){
			       GROUP_EV_STOP,
			       .signal = action->signal ? action->signal : job->group.stop_signal,
			       .grace_ns = job->config->shutdown_ns,
		       });
	notice_show(&job->notice, &(struct stop_plan){ .phase = PLAN_NONE });
	if (action->why == GROUP_STOP_SIGNAL)
		tell_stopped(job, action->signal);
	if (action->has_cause && *action->cause.blame.text && !*job->cause.blame.text)
		TELL_LATER(&job->telling, HAPPENED_HANG_EXPLAINED,
			   .text = action->cause.blame.text);
	bool host = action->has_cause && failure_reason_is_host(action->cause.reason);
	if (host)
		TELL_LATER(&job->telling, HAPPENED_HOST_LOST, .cause = &action->cause);
	TELL_LATER(&job->telling, HAPPENED_GROUP_STOPPING,
		   .cause = action->has_cause && !host ? &action->cause : NULL);
}

static void act_host(struct job *job, const struct agent_action *action, bool linked)
{
	switch (action->type) {
	case AGENT_GROUP_START:
		start_group(job, &action->formed, action->ballot);
		break;
	case AGENT_GROUP_STOP:
		stop_group(job, action);
		break;
	case AGENT_GROUP_KILL:
		job_release(job, HOLD_FOR_EXPLANATION);
		job_push_group(job, (struct group_event){ GROUP_EV_KILL });
		notice_show(&job->notice, &(struct stop_plan){ .phase = PLAN_NONE });
		TELL_LATER(&job->telling, HAPPENED_GROUP_STOPPING);
		break;
	case AGENT_CHECK:
		job_checks_begin(&job->checks);
		break;
	case AGENT_MEASURE:
		job_checks_measure(&job->checks, &action->msg.pair);
		break;
	case AGENT_PLAN:
		notice_show(&job->notice, &action->plan);
		break;
	case AGENT_LATE:
		pace_report_late(job->pace, &action->late);
		break;
	case AGENT_LOOK:
		guard_look(job->guard, &action->look);
		break;
	case AGENT_EXCHANGED:
		mpi_exchanged(job->workers.mpi, &action->msg);
		break;
	case AGENT_NO_EXCHANGE:
		job_refuse_mpi(job);
		break;
	case AGENT_EXIT:
		end_job(job, &action->outcome, linked);
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

/* Where the others reach this node their workers reach its store, unless the user named another
 * place. Without one this node cannot take part. */
static void place_store(struct job *job, uint64_t link)
{
	char host[ADDR_HOST_MAX];
	struct addr addr;
	int r = wiring_place(job->wiring, link, host, &addr, &job->no_place);
	if (r == 0)
		r = round_store_place(&job->store, host, &addr, &job->no_place);
	if (r == 0)
		r = job_offer_store(job, &job->no_place);
	if (r < 0)
		job_push_agent(job, (struct agent_event){ .type = AGENT_BARRED,
							  .text = job->no_place.msg });
}

static void take_question(struct job *job, const struct msg *msg)
{
	if (msg->type == MSG_QUESTION && msg->question.ask.kind == ASK_JOB_LOG)
		joblog_asked(&job->log);
	answers_take(job->answers, msg);
}

static void act_node(struct job *job, const struct node_action *action)
{
	if (action->type == NODE_DO_NOTE && action->note.kind == NOTE_FORMED &&
	    job->node.coordinator) {
		node_table_update(&job->result->history.nodes, job->node.coordinator);
		joblog_formed(&job->log);
	}
	if (action->type == NODE_DO_HOST)
		act_host(job, &action->agent, action->linked);
	else if (action->type == NODE_DO_PLACE_STORE)
		place_store(job, action->link);
	else if (action->type == NODE_DO_ASKED)
		take_question(job, &action->msg);
	else if (!routes_act(&job->routes, action) && job->wiring)
		wiring_act(job->wiring, action);
}

static void step_node(struct job *job, const struct node_event *event)
{
	uint64_t now_ns = clock_now_ns();
	node_set_wall(&job->node, clock_wall_shift(clock_wall_ns(), now_ns));
	node_step(&job->node, event, now_ns, &job->actions);
	for (size_t i = 0; i < job->actions.count; i++)
		act_node(job, &job->actions.items[i]);
	node_actions_clear(&job->actions);
	if (job->wiring)
		wiring_stepped(job->wiring, now_ns);
}

void job_take(void *arg, const struct job_event *event)
{
	if (event->for_group)
		step_group(arg, &event->group);
	else
		step_node(arg, &event->node);
}
