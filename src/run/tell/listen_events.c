/* Writes the event log (muster-events(7)). */
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "run/tell/happening.h"
#include "run/tell/make_story.h"

/* An event about a worker. */
static struct event_body about(const struct telling *telling, size_t rank)
{
	const struct workers *workers = telling->workers;
	return (struct event_body){ .rank = workers->round.rank_base + (int64_t)rank,
				    .local_rank = (int64_t)rank,
				    .pid = workers->pids[rank] };
}

static void on_job_started(struct telling *telling, const struct happening *happening UNUSED)
{
	events_add(&telling->events, EVENT_JOB_STARTED, EVENTS_ALL(.pid = getpid()));
}

static void on_restart(struct telling *telling, const struct happening *happening UNUSED)
{
	const struct history_attempt *before = history_last(telling->history);
	const struct history_failure *cause = history_cause(before);
	const char *reason =
		cause ? failure_reason_name(cause->reason) : attempt_end_name(before->end);
	events_add(&telling->events, EVENT_GROUP_RESTART, EVENTS_ALL(.reason = reason));
}

static void on_formed(struct telling *telling, const struct happening *happening)
{
	const struct msg_formed *formed = happening->formed;
	events_add(&telling->events, EVENT_ROUND_FORMED,
		   EVENTS_ALL(.world_size = formed->world_size, .nodes = formed->nodes,
			      .group_rank = formed->group_rank,
			      .kept_step =
				      kept_is_none(&formed->kept) ? NULL : &formed->kept.step));
}

static void on_started(struct telling *telling, const struct happening *happening)
{
	AUTO_FREE char *error_file =
		logdir_error_file(telling->workers->logdir, (uint32_t)happening->rank);
	struct event_body body = about(telling, happening->rank);
	body.error_file = error_file;
	events_add(&telling->events, EVENT_WORKER_STARTED, &body);
}

static uint64_t in_us(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000 + (uint64_t)time->tv_usec;
}

static void on_exited(struct telling *telling, const struct happening *happening)
{
	const struct exit_status *status = &happening->ended->status;
	const struct rusage *usage = &happening->ended->usage;
	AUTO(buf_done) struct buf text = BUF_INIT;
	exit_status_describe(status, &text);
	struct event_body body = about(telling, happening->rank);
	struct step_progress progress;
	steps_of(&telling->steps, happening->rank, &progress);
	body.step = progress.told ? &progress.step : NULL;
	body.saved_step = progress.has_saved ? &progress.saved : NULL;
	body.status = buf_str(&text);
	body.exit_code = status->kind == EXIT_CODE ? &status->value : NULL;
	body.signal = status->kind == EXIT_SIGNAL ? str_signal_name(status->value) : NULL;
	body.stopped = telling->group->workers[happening->rank].stopped;
	body.user_us = in_us(&usage->ru_utime);
	body.system_us = in_us(&usage->ru_stime);
	body.max_rss_kb = (uint64_t)usage->ru_maxrss;
	events_add(&telling->events, EVENT_WORKER_EXITED, &body);
}

static void on_condemned(struct telling *telling, const struct happening *happening)
{
	struct event_body body = about(telling, happening->rank);
	body.reason = failure_reason_name(happening->reason);
	body.signal = str_signal_name(happening->signal);
	events_add(&telling->events, EVENT_WORKER_CONDEMNED, &body);
}

static void on_expired(struct telling *telling, const struct happening *happening)
{
	const struct watchdog_expiry *expiry = happening->expiry;
	struct event_body body = about(telling, expiry->rank);
	body.pid = expiry->pid;
	body.scope = expiry->scope;
	body.signal = expiry->signal > 0 ? str_signal_name(expiry->signal) : NULL;
	events_add(&telling->events, EVENT_TIMER_EXPIRED, &body);
}

static void on_rejected(struct telling *telling, const struct happening *happening)
{
	events_add(&telling->events, EVENT_TIMER_REJECTED,
		   EVENTS_ALL(.reason = happening->text, .detail = happening->detail));
}

static void on_explained(struct telling *telling, const struct happening *happening)
{
	events_add(&telling->events, EVENT_HANG_EXPLAINED, EVENTS_ALL(.detail = happening->text));
}

static void on_stop_requested(struct telling *telling, const struct happening *happening)
{
	events_add(&telling->events, EVENT_STOP_REQUESTED,
		   EVENTS_ALL(.signal = str_signal_name(happening->signal)));
}

static void on_restart_requested(struct telling *telling, const struct happening *happening UNUSED)
{
	events_add(&telling->events, EVENT_RESTART_REQUESTED, EVENTS_ALL(.pid = 0));
}

static const char *const plan_kinds[] = { [PLAN_LEAVE] = "leave", [PLAN_SAVE] = "save" };
static_assert(ARRAY_LEN(plan_kinds) == PLAN_KIND_COUNT, "every kind needs a name");

static void on_notice(struct telling *telling, const struct happening *happening)
{
	int signal = happening->notice.signal;
	events_add(&telling->events, EVENT_NOTICE_GIVEN,
		   EVENTS_ALL(.reason = plan_kinds[happening->notice.kind],
			      .signal = signal ? str_signal_name(signal) : NULL));
}

static void on_agreed(struct telling *telling, const struct happening *happening)
{
	events_add(&telling->events, EVENT_NOTICE_AGREED,
		   EVENTS_ALL(.reason = plan_kinds[happening->plan->kind],
			      .step = &happening->plan->step));
}

static void on_straggler(struct telling *telling, const struct happening *happening)
{
	const struct straggler_news *news = happening->straggler.news;
	struct event_body body = about(telling, happening->rank);
	struct step_progress progress;
	steps_of(&telling->steps, happening->rank, &progress);
	body.step = progress.told ? &progress.step : NULL;
	body.detail = *happening->straggler.why ? happening->straggler.why : NULL;
	body.times = news->times;
	*(news->group ? &body.of_collectives : &body.of_steps) = news->of;
	body.group = *happening->straggler.group ? happening->straggler.group : NULL;
	body.lag_us = news->lag_ns / NS_PER_US;
	events_add(&telling->events, news->begins ? EVENT_STRAGGLER_FOUND : EVENT_STRAGGLER_GONE,
		   &body);
}

static void on_standstill(struct telling *telling, const struct happening *happening)
{
	const bool begins = happening->standstill.news == STANDSTILL_BEGINS;
	events_add(&telling->events, begins ? EVENT_STANDSTILL_BEGAN : EVENT_STANDSTILL_ENDED,
		   EVENTS_ALL(.step = &happening->standstill.step,
			      .still_ms = happening->standstill.lasted_ns / NS_PER_MS,
			      .usual_ms = happening->standstill.usual_ns / NS_PER_MS));
}

static void on_failed(struct telling *telling, const struct happening *happening)
{
	const struct worker *worker = &telling->group->workers[happening->rank];
	struct event_body body = about(telling, happening->rank);
	body.reason = failure_reason_name(worker->reason);
	struct err why = ERR_INIT;
	if (worker->reason == FAILURE_SPAWN)
		entry_explain_spawn(&telling->config->entry, worker->spawn_errno, &why);
	body.detail = why.code ? why.msg : NULL;
	events_add(&telling->events, EVENT_GROUP_FAILED, &body);
}

static void on_done(struct telling *telling, const struct happening *happening UNUSED)
{
	events_add(&telling->events, EVENT_GROUP_DONE, EVENTS_ALL(.pid = 0));
}

static void on_gone(struct telling *telling, const struct happening *happening UNUSED)
{
	events_add(&telling->events, EVENT_GROUP_GONE, EVENTS_ALL(.pid = 0));
}

static void on_job_ended(struct telling *telling, const struct happening *happening)
{
	const struct outcome *outcome = happening->outcome;
	const struct report report = { telling->config, telling->history, NULL, outcome };
	AUTO(story_done) struct story story = STORY_INIT;
	int code = 0;
	if (outcome) {
		story_of(&report, &story);
		code = history_final_code(telling->history, outcome, telling->config);
	}
	events_add(&telling->events, EVENT_JOB_ENDED,
		   EVENTS_ALL(.pid = getpid(), .exit_code = outcome ? &code : NULL,
			      .story = outcome ? &story : NULL));
}

const struct listener listen_events = {
	.on = {
		[HAPPENED_JOB_STARTED] = on_job_started,
		[HAPPENED_RESTART] = on_restart,
		[HAPPENED_ROUND_FORMED] = on_formed,
		[HAPPENED_WORKER_STARTED] = on_started,
		[HAPPENED_WORKER_EXITED] = on_exited,
		[HAPPENED_WORKER_CONDEMNED] = on_condemned,
		[HAPPENED_TIMER_EXPIRED] = on_expired,
		[HAPPENED_TIMER_REJECTED] = on_rejected,
		[HAPPENED_HANG_EXPLAINED] = on_explained,
		[HAPPENED_STOP_REQUESTED] = on_stop_requested,
		[HAPPENED_RESTART_REQUESTED] = on_restart_requested,
		[HAPPENED_NOTICE] = on_notice,
		[HAPPENED_AGREED] = on_agreed,
		[HAPPENED_STRAGGLER] = on_straggler,
		[HAPPENED_STANDSTILL] = on_standstill,
		[HAPPENED_GROUP_FAILED] = on_failed,
		[HAPPENED_GROUP_DONE] = on_done,
		[HAPPENED_GROUP_GONE] = on_gone,
		[HAPPENED_JOB_ENDED] = on_job_ended,
	},
};
