#include "run/pace/flights.h"

#include <stdlib.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/pace/clock_offset.h"
#include "sys/thread.h"
#include "watch/flight_fetch.h"

/* One look at the records, in a thread. */
struct look {
	pthread_t thread;
	int done_fd, cancel_fd;
	struct event *on_done;
	const char *dir; /* borrowed */
	size_t count;
	struct flight_answer *answers; /* belong to the thread until done_fd is readable */
};

struct flights {
	struct event_base *base;
	struct flights_hooks hooks;
	struct event *timer;
	char *dir;
	uint64_t period_ns;
	struct look *look; /* NULL: none is under way */
	struct host_arrivals arrivals;
};

static void *fetch(void *arg)
{
	struct look *look = arg;
	flight_fetch(&(struct flight_source){ .dir = look->dir }, look->answers, look->count,
		     clock_now_ns() + FLIGHTS_FETCH_NS, look->cancel_fd);
	eventfd_write(look->done_fd, 1);
	return NULL;
}

static void look_free(struct look *look)
{
	if (look->on_done)
		event_free(look->on_done);
	fd_close(&look->done_fd);
	fd_close(&look->cancel_fd);
	flight_answers_done(look->answers, look->count);
	free(look->answers);
	free(look);
}

static void cancel(struct flights *flights)
{
	struct look *look = flights->look;
	if (!look)
		return;
	eventfd_write(look->cancel_fd, 1);
	pthread_join(look->thread, NULL);
	look_free(look);
	flights->look = NULL;
}

static void look_again(const struct flights *flights)
{
	struct timeval period = clock_timeval(flights->period_ns);
	event_add(flights->timer, &period);
}

static bool judge(struct flights *flights, const struct look *look)
{
	const struct flights_hooks *hooks = &flights->hooks;
	struct host_arrivals *arrivals = &flights->arrivals;
	AUTO_FREE struct record *records = NEW_ARRAY(struct record, look->count);
	for (size_t i = 0; i < look->count; i++) {
		records[i] = look->answers[i].record;
		if (look->answers[i].given)
			hooks->on_record(hooks->arg, i, &records[i]);
	}
	uint64_t now_ns = clock_now_ns();
	bool any = host_arrivals_look(arrivals, records, clock_wall_shift(clock_wall_ns(), now_ns),
				      now_ns);
	for (size_t i = 0; i < arrivals->news_count; i++)
		hooks->on_news(hooks->arg, &arrivals->news[i]);
	for (size_t i = 0; i < arrivals->count; i++) {
		const struct arrival_group *group = &arrivals->groups[i];
		if (group->mark_count)
			log_debug("compared when ranks came to %zu collectives of group '%s'",
				  group->mark_count, group->name);
		if (group->mark_count && host_arrivals_tells(arrivals, group))
			hooks->on_marks(hooks->arg, group, arrivals->error_ns);
	}
	return any;
}

static void on_done(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct flights *flights = arg;
	struct look *look = flights->look;
	pthread_join(look->thread, NULL);
	flights->look = NULL;
	if (flights->hooks.runs(flights->hooks.arg)) {
		flights->period_ns = judge(flights, look)
					     ? MIN(2 * flights->period_ns, FLIGHTS_LOOK_NS)
					     : FLIGHTS_FIRST_NS;
		look_again(flights);
	}
	look_free(look);
	flights->hooks.on_done(flights->hooks.arg);
}

static struct look *look_new(struct flights *flights)
{
	const struct host_arrivals *arrivals = &flights->arrivals;
	struct look *look = NEW(struct look);
	*look = (struct look){ .done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
			       .cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
			       .dir = flights->dir,
			       .count = arrivals->workers,
			       .answers = NEW_ARRAY(struct flight_answer, arrivals->workers) };
	for (uint32_t i = 0; i < arrivals->workers; i++)
		look->answers[i] = (struct flight_answer){ .rank = arrivals->rank_base + i };
	if (look->done_fd >= 0 && look->cancel_fd >= 0)
		look->on_done = event_new(flights->base, look->done_fd, EV_READ, on_done, flights);
	return look;
}

static void on_look(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct flights *flights = arg;
	if (!flights->hooks.runs(flights->hooks.arg))
		return;
	flights->hooks.on_look(flights->hooks.arg);
	struct look *look = look_new(flights);
	if (look->on_done && event_add(look->on_done, NULL) == 0 &&
	    thread_start(&look->thread, fetch, look) == 0) {
		flights->look = look;
		return;
	}
	look_free(look);
	look_again(flights);
}

struct flights *flights_new(struct event_base *base, const struct flights_hooks *hooks)
{
	struct flights *flights = NEW(struct flights);
	*flights = (struct flights){ .base = base,
				     .hooks = *hooks,
				     .timer = evtimer_new(base, on_look, flights),
				     .arrivals = HOST_ARRIVALS_INIT };
	return flights;
}

void flights_free(struct flights *flights)
{
	if (!flights)
		return;
	cancel(flights);
	event_free(flights->timer);
	host_arrivals_done(&flights->arrivals);
	free(flights->dir);
	free(flights);
}

void flights_begin(struct flights *flights, const char *dir, const struct worker_round *round)
{
	cancel(flights);
	event_del(flights->timer);
	host_arrivals_done(&flights->arrivals);
	free(flights->dir);
	flights->dir = dir ? mem_strdup(dir) : NULL;
	if (!dir || round->world_size < 2)
		return;
	host_arrivals_begin(&flights->arrivals, round->rank_base, round->local_world_size,
			    round->world_size, round->group_world_size,
			    clock_wall_shift(clock_wall_ns(), clock_now_ns()));
	flights->period_ns = FLIGHTS_FIRST_NS;
	look_again(flights);
}

const char *flights_group(const struct flights *flights, uint64_t key)
{
	const struct arrival_group *group = host_arrivals_find(&flights->arrivals, key);
	return group ? group->name : NULL;
}
