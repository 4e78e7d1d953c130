#include "run/gait.h"

#include <stdlib.h>

#include "base/mem.h"
#include "core/pace/host_steps.h"
#include "run/job_private.h"
#include "run/pace/flights.h"
#include "sys/strain_read.h"

#define NAMED_MAX 8 /* causes */

struct paced {	       /* one worker */
	uint64_t seen; /* steps that it had told at the last look */
	/* Its counters at the last two readings; at_ns 0: not read yet. */
	struct strain before, last;
	/* What says that it holds the others up: groups of collectives; 0: its steps. */
	uint64_t named[NAMED_MAX];
	size_t named_count;
};

struct gait {
	struct event *timer;
	struct paced *workers; /* by local rank */
	size_t count;
	struct host_steps steps;
	uint64_t strain_ns; /* when to read the counters again */
	struct flights *flights;
};

void gait_free(struct gait *gait)
{
	if (!gait)
		return;
	flights_free(gait->flights);
	free(gait->workers);
	event_free(gait->timer);
	host_steps_done(&gait->steps);
	free(gait);
}

static bool workers_run(void *arg)
{
	const struct job *job = arg;
	return job->group.state == GROUP_ACTIVE && job->group.count == job->gait->count;
}

static bool runs(const struct job *job, size_t rank)
{
	return job->group.workers[rank].state == WORKER_RUNNING;
}

/* Takes the steps that a worker has told since the last look. */
static bool look_at(struct job *job, size_t rank)
{
	const struct worker_page *page = worker_pages_get(guard_pages(job->guard), rank);
	return page && runs(job, rank) &&
	       host_steps_look(&job->gait->steps, (uint32_t)rank, page,
			       &job->gait->workers[rank].seen);
}

/* If it is time to. */
static void read_strains(struct job *job)
{
	struct gait *gait = job->gait;
	uint64_t now_ns = clock_now_ns();
	if (now_ns < gait->strain_ns)
		return;
	gait->strain_ns = now_ns + GAIT_STRAIN_NS;
	for (size_t i = 0; i < gait->count; i++) {
		struct paced *worker = &gait->workers[i];
		if (!runs(job, i))
			continue;
		worker->before = worker->last;
		strain_read(job->workers.pids[i], &worker->last);
	}
}

static void look_again(const struct gait *gait, uint64_t period_ns)
{
	struct timeval period = clock_timeval(period_ns);
	event_add(gait->timer, &period);
}

static void on_look(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct job *job = arg;
	struct gait *gait = job->gait;
	bool any = false;
	if (!workers_run(job))
		return;
	gait->steps.told_count = 0;
	for (size_t i = 0; i < gait->count; i++)
		any |= look_at(job, i);
	if (any)
		read_strains(job);
	look_again(gait, any ? GAIT_LOOK_NS : GAIT_IDLE_NS);
	if (gait->steps.told_count == 0)
		return;
	job_push_agent(job, (struct agent_event){ .type = AGENT_PACE,
						  .marks = gait->steps.told,
						  .mark_count = gait->steps.told_count });
	job_pump(job);
}

void gait_begin(struct job *job)
{
	struct gait *gait = job->gait;
	free(gait->workers);
	event_del(gait->timer);
	gait->count = job->config->nproc;
	gait->workers = mem_alloc(gait->count * sizeof(*gait->workers));
	host_steps_begin(&gait->steps, job->workers.round.rank_base, (uint32_t)gait->count,
			 job->workers.round.group_world_size);
	gait->strain_ns = 0;
	flights_begin(gait->flights, guard_flight(job->guard).dir, &job->workers.round);
}

void gait_wake(struct job *job)
{
	/* A single worker has nobody to keep pace with. */
	if (job->workers.round.world_size > 1 && !event_pending(job->gait->timer, EV_TIMEOUT, NULL))
		look_again(job->gait, GAIT_LOOK_NS);
}

/* What happened to the worker of late, over GAIT_SPAN_NS at least; NULL: that is not known. */
static char *explain(const struct job *job, size_t rank)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	const struct paced *worker = &job->gait->workers[rank];
	const struct strain *before = worker->before.at_ns ? &worker->before : &worker->last;
	struct strain now;
	strain_read(job->workers.pids[rank], &now);
	if (!before->at_ns || now.at_ns < before->at_ns + GAIT_SPAN_NS)
		return NULL;
	strain_explain(before, &now, (uint32_t)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L), &text);
	return mem_strdup(buf_str(&text));
}

/* Returns whether the worker is named now and was not before, or the other way round. */
static bool turns(struct paced *worker, const struct straggler_news *news)
{
	size_t count = worker->named_count, at = 0;
	while (at < count && worker->named[at] != news->group)
		at++;
	if (news->begins && at == count && count < NAMED_MAX)
		worker->named[worker->named_count++] = news->group;
	else if (!news->begins && at < count)
		worker->named[at] = worker->named[--worker->named_count];
	return (count == 0) != (worker->named_count == 0);
}

void gait_late(struct job *job, const struct straggler_news *news)
{
	struct gait *gait = job->gait;
	uint32_t base = job->workers.round.rank_base;
	if (news->rank < base || news->rank - base >= gait->count)
		return;
	size_t rank = news->rank - base;
	if (!turns(&gait->workers[rank], news))
		return;
	AUTO_FREE char *why = news->begins ? explain(job, rank) : NULL;
	const char *group = news->group ? flights_group(gait->flights, news->group) : NULL;
	TELL(&job->telling, HAPPENED_STRAGGLER, .rank = rank,
	     .straggler = { news, why ? why : "", group ? group : "" });
}

/* ---- the order of arrival at collectives ---- */

static void before_look(void *arg)
{
	read_strains(arg);
}

static void on_news(void *arg, const struct straggler_news *news)
{
	gait_late(arg, news);
}

static void on_marks(void *arg, const struct arrival_group *group, uint64_t error_ns)
{
	job_push_agent(arg, (struct agent_event){ .type = AGENT_PACE,
						  .marks = group->marks,
						  .mark_count = group->mark_count,
						  .group = group->key,
						  .size = group->size,
						  .error_ns = error_ns });
}

static void after_look(void *arg)
{
	job_pump(arg);
}

struct gait *gait_new(struct job *job)
{
	struct gait *gait = NEW(struct gait);
	*gait = (struct gait){
		.timer = evtimer_new(job->base, on_look, job),
		.flights = flights_new(job->base, &(struct flights_hooks){ .runs = workers_run,
									   .on_look = before_look,
									   .on_news = on_news,
									   .on_marks = on_marks,
									   .on_done = after_look,
									   .arg = job }),
	};
	return gait;
}
