#include "run/notice.h"

#include <signal.h>
#include <string.h>

static bool runs(const struct notice *notice, size_t rank)
{
	return notice->group->workers[rank].state == WORKER_RUNNING;
}

static struct plan_positions look(const struct notice *notice)
{
	struct plan_positions positions = { .pending = 0 };
	for (size_t i = 0; i < notice->group->count; i++)
		plan_look(worker_pages_get(notice->pages, i), &notice->shown, runs(notice, i),
			  &positions);
	return positions;
}

static void tell(struct notice *notice, const struct plan_positions *positions)
{
	notice->told = *positions;
	notice->has_told = true;
	notice->on_event(notice->arg, &(struct agent_event){ .type = AGENT_POSITIONS,
							     .positions = *positions,
							     .of = notice->shown });
}

static void look_again(struct notice *notice)
{
	struct timeval period = { .tv_usec = NOTICE_LOOK_NS / 1000 };
	if (notice->shown.phase == PLAN_NONE)
		event_del(notice->timer);
	else
		event_add(notice->timer, &period);
}

static void on_look(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct notice *notice = arg;
	struct plan_positions positions = look(notice);
	look_again(notice);
	if (!notice->has_told || memcmp(&positions, &notice->told, sizeof(positions)) != 0)
		tell(notice, &positions);
}

void notice_done(struct notice *notice)
{
	if (notice->timer)
		event_free(notice->timer);
	notice->timer = NULL;
}

void notice_begin(struct notice *notice)
{
	if (!notice->timer)
		notice->timer = evtimer_new(notice->base, on_look, notice);
	event_del(notice->timer);
	notice->shown = (struct stop_plan){ .phase = PLAN_NONE };
	notice->signalled = false;
}

void notice_show(struct notice *notice, const struct stop_plan *plan)
{
	if (!notice->timer || (plan->phase == PLAN_NONE && notice->shown.phase == PLAN_NONE))
		return;
	notice->shown = *plan;
	notice->has_told = false;
	worker_pages_show(notice->pages, plan_word(plan));
	if (plan->phase == PLAN_COMMITTED)
		TELL_LATER(notice->telling, HAPPENED_AGREED, .plan = plan);
	look_again(notice);
	if (plan->phase == PLAN_NONE)
		return;
	/* After the workers can see it, so that who goes on nevertheless is found. */
	struct plan_positions positions = look(notice);
	tell(notice, &positions);
}

static bool any_asks(const struct notice *notice, enum plan_kind kind)
{
	for (size_t i = 0; i < notice->group->count; i++)
		if (runs(notice, i) && plan_is_asked_for(worker_pages_get(notice->pages, i), kind))
			return true;
	return false;
}

bool notice_give(struct notice *notice, enum plan_kind kind, int signal)
{
	if (notice->agent->state != AGENT_RUNNING || notice->group->state != GROUP_ACTIVE ||
	    !notice->left_ns || !any_asks(notice, kind))
		return false;
	/* Another host may have got notice before us. */
	if (notice->agent->noticed)
		return true;
	TELL_LATER(notice->telling, HAPPENED_NOTICE, .notice = { kind, signal });
	/* Those that do not leave in time are stopped as SIGTERM would. */
	notice->on_event(notice->arg, &(struct agent_event){ .type = AGENT_NOTICE,
							     .kind = kind,
							     .signal = signal ? signal : SIGTERM,
							     .left_ns = notice->left_ns });
	return true;
}

bool notice_signal(struct notice *notice, int signal)
{
	if (signal != SIGTERM && signal != SIGUSR1)
		return false;
	/* SIGUSR1 never ends a job; SIGTERM does, the second time. */
	if (notice->signalled)
		return signal == SIGUSR1 && notice->agent->noticed;
	bool given = notice_give(notice, PLAN_LEAVE, signal);
	notice->signalled = given;
	return given;
}

bool notice_left(const struct notice *notice)
{
	struct plan_leavers leavers = { .left = 0 };
	for (size_t i = 0; i < notice->group->count; i++)
		plan_count(worker_pages_get(notice->pages, i),
			   exit_status_ok(&notice->group->workers[i].status), &leavers);
	return plan_all_left(&leavers);
}
