#include "run/pace/pace_report.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "core/pace/host_steps.h"
#include "core/pace/looks.h"
#include "run/pace/flights.h"
#include "sys/slowdown_read.h"
#include "watch/waiting_read.h"

#define NAMED_MAX 8		      /* causes */
#define LOOKS_IDLE_NS (10 * NS_PER_S) /* without a step: nobody is looked at */

struct paced {	       /* one worker */
	uint64_t seen; /* steps that it had told at the last look */
	/* Its counters at the last two readings; at_ns 0: not read yet. */
	struct slowdown before, last;
	struct waiting waiting;
	/* What says that it holds the others up: groups of collectives; 0: its steps. */
	uint64_t named[NAMED_MAX];
	size_t named_count;
};

struct pace_report {
	struct pace_report_spec spec;
	struct event *timer;
	struct paced *paced; /* by local rank */
	size_t count;
	struct host_steps steps;
	uint64_t counters_ns; /* when to read the counters again */
	struct flights *flights;
	/* Looks at whether workers wait, in bursts, while they tell steps. */
	struct event *look_timer;
	uint64_t look, first_look; /* the next one; 0: none */
	struct step_mark looks[MSG_MARKS_MAX];
	size_t look_count;
	uint64_t told_ns; /* when workers here last told a step */
};

void pace_report_free(struct pace_report *report)
{
	if (!report)
		return;
	flights_free(report->flights);
	free(report->paced);
	event_free(report->timer);
	event_free(report->look_timer);
	host_steps_done(&report->steps);
	free(report);
}

static bool workers_run(void *arg)
{
	const struct pace_report *report = arg;
	const struct group *group = report->spec.group;
	return group->state == GROUP_ACTIVE && group->count == report->count;
}

static bool runs(const struct pace_report *report, size_t rank)
{
	return report->spec.group->workers[rank].state == WORKER_RUNNING;
}

/* Takes the steps that a worker has told since the last look. */
static bool look_at(struct pace_report *report, size_t rank)
{
	const struct worker_page *page = worker_pages_get(report->spec.pages, rank);
	return page && runs(report, rank) &&
	       host_steps_look(&report->steps, (uint32_t)rank, page, &report->paced[rank].seen);
}

/* If it is time to. */
static void read_counters(void *arg)
{
	struct pace_report *report = arg;
	uint64_t now_ns = clock_now_ns();
	if (now_ns < report->counters_ns)
		return;
	report->counters_ns = now_ns + PACE_COUNTERS_NS;
	for (size_t i = 0; i < report->count; i++) {
		struct paced *paced = &report->paced[i];
		if (!runs(report, i))
			continue;
		paced->before = paced->last;
		slowdown_read(report->spec.workers->pids[i], &paced->last);
	}
}

static void look_again(const struct pace_report *report, uint64_t period_ns)
{
	struct timeval period = clock_timeval(period_ns);
	event_add(report->timer, &period);
}

static void tell(const struct pace_report *report, const struct agent_event *event)
{
	report->spec.on_event(report->spec.arg, event);
}

/* ---- who is waited for ---- */

static void tell_looks(struct pace_report *report)
{
	if (report->look_count == 0)
		return;
	tell(report, &(struct agent_event){ .type = AGENT_PACE,
					    .marks = report->looks,
					    .mark_count = report->look_count,
					    .group = LOOKS_GROUP,
					    .size = report->spec.workers->round.world_size });
	report->spec.on_looked(report->spec.arg);
	report->look_count = 0;
}

static void plan_moment(struct pace_report *report)
{
	uint64_t now_ns = clock_now_ns(), there_ns = agent_there_ns(report->spec.agent, now_ns);
	const struct worker_round *round = &report->spec.workers->round;
	if (!there_ns || round->world_size < 2 || now_ns - report->told_ns > LOOKS_IDLE_NS)
		return;
	uint64_t last = report->look;
	report->look = looks_next(there_ns, report->first_look, round->group_world_size);
	if (!report->first_look)
		report->first_look = report->look;
	if (last && report->look != last + 1)
		tell_looks(report);
	struct timeval left = clock_left(report->look * LOOKS_APART_NS, there_ns);
	event_add(report->look_timer, &left);
}

static uint64_t told_by(const struct pace_report *report, size_t rank)
{
	const struct worker_page *page = worker_pages_get(report->spec.pages, rank);
	struct step_progress progress = { .told = 0 };
	if (page)
		worker_page_read(page, &progress);
	return progress.told;
}

/* All workers of this host in one moment. */
static void on_moment(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct pace_report *report = arg;
	const struct worker_round *round = &report->spec.workers->round;
	struct step_marks marks = { .items[0].ranks = 0 };
	const struct step_mark *all = NULL;
	uint64_t there_ns = agent_there_ns(report->spec.agent, clock_now_ns());
	/* One that comes late is of another moment than those of other hosts. */
	bool in_time = there_ns < (report->look + 1) * LOOKS_APART_NS;
	if (!workers_run(report))
		return;
	for (size_t i = 0; i < report->count; i++) {
		bool waits = runs(report, i) &&
			     waiting_read(report->spec.workers->pids[i], &report->paced[i].waiting);
		struct step_mark mark = look_mark(report->look, round->rank_base + (uint32_t)i,
						  waits, told_by(report, i), round->world_size);
		all = step_marks_add(&marks, &mark, (uint32_t)report->count);
	}
	if (all && in_time)
		report->looks[report->look_count++] = *all;
	if (report->look_count == MSG_MARKS_MAX)
		tell_looks(report);
	plan_moment(report);
}

static void on_look(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct pace_report *report = arg;
	struct host_steps *steps = &report->steps;
	bool any = false;
	if (!workers_run(report))
		return;
	steps->told_count = 0;
	for (size_t i = 0; i < report->count; i++)
		any |= look_at(report, i);
	if (any)
		read_counters(report);
	if (steps->told_count > 0)
		report->told_ns = clock_now_ns();
	if (steps->told_count > 0 && !event_pending(report->look_timer, EV_TIMEOUT, NULL))
		plan_moment(report);
	look_again(report, any ? PACE_LOOK_NS : PACE_IDLE_NS);
	if (steps->told_count == 0)
		return;
	tell(report, &(struct agent_event){ .type = AGENT_PACE,
					    .marks = steps->told,
					    .mark_count = steps->told_count });
	report->spec.on_looked(report->spec.arg);
}

void pace_report_begin(struct pace_report *report, const char *records)
{
	const struct worker_round *round = &report->spec.workers->round;
	free(report->paced);
	event_del(report->timer);
	event_del(report->look_timer);
	report->look = report->first_look = 0;
	report->look_count = 0;
	report->count = round->local_world_size;
	report->paced = mem_alloc(report->count * sizeof(*report->paced));
	host_steps_begin(&report->steps, round->rank_base, round->local_world_size,
			 round->group_world_size);
	report->counters_ns = 0;
	flights_begin(report->flights, records, round);
}

void pace_report_wake(struct pace_report *report)
{
	/* A single worker has nobody to keep pace with. */
	if (report->spec.workers->round.world_size > 1 &&
	    !event_pending(report->timer, EV_TIMEOUT, NULL))
		look_again(report, PACE_LOOK_NS);
}

/* What happened to the worker of late, over PACE_SPAN_NS at least; NULL: that is not known. */
static char *explain(const struct pace_report *report, size_t rank)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	const struct paced *paced = &report->paced[rank];
	const struct slowdown *before = paced->before.at_ns ? &paced->before : &paced->last;
	struct slowdown now;
	slowdown_read(report->spec.workers->pids[rank], &now);
	if (!before->at_ns || now.at_ns < before->at_ns + PACE_SPAN_NS)
		return NULL;
	slowdown_explain(before, &now, (uint32_t)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L), &text);
	return mem_strdup(buf_str(&text));
}

/* Returns whether the worker is named now and was not before, or the other way round. */
static bool turns(struct paced *paced, const struct straggler_news *news)
{
	size_t count = paced->named_count, at = 0;
	while (at < count && paced->named[at] != news->group)
		at++;
	if (news->begins && at == count && count < NAMED_MAX)
		paced->named[paced->named_count++] = news->group;
	else if (!news->begins && at < count)
		paced->named[at] = paced->named[--paced->named_count];
	return (count == 0) != (paced->named_count == 0);
}

void pace_report_late(struct pace_report *report, const struct straggler_news *news)
{
	uint32_t base = report->spec.workers->round.rank_base;
	if (news->rank < base || news->rank - base >= report->count)
		return;
	size_t rank = news->rank - base;
	if (!turns(&report->paced[rank], news))
		return;
	AUTO_FREE char *why = news->begins ? explain(report, rank) : NULL;
	const char *group = news->group ? flights_group(report->flights, news->group) : NULL;
	report->spec.on_straggler(report->spec.arg, rank, news, why ? why : "", group ? group : "");
}

/* ---- the order of arrival at collectives ---- */

static void on_news(void *arg, const struct straggler_news *news)
{
	pace_report_late(arg, news);
}

static void on_record(void *arg, size_t rank, const struct record *record)
{
	const struct pace_report *report = arg;
	uint64_t sum = 0;
	for (size_t i = 0; i < record->count; i++)
		sum += record->groups[i].last_seq;
	report->spec.on_arrived(report->spec.arg, rank, sum);
}

static void on_marks(void *arg, const struct arrival_group *group, uint64_t error_ns)
{
	tell(arg, &(struct agent_event){ .type = AGENT_PACE,
					 .marks = group->marks,
					 .mark_count = group->mark_count,
					 .group = group->key,
					 .size = group->size,
					 .error_ns = error_ns });
}

static void on_done(void *arg)
{
	struct pace_report *report = arg;
	report->spec.on_looked(report->spec.arg);
}

struct pace_report *pace_report_new(const struct pace_report_spec *spec)
{
	struct pace_report *report = NEW(struct pace_report);
	const struct flights_hooks hooks = {
		.runs = workers_run,
		.on_look = read_counters,
		.on_record = on_record,
		.on_news = on_news,
		.on_marks = on_marks,
		.on_done = on_done,
		.arg = report,
	};
	*report = (struct pace_report){
		.spec = *spec,
		.timer = evtimer_new(spec->base, on_look, report),
		.look_timer = evtimer_new(spec->base, on_moment, report),
		.flights = flights_new(spec->base, &hooks),
	};
	return report;
}
