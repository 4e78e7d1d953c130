#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proto/event.h"
#include "proto/event_in.h"

static struct event_in event;

static int parse(const char *text)
{
	event_in_done(&event);
	return event_in_parse(text, strlen(text), &event);
}

TEST(what_is_written_is_read_back)
{
	AUTO(buf_done) struct buf line = BUF_INIT;
	int exit_code = 3;
	struct event_head head = { .run_id = "job",
				   .host = "node",
				   .wall_ns = 1794801217469000000,
				   .round = 2,
				   .restarts = 1 };
	struct event_body body = { .rank = 5,
				   .local_rank = 1,
				   .pid = 4711,
				   .status = "exit code 3",
				   .exit_code = &exit_code,
				   .error_file = "/tmp/a b\"\xc3\xbc\xff/error.json" };
	event_line(&line, EVENT_WORKER_EXITED, &head, &body);
	ck_assert_int_eq(parse(buf_str(&line)), 0);
	ck_assert_str_eq(buf_str(&event.name), "worker.exited");
	ck_assert_int_eq(event.rank, 5);
	ck_assert_int_eq(event.local_rank, 1);
	ck_assert_int_eq(event.pid, 4711);
	ck_assert_int_eq(event.exit_code, 3);
	ck_assert_int_eq(event.round, 2);
	ck_assert_int_eq(event.restarts, 1);
	ck_assert_int_eq(event.timestamp, 1794801217469);
	ck_assert_str_eq(buf_str(&event.error_file), body.error_file);
	event_in_done(&event);
}

TEST(what_is_absent_is_told_from_zero)
{
	ck_assert_int_eq(parse("{\"event\":\"group.gone\"}"), 0);
	ck_assert_int_eq(event.rank, -1);
	ck_assert_int_eq(event.exit_code, -1);
	ck_assert_uint_eq(buf_len(&event.signal), 0);
	event_in_done(&event);
}

TEST(members_of_later_versions_are_passed_over)
{
	ck_assert_int_eq(parse("{\"new\":{\"a\":[1,2]},\"event\":\"job.ended\",\"pid\":7}"), 0);
	ck_assert_str_eq(buf_str(&event.name), "job.ended");
	ck_assert_int_eq(event.pid, 7);
	event_in_done(&event);
}

TEST(invalid_events_are_refused)
{
	static const char *const wrong[] = { "",
					     "{}",
					     "[]",
					     "{\"event\":\"\"}",
					     "{\"event\":7}",
					     "{\"event\":\"x\"",
					     "{\"event\":\"x\"} y",
					     "{\"event\":\"x\",\"pid\":\"7\"}" };
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		ck_assert_int_eq(parse(wrong[i]), -EINVAL);
}
