/* What the page of a batch is told: everything, changes, and the part of the list that it wants. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "proto/dash/roster.h"
#include "proto/json_value.h"

#define MANY 100000
#define START_NS (5 * NS_PER_S)

static struct orders list;
static const struct roster_sum runs = { .state = "running", .left_ns = NS_NEVER, .exit_code = -1 };

static const struct order *order_at(void *arg UNUSED, size_t index)
{
	return &list.items[index];
}

static struct roster *make(size_t count)
{
	struct err err = ERR_INIT;
	orders_done(&list);
	list = ORDERS_INIT;
	for (size_t i = 0; i < count; i++) {
		char line[128];
		int len = snprintf(line, sizeof(line),
				   "{\"id\":\"o%zu\",\"cmd\":\"Work %zu\","
				   "\"labels\":{\"kind\":\"k%zu\"}}",
				   i, i, i % 7);
		ck_assert_int_ge(orders_add_line(&list, line, (size_t)len, (uint32_t)i + 1, &err),
				 0);
	}
	return roster_new(count, order_at, NULL, START_NS, 1000);
}

static int64_t number(struct json_value object, const char *key)
{
	int64_t number = INT64_MIN;
	json_value_int(json_value_get(object, key), &number);
	return number;
}

static struct json_value parsed(struct buf *text)
{
	struct json_value root;
	ck_assert_int_eq(json_value_parse(buf_str(text), buf_len(text), &root), 0);
	return root;
}

static struct json_value changes(struct roster *roster, uint64_t now_ns, struct buf *text)
{
	buf_clear(text);
	roster_put_changes(roster, &runs, now_ns, text);
	return parsed(text);
}

static void end(struct roster *roster, size_t index, enum reason reason, uint64_t wall_ns,
		bool final, uint64_t now_ns)
{
	struct result result = RESULT_INIT;
	result.attempt = 1;
	result.reason = reason;
	result.tail = reason == REASON_OK ? NULL : (char *)"<b>why</b>";
	result_set(&result, RESULT_WALL_NS, (int64_t)wall_ns);
	roster_ended(roster, index, &result, final, false, "exit code 3", now_ns);
}

/* index, state, attempts, runs, µs, host, started */
static int64_t cell(struct json_value row, int column)
{
	struct json_value item;
	struct json_in in;
	int64_t number = INT64_MIN;
	json_value_enter(row, &in);
	for (int i = 0; i <= column; i++)
		ck_assert(json_value_next(&in, &item));
	json_value_int(item, &number);
	return number;
}

TEST(a_page_is_told_changes_and_nothing_when_there_are_none)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct roster *roster = make(3);
	changes(roster, START_NS, &text);
	buf_clear(&text);
	ck_assert(!roster_put_changes(roster, &runs, START_NS, &text));

	roster_started(roster, 1, NULL, START_NS + 20 * NS_PER_MS);
	struct json_value told = changes(roster, START_NS + NS_PER_S, &text);
	struct json_value rows = json_value_get(told, "rows");
	ck_assert_uint_eq(json_value_count(rows), 1);
	ck_assert_int_eq(cell(json_value_first(rows), 0), 1);
	ck_assert_int_eq(cell(json_value_first(rows), 1), ROSTER_RUNNING);
	ck_assert_int_eq(cell(json_value_first(rows), 4), -1);
	ck_assert_int_eq(cell(json_value_first(rows), 6), 1020);
	ck_assert_int_eq(number(json_value_get(told, "sum"), "running"), 1);
	ck_assert_int_eq(number(json_value_get(told, "sum"), "queued"), 2);
	ck_assert_int_eq(json_value_get(told, "times").kind, JSON_NONE);

	end(roster, 1, REASON_EXIT, 1500000, true, START_NS + NS_PER_S);
	told = changes(roster, START_NS + 2 * NS_PER_S, &text);
	ck_assert_int_eq(cell(json_value_first(json_value_get(told, "rows")), 1), ROSTER_FAILED);
	ck_assert_int_eq(cell(json_value_first(json_value_get(told, "rows")), 4), 1500);
	ck_assert_int_eq(cell(json_value_first(json_value_get(told, "rows")), 3), 0);
	struct json_value failure = json_value_first(json_value_get(told, "failures"));
	AUTO_FREE char *tail = json_value_text(json_value_get(failure, "tail"));
	ck_assert_str_eq(tail, "<b>why</b>");
	ck_assert_int_eq(
		json_value_get(changes(roster, START_NS + 2 * NS_PER_S, &text), "failures").kind,
		JSON_NONE);
	roster_free(roster);
}

TEST(runs_retries_stops_and_skips_are_told_apart)
{
	struct roster *roster = make(4);
	struct result stopped = RESULT_INIT;
	for (size_t i = 0; i < 3; i++)
		roster_started(roster, i, NULL, START_NS);
	end(roster, 0, REASON_OK, 100, false, START_NS); /* its first run of several */
	ck_assert_uint_eq(roster_count(roster, ROSTER_WAITING), 1);
	roster_started(roster, 0, NULL, START_NS);
	end(roster, 0, REASON_OK, 100, true, START_NS);
	stopped.reason = REASON_KILLED;
	roster_ended(roster, 1, &stopped, false, true, "", START_NS);
	roster_skipped(roster, 3);
	roster_skipped(roster, 3);
	ck_assert_uint_eq(roster_count(roster, ROSTER_OK), 1);
	ck_assert_uint_eq(roster_count(roster, ROSTER_QUEUED), 1);
	ck_assert_uint_eq(roster_count(roster, ROSTER_RUNNING), 1);
	ck_assert_uint_eq(roster_count(roster, ROSTER_SKIPPED), 1);
	roster_started(roster, 4, NULL, START_NS); /* no order of the list */
	end(roster, 400, REASON_OK, 1, true, START_NS);
	ck_assert_uint_eq(roster_count(roster, ROSTER_RUNNING), 1);
	roster_free(roster);
}

TEST(what_a_page_gets_does_not_grow_with_the_list)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct roster *roster = make(MANY);
	for (size_t i = 0; i < MANY; i++)
		end(roster, i, i % 2 ? REASON_EXIT : REASON_OK, i * 1000, true, START_NS);
	struct json_value told = changes(roster, START_NS + NS_PER_S, &text);
	ck_assert(json_value_is_true(json_value_get(told, "many")));
	ck_assert_int_eq(json_value_get(told, "rows").kind, JSON_NONE);
	ck_assert_uint_eq(json_value_count(json_value_get(told, "failures")), ROSTER_FAILURES);
	ck_assert_int_eq(number(json_value_get(told, "sum"), "failures"), MANY / 2);
	ck_assert_uint_lt(buf_len(&text), 32 << 10);
	buf_clear(&text);
	roster_put_all(roster, &runs, START_NS + NS_PER_S, &text);
	told = parsed(&text);
	ck_assert_int_eq(number(told, "n"), MANY);
	ck_assert_uint_eq(json_value_count(json_value_get(told, "failures")), ROSTER_FAILURES);
	ck_assert_uint_lt(buf_len(&text), 32 << 10);

	/* After "many", single changes are told again. */
	roster_skipped(roster, 7);
	told = changes(roster, START_NS + NS_PER_S, &text);
	ck_assert_uint_eq(json_value_count(json_value_get(told, "rows")), 1);

	const char *all = "{}";
	struct roster_query query;
	ck_assert_int_eq(roster_query_parse(bytes_str(all), &query, NULL), 0);
	buf_clear(&text);
	roster_put_rows(roster, &query, &text);
	ck_assert_uint_lt(buf_len(&text), 16 << 10);
	ck_assert_uint_eq(json_value_count(json_value_get(parsed(&text), "rows")), ROSTER_ROWS);
	roster_query_done(&query);
	roster_free(roster);
}

static int64_t matches(const struct roster *roster, const char *json, int64_t *ret_first)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct roster_query query;
	ck_assert_int_eq(roster_query_parse(bytes_str(json), &query, NULL), 0);
	roster_put_rows(roster, &query, &text);
	roster_query_done(&query);
	struct json_value rows = json_value_get(parsed(&text), "rows");
	*ret_first = json_value_count(rows) ? cell(json_value_first(rows), 0) : -1;
	return number(parsed(&text), "count");
}

TEST(orders_are_found_by_state_text_and_label)
{
	struct roster *roster = make(1000);
	int64_t first;
	end(roster, 300, REASON_EXIT, 1, true, START_NS);
	end(roster, 301, REASON_EXIT, 1, true, START_NS);
	ck_assert_int_eq(matches(roster, "{}", &first), 1000);
	ck_assert_int_eq(matches(roster, "{\"from\":950}", &first), 1000);
	ck_assert_int_eq(first, 950);
	ck_assert_int_eq(matches(roster, "{\"from\":9007199254740992}", &first), 1000);
	ck_assert_int_eq(first, -1);
	ck_assert_int_eq(matches(roster, "{\"state\":\"failed\"}", &first), 2);
	ck_assert_int_eq(first, 300);
	ck_assert_int_eq(matches(roster, "{\"state\":\"failed\",\"text\":\"o301\"}", &first), 1);
	ck_assert_int_eq(first, 301);
	ck_assert_int_eq(matches(roster, "{\"text\":\"wORK 99\"}", &first), 11);
	ck_assert_int_eq(first, 99);
	ck_assert_int_eq(matches(roster, "{\"text\":\"k6\"}", &first), 142);
	ck_assert_int_eq(matches(roster, "{\"label\":\"kind=k[6]\"}", &first), 0);
	ck_assert_int_eq(matches(roster, "{\"label\":\"kind=k6\"}", &first), 142);
	ck_assert_int_eq(first, 6);
	ck_assert_int_eq(matches(roster, "{\"label\":\"kind!=k6\",\"state\":\"\"}", &first), 858);
	roster_free(roster);
}

TEST(queries_that_are_none_are_refused)
{
	static const char *const wrong[] = { "",
					     "[]",
					     "{\"state\":\"lost\"}",
					     "{\"state\":3}",
					     "{\"text\":[]}",
					     "{\"from\":-1}",
					     "{\"from\":\"1\"}",
					     "{\"label\":\"no term\"}" };
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct roster_query query;
	struct err err = ERR_INIT;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		ck_assert_int_eq(roster_query_parse(bytes_str(wrong[i]), &query, &err), -EINVAL);
		roster_query_done(&query);
	}
	buf_printf(&text, "{\"text\":\"%0*d\"}", ROSTER_QUERY_TEXT + 1, 0);
	ck_assert_int_eq(roster_query_parse(bytes_str(buf_str(&text)), &query, &err), -EINVAL);
	roster_query_done(&query);
}

TEST(the_rate_is_that_of_the_last_minute)
{
	struct roster *roster = make(2000);
	for (size_t i = 0; i < 1000; i++)
		end(roster, i, REASON_OK, 1, true, START_NS + i * NS_PER_MS);
	ck_assert_double_eq_tol(roster_rate(roster, START_NS + 2 * NS_PER_S), 500, 0.01);
	ck_assert_double_eq_tol(roster_rate(roster, START_NS + 50 * NS_PER_S), 20, 0.01);
	ck_assert_double_eq_tol(roster_rate(roster, START_NS + 61 * NS_PER_S), 0, 0.01);
	for (size_t i = 1000; i < 1100; i++)
		end(roster, i, REASON_OK, 1, true, START_NS + 100 * NS_PER_S);
	ck_assert_double_eq_tol(roster_rate(roster, START_NS + 101 * NS_PER_S), 100 / 59.0, 0.01);
	roster_free(roster);
}

TEST(times_of_good_runs_are_counted_by_size)
{
	static const struct {
		uint64_t ns;
		int bin;
	} times[] = { { 0, 8 },	 { 1, 8 },     { 4, 8 },     { 7, 11 },
		      { 8, 12 }, { 1024, 40 }, { 1279, 40 }, { 1280, 41 } };
	struct json_value item;
	struct json_in in;
	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		AUTO(buf_done) struct buf text = BUF_INIT;
		struct roster *roster = make(2);
		end(roster, 0, REASON_OK, times[i].ns, true, START_NS);
		end(roster, 1, REASON_EXIT, 1 << 20, true, START_NS);
		struct json_value bins =
			json_value_get(changes(roster, START_NS + NS_PER_S, &text), "times");
		ck_assert_uint_eq(json_value_count(bins), 2);
		int64_t bin;
		json_value_enter(bins, &in);
		ck_assert(json_value_next(&in, &item) && json_value_int(item, &bin));
		ck_assert_int_eq(bin, times[i].bin);
		ck_assert(json_value_next(&in, &item) && json_value_int(item, &bin) && bin == 1);
		roster_free(roster);
	}
}

TEST(results_of_many_hosts_have_a_host)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct roster *roster = make(1);
	roster_started(roster, 0, "node1", START_NS);
	ck_assert(roster_put_changes(roster, &runs, START_NS, &text));
	ck_assert_ptr_nonnull(strstr(buf_str(&text), "\"node1\""));
	roster_started(roster, 0, "node2", START_NS); /* given again */
	buf_clear(&text);
	ck_assert(roster_put_changes(roster, &runs, START_NS, &text));
	ck_assert_ptr_nonnull(strstr(buf_str(&text), "\"node2\""));
	ck_assert_uint_eq(roster_count(roster, ROSTER_RUNNING), 1);
	roster_free(roster);
}
