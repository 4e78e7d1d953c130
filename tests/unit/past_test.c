/* A job that is over, from what its hosts left behind. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "proto/dash/past.h"
#include "proto/json_value.h"

static struct past *past;
static struct buf text;
static struct json_value root;

static void event(const char *line)
{
	ck_assert_int_eq(past_take_event(past, bytes_str(line)), 0);
}

#define EVENT(name, ms, more) \
	event("{\"event\":\"" name "\",\"timestamp\":" #ms ",\"run_id\":\"r\"," more "}")

/* Two hosts with a worker each; rank 1 fails in round 1, all end well in round 2. */
static void add_host(bool second)
{
	ck_assert_int_eq(past_add_host(past), 0);
	EVENT("job.started", 100, "\"pid\":7");
	if (second) {
		EVENT("round.formed", 111,
		      "\"host\":\"b\",\"round\":1,\"world_size\":2,\"nodes\":2,\"group_rank\":1");
		EVENT("worker.started", 112, "\"rank\":1,\"local_rank\":0,\"pid\":50");
		EVENT("worker.exited", 150,
		      "\"rank\":1,\"status\":\"exit code 3\",\"exit_code\":3");
		EVENT("group.failed", 151, "\"rank\":1,\"reason\":\"exit\"");
		EVENT("group.gone", 152, "\"round\":1");
		EVENT("round.formed", 160,
		      "\"round\":2,\"world_size\":2,\"nodes\":2,\"restarts\":1,\"group_rank\":1");
		EVENT("worker.started", 161, "\"rank\":1,\"local_rank\":0,\"pid\":51");
		EVENT("worker.exited", 190, "\"rank\":1,\"exit_code\":0");
	} else {
		EVENT("round.formed", 110,
		      "\"host\":\"a\",\"round\":1,\"world_size\":2,\"nodes\":2,\"group_rank\":0");
		EVENT("worker.started", 111, "\"rank\":0,\"local_rank\":0,\"pid\":40");
		EVENT("worker.exited", 155, "\"rank\":0,\"status\":\"SIGTERM\"");
		EVENT("group.gone", 156, "\"round\":1");
		EVENT("round.formed", 160,
		      "\"round\":2,\"world_size\":2,\"nodes\":2,\"restarts\":1,\"group_rank\":0");
		EVENT("worker.started", 161, "\"rank\":0,\"local_rank\":0,\"pid\":41");
		EVENT("worker.exited", 191, "\"rank\":0,\"exit_code\":0");
	}
	EVENT("group.done", 192, "\"round\":2");
	EVENT("group.gone", 193, "\"round\":2");
	EVENT("job.ended", 200, "\"round\":2");
}

static void begin(void)
{
	past = past_new("logs");
	text = BUF_INIT;
}

static struct json_value put(void)
{
	buf_clear(&text);
	past_put(past, &text);
	ck_assert_int_eq(json_value_parse((const char *)buf_data(&text), buf_len(&text), &root), 0);
	return json_value_get(root, "board");
}

static void end(void)
{
	past_free(past);
	buf_done(&text);
}

static void expect(struct json_value value, const char *json)
{
	AUTO(buf_done) struct buf out = BUF_INIT;
	struct json_out json_out = JSON_OUT(&out);
	json_out_value(&json_out, NULL, value);
	ck_assert_str_eq(buf_str(&out), json);
}

TEST(hosts_are_put_together_by_their_rounds)
{
	begin();
	add_host(false);
	ck_assert_str_eq(past_run_id(past), "r");
	add_host(true);
	struct json_value board = put(), job = json_value_get(board, "job");
	expect(json_value_get(json_value_get(board, "c"), "state"), "[3,3]");
	expect(json_value_get(json_value_get(board, "c"), "host"), "[0,1]");
	expect(json_value_get(job, "exit_code"), "0");
	expect(json_value_get(job, "state"), "\"done\"");
	expect(json_value_get(job, "nodes"), "2");
	expect(json_value_get(board, "attempts"),
	       "[{\"restart\":0,\"world_size\":2,\"end\":\"failed\",\"started_ms\":110,"
	       "\"ended_ms\":156,\"cause\":{\"rank\":1,\"host\":\"b\",\"reason\":\"exit\","
	       "\"end\":\"exit code 3\"}},{\"restart\":1,\"world_size\":2,\"end\":\"done\","
	       "\"started_ms\":160,\"ended_ms\":193}]");
	end();
}

TEST(a_report_tells_causes_and_the_end)
{
	begin();
	add_host(true);
	ck_assert_int_eq(
		past_take_report(
			past,
			bytes_str("{\"outcome\":\"failed\",\"exit_code\":3,\"command\":[\"x\"],"
				  "\"attempts\":[{\"end\":\"failed\",\"first_cause\":1,"
				  "\"step\":9,\"failures\":[{},{\"rank\":5,\"host\":\"<b>\","
				  "\"reason\":\"hang\",\"end\":\"SIGKILL\","
				  "\"stderr_tail\":\"oh\"}]},{\"end\":\"stopped\"}]}")),
		0);
	struct json_value board = put(),
			  first = json_value_first(json_value_get(board, "attempts"));
	expect(json_value_get(first, "cause"),
	       "{\"rank\":5,\"host\":\"<b>\",\"reason\":\"hang\",\"end\":\"SIGKILL\","
	       "\"tail\":\"oh\"}");
	expect(json_value_get(first, "step"), "9");
	expect(json_value_get(json_value_get(board, "job"), "exit_code"), "3");
	expect(json_value_get(json_value_get(board, "about"), "command"), "[\"x\"]");
	end();
}

TEST(a_job_that_left_on_request_is_not_done)
{
	begin();
	add_host(true);
	ck_assert_int_eq(
		past_take_report(
			past,
			bytes_str("{\"outcome\":\"done\",\"exit_code\":94,"
				  "\"exit_reason\":\"saved\",\"attempts\":[{\"end\":\"failed\"},"
				  "{\"end\":\"done\",\"left\":[{\"rank\":0,\"step\":7}]}]}")),
		0);
	struct json_value board = put(), job = json_value_get(board, "job"), last;
	expect(json_value_get(job, "state"), "\"left\"");
	expect(json_value_get(job, "exit_code"), "94");
	struct json_in in;
	json_value_enter(json_value_get(board, "attempts"), &in);
	ck_assert(json_value_next(&in, &last));
	ck_assert_int_eq(json_value_get(last, "left_step").kind, JSON_NONE);
	ck_assert(json_value_next(&in, &last));
	expect(json_value_get(last, "left_step"), "7");
	end();
}

TEST(log_lines_of_ranks_that_are_alike_are_one_by_attempt)
{
	begin();
	add_host(false);
	add_host(true);
	for (size_t attempt = 0; attempt < 2; attempt++) {
		for (size_t host = 0; host < 2; host++)
			past_take_log(past, host, attempt, 0, LOG_STDOUT, bytes_str("same\n"));
		past_take_log(past, 1, attempt, 0, LOG_STDERR, bytes_str("own"));
		past_end_attempt(past, attempt);
	}
	put();
	expect(json_value_get(json_value_get(root, "log"), "lines"),
	       "[[156,\"0-1\",\"same\"],[156,\"1\",\"own\"],"
	       "[193,\"0-1\",\"same\"],[193,\"1\",\"own\"]]");
	end();
}

TEST(what_makes_no_sense_is_passed_over)
{
	begin();
	put();
	ck_assert_int_eq(past_add_host(past), 0);
	ck_assert_int_eq(past_take_event(past, bytes_str("{")), -EINVAL);
	ck_assert_int_eq(past_take_event(past, bytes_str("[1]")), -EINVAL);
	ck_assert_int_eq(past_take_report(past, bytes_str("nothing")), -EINVAL);
	event("{\"event\":\"worker.exited\",\"rank\":3}");
	event("{\"event\":\"round.formed\",\"world_size\":-4,\"round\":\"x\"}");
	event("{\"event\":\"worker.exited\",\"rank\":3}");
	event("{\"event\":\"worker.started\",\"rank\":-3}");
	expect(json_value_get(put(), "n"), "0");
	ck_assert(past_run_id(past) == NULL);
	end();
}
