#include "run/pace/still_watch.h"

static void look_again(const struct still_watch *watch)
{
	struct timeval period = clock_timeval(STILL_LOOK_NS);
	event_add(watch->timer, &period);
}

static void on_look(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct still_watch *watch = arg;
	struct telling *telling = watch->telling;
	if (telling->group->state != GROUP_ACTIVE)
		return;
	struct step_progress_sum sum = steps_sum(&telling->steps, clock_now_ns());
	uint64_t lasted_ns;
	enum standstill_news news = standstill_look(&watch->standstill, sum.still_ns, &lasted_ns);
	if (news)
		TELL(telling, HAPPENED_STANDSTILL,
		     .standstill = { .news = news,
				     .lasted_ns = lasted_ns,
				     .usual_ns = sum.usual_ns,
				     .step = sum.most,
				     .first_host = telling->workers->round.group_rank == 0 });
	look_again(watch);
}

void still_watch_open(struct still_watch *watch, struct event_base *base, struct telling *telling)
{
	*watch = (struct still_watch){ .telling = telling };
	watch->timer = evtimer_new(base, on_look, watch);
}

void still_watch_close(struct still_watch *watch)
{
	if (watch->timer)
		event_free(watch->timer);
	watch->timer = NULL;
}

void still_watch_begin(struct still_watch *watch)
{
	watch->standstill.told = false;
	watch->standstill.lasts_ns = 0;
	event_del(watch->timer);
	if (watch->telling->config->streams.output.steps)
		look_again(watch);
}

void still_watch_wake(struct still_watch *watch)
{
	if (!event_pending(watch->timer, EV_TIMEOUT, NULL))
		look_again(watch);
}
