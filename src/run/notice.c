#include "run/notice.h"

#include <string.h>

#include "run/job_private.h"

static bool runs(const struct job *job, size_t rank)
{
	return job->group.workers[rank].state == WORKER_RUNNING;
}

static struct plan_positions look(const struct job *job)
{
	struct plan_positions positions = { .pending = 0 };
	const struct worker_pages *pages = guard_pages(job->guard);
	for (size_t i = 0; i < job->group.count; i++)
		plan_look(worker_pages_get(pages, i), &job->notice.shown, runs(job, i), &positions);
	return positions;
}

static void tell(struct job *job, const struct plan_positions *positions)
{
	job->notice.told = *positions;
	job->notice.has_told = true;
	job_push_agent(job, (struct agent_event){ .type = AGENT_POSITIONS,
						  .positions = *positions,
						  .of = job->notice.shown });
}

static void look_again(struct job *job)
{
	struct timeval period = { .tv_usec = NOTICE_LOOK_NS / 1000 };
	if (job->notice.shown.phase == PLAN_NONE)
		event_del(job->notice.timer);
	else
		event_add(job->notice.timer, &period);
}

static void on_look(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct job *job = arg;
	struct plan_positions positions = look(job);
	if (!job->notice.has_told || memcmp(&positions, &job->notice.told, sizeof(positions)) != 0)
		tell(job, &positions);
	look_again(job);
	job_pump(job);
}

void notice_done(struct notice *notice)
{
	if (notice->timer)
		event_free(notice->timer);
	notice->timer = NULL;
}

void notice_begin(struct job *job)
{
	if (!job->notice.timer)
		job->notice.timer = evtimer_new(job->base, on_look, job);
	event_del(job->notice.timer);
	job->notice.shown = (struct stop_plan){ .phase = PLAN_NONE };
	job->notice.signalled = false;
}

void notice_show(struct job *job, const struct stop_plan *plan)
{
	if (!job->notice.timer ||
	    (plan->phase == PLAN_NONE && job->notice.shown.phase == PLAN_NONE))
		return;
	job->notice.shown = *plan;
	job->notice.has_told = false;
	worker_pages_show(guard_pages(job->guard), plan_word(plan));
	if (plan->phase == PLAN_COMMITTED)
		TELL_LATER(&job->telling, HAPPENED_AGREED, .plan = plan);
	/* After the workers can see it, so that who goes on nevertheless is found. */
	if (plan->phase != PLAN_NONE)
		tell(job, &(struct plan_positions[]){ look(job) }[0]);
	look_again(job);
}

static bool any_asks(const struct job *job, enum plan_kind kind)
{
	const struct worker_pages *pages = guard_pages(job->guard);
	for (size_t i = 0; i < job->group.count; i++)
		if (runs(job, i) && plan_is_asked_for(worker_pages_get(pages, i), kind))
			return true;
	return false;
}

bool notice_give(struct job *job, enum plan_kind kind, int signal)
{
	if (job->node.agent.state != AGENT_RUNNING || job->group.state != GROUP_ACTIVE ||
	    !job->config->notice_ns || !any_asks(job, kind))
		return false;
	/* Another host may have got notice before us. */
	if (job->node.agent.noticed)
		return true;
	TELL_LATER(&job->telling, HAPPENED_NOTICE, .notice = { kind, signal });
	/* Those that do not leave in time are stopped as SIGTERM would. */
	job_push_agent(job, (struct agent_event){ .type = AGENT_NOTICE,
						  .kind = kind,
						  .signal = signal ? signal : SIGTERM,
						  .left_ns = job->config->notice_ns });
	return true;
}

bool notice_signal(struct job *job, int signal)
{
	if (signal != SIGTERM && signal != SIGUSR1)
		return false;
	/* SIGUSR1 never ends a job; SIGTERM does, the second time. */
	if (job->notice.signalled)
		return signal == SIGUSR1 && job->node.agent.noticed;
	bool given = notice_give(job, PLAN_LEAVE, signal);
	job->notice.signalled = given;
	return given;
}

bool notice_left(const struct job *job)
{
	const struct worker_pages *pages = guard_pages(job->guard);
	struct plan_leavers leavers = { .left = 0 };
	for (size_t i = 0; i < job->group.count; i++)
		plan_count(worker_pages_get(pages, i),
			   exit_status_ok(&job->group.workers[i].status), &leavers);
	return plan_all_left(&leavers);
}
