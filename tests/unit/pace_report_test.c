/* What a host tells of the pace of its workers. */
#include "unit.h"

#include <unistd.h>

#include "loop.h"
#include "core/pace/looks.h"
#include "run/pace/pace_report.h"

#define WORKERS 2
#define RANK_BASE 6

struct host {
	struct event_base *base;
	struct worker members[WORKERS];
	struct group group;
	pid_t pids[WORKERS];
	struct workers workers;
	struct worker_pages pages;
	struct pace_report *report;
	int begun, over; /* news of stragglers */
	struct step_mark marks[8];
	size_t mark_count;
	bool looked;
	size_t looks;
	struct agent agent;
};

static void on_event(void *arg, const struct agent_event *event)
{
	struct host *host = arg;
	ck_assert_int_eq(event->type, AGENT_PACE);
	if (event->group == LOOKS_GROUP) { /* nobody here waits for another process */
		host->looks += event->mark_count;
		for (size_t i = 0; i < event->mark_count; i++)
			ck_assert_uint_eq(event->marks[i].ranks, WORKERS);
		return;
	}
	ck_assert_uint_eq(event->group, 0);
	for (size_t i = 0; i < event->mark_count; i++)
		host->marks[host->mark_count++ % 8] = event->marks[i];
}

static void on_looked(void *arg)
{
	struct host *host = arg;
	host->looked = true;
}

static void on_straggler(void *arg, size_t rank, const struct straggler_news *news,
			 const char *why UNUSED, const char *group UNUSED)
{
	struct host *host = arg;
	ck_assert_uint_eq(RANK_BASE + rank, news->rank);
	host->begun += news->begins;
	host->over += !news->begins;
}

static void open_host(struct host *host, uint32_t world_size)
{
	*host = (struct host){ .base = event_base_new(),
			       .group = { .state = GROUP_ACTIVE, .count = WORKERS },
			       .pids = { getpid(), getpid() },
			       .pages = WORKER_PAGES_INIT };
	host->group.workers = host->members;
	host->workers.pids = host->pids;
	host->workers.round = (struct worker_round){ .rank_base = RANK_BASE,
						     .local_world_size = WORKERS,
						     .group_world_size = 2,
						     .world_size = world_size };
	worker_pages_reset(&host->pages, WORKERS);
	for (size_t i = 0; i < WORKERS; i++) {
		host->members[i].state = WORKER_RUNNING;
		ck_assert_int_ge(worker_pages_fd(&host->pages, i, NULL), 0);
	}
	host->report = pace_report_new(&(struct pace_report_spec){ .base = host->base,
								   .group = &host->group,
								   .workers = &host->workers,
								   .pages = &host->pages,
								   .agent = &host->agent,
								   .on_straggler = on_straggler,
								   .on_event = on_event,
								   .on_looked = on_looked,
								   .arg = host });
	pace_report_begin(host->report, NULL);
}

static void close_host(struct host *host)
{
	pace_report_free(host->report);
	worker_pages_done(&host->pages);
	event_base_free(host->base);
}

static void late(struct host *host, uint32_t rank, uint64_t group, bool begins)
{
	pace_report_late(host->report,
			 &(struct straggler_news){
				 .rank = rank, .group = group, .begins = begins, .of = 8 });
}

TEST(the_node_hears_of_the_steps_that_all_workers_here_have_told)
{
	struct host host;
	open_host(&host, 4);
	pace_report_wake(host.report);
	for (uint64_t step = 1; step <= 3; step++)
		for (size_t i = 0; i < WORKERS; i++)
			worker_page_tell(worker_pages_get(&host.pages, i), step,
					 step * NS_PER_S + i);
	worker_page_tell(worker_pages_get(&host.pages, 0), 4, 4 * NS_PER_S);
	WAIT_FOR(&host, host.looked);
	ck_assert_uint_gt(host.mark_count, 0);
	for (size_t i = 0; i < host.mark_count; i++) {
		ck_assert_uint_le(host.marks[i].step, 3);
		ck_assert_uint_eq(host.marks[i].rank, RANK_BASE + 1);
	}
	/* They tell steps: whether they wait is looked at. */
	WAIT_FOR(&host, host.looks >= 2 * MSG_MARKS_MAX);
	close_host(&host);
}

TEST(a_single_worker_is_not_looked_at)
{
	struct host host;
	open_host(&host, 1);
	pace_report_wake(host.report);
	ck_assert_int_eq(event_base_loop(host.base, 0), 1); /* no event is left in it */
	close_host(&host);
}

TEST(a_worker_that_holds_the_others_up_in_several_ways_is_named_once_until_all_are_over)
{
	struct host host;
	open_host(&host, 4);
	late(&host, RANK_BASE + 1, 0, true);
	late(&host, RANK_BASE + 1, 7, true);
	late(&host, RANK_BASE + 1, 7, true);
	ck_assert_int_eq(host.begun, 1);
	late(&host, RANK_BASE + 1, 0, false);
	ck_assert_int_eq(host.over, 0);
	late(&host, RANK_BASE + 1, 7, false);
	ck_assert_int_eq(host.over, 1);
	close_host(&host);
}

TEST(workers_of_other_hosts_are_not_this_hosts_to_name)
{
	struct host host;
	open_host(&host, 12);
	late(&host, RANK_BASE - 1, 0, true);
	late(&host, RANK_BASE + WORKERS, 0, true);
	ck_assert_int_eq(host.begun, 0);
	close_host(&host);
}
