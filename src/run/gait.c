#include "run/gait.h"

#include <stdlib.h>

#include "base/mem.h"
#include "core/pace/host_steps.h"
#include "run/job_private.h"
#include "sys/strain_read.h"

struct paced {		      /* one worker */
	uint64_t seen;	      /* steps that it had told at the last look */
	struct strain before; /* its counters of some time ago; at_ns 0: not read yet */
};

struct gait {
	struct event *timer;
	struct paced *workers; /* by local rank */
	size_t count;
	struct host_steps steps;
	uint64_t strain_ns; /* when to read the counters again */
};

void gait_free(struct gait *gait)
{
	if (!gait)
		return;
	free(gait->workers);
	event_free(gait->timer);
	host_steps_done(&gait->steps);
	free(gait);
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

static void read_strains(struct job *job, uint64_t now_ns)
{
	struct gait *gait = job->gait;
	if (now_ns < gait->strain_ns)
		return;
	gait->strain_ns = now_ns + GAIT_STRAIN_NS;
	for (size_t i = 0; i < gait->count; i++)
		if (runs(job, i))
			strain_read(job->workers.pids[i], &gait->workers[i].before);
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
	if (job->group.state != GROUP_ACTIVE || job->group.count != gait->count)
		return;
	gait->steps.told_count = 0;
	for (size_t i = 0; i < gait->count; i++)
		any |= look_at(job, i);
	if (any)
		read_strains(job, clock_now_ns());
	look_again(gait, any ? GAIT_LOOK_NS : GAIT_IDLE_NS);
	if (gait->steps.told_count == 0)
		return;
	job_push_agent(job, (struct agent_event){ .type = AGENT_PACE,
						  .marks = gait->steps.told,
						  .mark_count = gait->steps.told_count });
	job_pump(job);
}

struct gait *gait_new(struct job *job)
{
	struct gait *gait = NEW(struct gait);
	*gait = (struct gait){ .timer = evtimer_new(job->base, on_look, job) };
	return gait;
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
}

void gait_wake(struct job *job)
{
	/* A single worker has nobody to keep pace with. */
	if (job->workers.round.world_size > 1 && !event_pending(job->gait->timer, EV_TIMEOUT, NULL))
		look_again(job->gait, GAIT_LOOK_NS);
}

/* What happened to the worker since its counters were read last. */
static char *explain(const struct job *job, size_t rank)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct strain now;
	strain_read(job->workers.pids[rank], &now);
	strain_explain(&job->gait->workers[rank].before, &now,
		       (uint32_t)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L), &text);
	return mem_strdup(buf_str(&text));
}

void gait_late(struct job *job, const struct straggler_news *news)
{
	const struct gait *gait = job->gait;
	uint32_t base = job->workers.round.rank_base;
	if (news->rank < base || news->rank - base >= gait->count)
		return;
	size_t rank = news->rank - base;
	bool known = news->begins && gait->workers[rank].before.at_ns;
	AUTO_FREE char *why = known ? explain(job, rank) : NULL;
	TELL(&job->telling, HAPPENED_STRAGGLER, .rank = rank,
	     .straggler = { news, why ? why : "" });
}
