/* All workers leave or save together: what this host does about it. */
#include "unit.h"

#include <signal.h>
#include <stdlib.h>

#include "loop.h"
#include "run/notice.h"

#define WORKERS 2

struct host {
	struct event_base *base;
	struct worker workers[WORKERS];
	struct group group;
	struct agent agent;
	struct worker_pages pages;
	struct telling telling;
	struct notice notice;
	struct agent_event heard; /* by the node, last */
	size_t count;
};

static void on_event(void *arg, const struct agent_event *event)
{
	struct host *host = arg;
	host->heard = *event;
	host->count++;
}

/* A round runs, and its workers have pages. */
static void open_host(struct host *host)
{
	*host = (struct host){ .base = event_base_new(),
			       .group = { .state = GROUP_ACTIVE, .count = WORKERS },
			       .agent = { .state = AGENT_RUNNING },
			       .pages = WORKER_PAGES_INIT };
	host->group.workers = host->workers;
	worker_pages_reset(&host->pages, WORKERS);
	for (size_t i = 0; i < WORKERS; i++) {
		host->workers[i].state = WORKER_RUNNING;
		ck_assert_int_ge(worker_pages_fd(&host->pages, i, NULL), 0);
	}
	host->notice = (struct notice){ .base = host->base,
					.group = &host->group,
					.agent = &host->agent,
					.pages = &host->pages,
					.telling = &host->telling,
					.left_ns = 30 * NS_PER_S,
					.on_event = on_event,
					.arg = host };
	notice_begin(&host->notice);
}

static void close_host(struct host *host)
{
	notice_done(&host->notice);
	worker_pages_done(&host->pages);
	free(host->telling.later);
	event_base_free(host->base);
}

static struct worker_page *page(struct host *host, size_t rank)
{
	return worker_pages_get(&host->pages, rank);
}

static void ask_to_leave(struct host *host)
{
	for (size_t i = 0; i < WORKERS; i++)
		page(host, i)->asks = 1 << PLAN_LEAVE;
}

TEST(a_signal_is_a_notice_where_a_worker_asks_and_ends_the_job_the_second_time)
{
	struct host host;
	open_host(&host);
	ck_assert(!notice_signal(&host.notice, SIGTERM)); /* nobody asks */
	ask_to_leave(&host);
	ck_assert(!notice_signal(&host.notice, SIGINT));
	ck_assert_uint_eq(host.count, 0);
	ck_assert(notice_signal(&host.notice, SIGTERM));
	ck_assert_int_eq(host.heard.type, AGENT_NOTICE);
	ck_assert_int_eq(host.heard.signal, SIGTERM);
	ck_assert_uint_eq(host.heard.left_ns, 30 * NS_PER_S);
	ck_assert_int_eq(host.telling.later[0].kind, HAPPENED_NOTICE);
	host.agent.noticed = true;
	ck_assert(!notice_signal(&host.notice, SIGTERM));
	ck_assert(notice_signal(&host.notice, SIGUSR1)); /* never ends it */
	ck_assert_uint_eq(host.count, 1);
	close_host(&host);
}

TEST(nobody_gets_notice_while_no_round_runs_or_where_there_are_none)
{
	struct host host;
	open_host(&host);
	ask_to_leave(&host);
	host.agent.state = AGENT_JOINED;
	ck_assert(!notice_give(&host.notice, PLAN_LEAVE, 0));
	host.agent.state = AGENT_RUNNING;
	host.group.state = GROUP_STOPPING;
	ck_assert(!notice_give(&host.notice, PLAN_LEAVE, 0));
	host.group.state = GROUP_ACTIVE;
	host.notice.left_ns = 0;
	ck_assert(!notice_give(&host.notice, PLAN_LEAVE, 0));
	host.notice.left_ns = 1;
	ck_assert(!notice_give(&host.notice, PLAN_SAVE, 0)); /* they ask to leave */
	ck_assert_uint_eq(host.count, 0);
	ck_assert(notice_give(&host.notice, PLAN_LEAVE, 0));
	close_host(&host);
}

TEST(workers_see_a_plan_and_the_node_hears_whenever_they_have_moved)
{
	struct host host;
	struct stop_plan plan = { .serial = 1, .phase = PLAN_ASKED, .kind = PLAN_LEAVE };
	uint64_t seen;
	open_host(&host);
	ask_to_leave(&host);
	notice_show(&host.notice, &plan);
	ck_assert_int_eq(host.heard.type, AGENT_POSITIONS);
	ck_assert_uint_eq(host.heard.positions.unknown, WORKERS);
	ck_assert(plan_eq(&host.heard.of, &plan));
	for (size_t i = 0; i < WORKERS; i++)
		ck_assert_int_eq(plan_ask(page(&host, i), 6 + i, false, &seen), PLAN_GO_ON);
	WAIT_FOR(&host, host.heard.positions.unknown == 0);
	ck_assert_uint_eq(host.heard.positions.pending, WORKERS);
	ck_assert_uint_eq(host.heard.positions.at, 8);
	close_host(&host);
}

TEST(a_plan_that_is_no_more_is_not_looked_after)
{
	struct host host;
	open_host(&host);
	ask_to_leave(&host);
	notice_show(&host.notice,
		    &(struct stop_plan){ .serial = 1, .phase = PLAN_COMMITTED, .step = 9 });
	ck_assert_int_eq(host.telling.later[0].kind, HAPPENED_AGREED);
	free((void *)host.telling.later[0].data);
	ck_assert_uint_ne(page(&host, 0)->plan, 0);
	notice_show(&host.notice, &(struct stop_plan){ .phase = PLAN_NONE });
	ck_assert_uint_eq(page(&host, 0)->plan, 0);
	ck_assert_int_eq(event_base_loop(host.base, 0), 1); /* no event is left in it */
	close_host(&host);
}

TEST(workers_have_left_when_the_state_of_all_is_safe)
{
	struct host host;
	uint64_t seen;
	open_host(&host);
	ask_to_leave(&host);
	notice_show(&host.notice,
		    &(struct stop_plan){ .serial = 1, .phase = PLAN_COMMITTED, .step = 9 });
	free((void *)host.telling.later[0].data);
	ck_assert(!notice_left(&host.notice));
	for (size_t i = 0; i < WORKERS; i++) {
		ck_assert_int_eq(plan_ask(page(&host, i), 9, false, &seen), PLAN_ACT);
		host.workers[i].status = exit_status_from_wait(0);
	}
	ck_assert(notice_left(&host.notice));
	host.workers[1].status = exit_status_from_wait(1 << 8);
	ck_assert(!notice_left(&host.notice));
	page(&host, 1)->saved = 10;
	ck_assert(notice_left(&host.notice));
	close_host(&host);
}
