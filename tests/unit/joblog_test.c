/* The end of an attempt waits for what its workers printed last, where there is one log of all. */
#include "unit.h"

#include <stdlib.h>

#include "base/fd.h"
#include "run/joblog/joblog.h"

struct host {
	struct event_base *base;
	struct output *output;
	struct routes routes;
	struct joblog log;
};

static void on_node_event(void *arg UNUSED, const struct node_event *event UNUSED)
{
	ck_abort_msg("nobody coordinates here");
}

static void open_host(struct host *host)
{
	*host = (struct host){ .base = event_base_new(), .routes = ROUTES_INIT };
	ck_assert_int_eq(output_new(&(struct output_config){ .queue = true }, &host->output, NULL),
			 0);
	joblog_open(&host->log, host->base, "/nowhere/job.log", 0, host->output, &host->routes,
		    &(struct own_question_hooks){ on_node_event, host });
	joblog_round(&host->log);
}

static void close_host(struct host *host)
{
	joblog_close(&host->log);
	output_free(host->output);
	routes_done(&host->routes);
	event_base_free(host->base);
}

TEST(without_a_log_of_all_nothing_waits_and_nothing_is_missing)
{
	struct joblog log = { .path = NULL };
	AUTO(buf_done) struct buf missing = BUF_INIT;
	ck_assert(!joblog_ended(&log, 100));
	ck_assert(!joblog_step(&log, true, true, 200));
	ck_assert_uint_eq(joblog_deadline_ns(&log), NS_NEVER);
	joblog_finish(&log, &missing);
	ck_assert_uint_eq(buf_len(&missing), 0);
}

TEST(the_end_waits_until_the_coordinator_has_asked_and_taken_all)
{
	struct host host;
	open_host(&host);
	ck_assert(joblog_ended(&host.log, 100));
	ck_assert(!joblog_step(&host.log, false, true, 101)); /* it may be about to ask */
	joblog_asked(&host.log);
	ck_assert(!joblog_step(&host.log, false, false, 102));
	AUTO(buf_done) struct buf lines = BUF_INIT;
	log_sender_begin(host.log.sender, 1, NULL, NULL);
	log_sender_take(host.log.sender, 4096, &lines);
	ck_assert(joblog_step(&host.log, false, true, 103));
	ck_assert(!joblog_step(&host.log, false, true, 104)); /* once */
	close_host(&host);
}

TEST(the_end_waits_no_longer_than_its_time)
{
	struct host host;
	open_host(&host);
	ck_assert(joblog_ended(&host.log, 100));
	ck_assert_uint_eq(joblog_deadline_ns(&host.log), 100 + LOG_WAIT_UNASKED_NS);
	ck_assert(joblog_step(&host.log, false, false, 100 + LOG_WAIT_UNASKED_NS));
	ck_assert(!joblog_ended(&host.log, 200 + LOG_WAIT_UNASKED_NS)); /* there is no such log */
	close_host(&host);
}
