#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "proto/timer_line.h"

#define LINE(expiration, signal) \
	"{\"version\": 1, \"pid\": 18266, \"scope_id\": \"scope1\", " \
	"\"expiration_time\": " expiration ", \"signal\": " signal "}"

static enum timer_fault parse(const char *text, struct timer_line *line)
{
	return timer_line_parse(text, strlen(text), line);
}

/* Each as captured from a real FileTimerClient. */
TEST(lines_of_the_real_client_give_their_values)
{
	static const struct {
		const char *text;
		double expiration_s;
		int64_t signal;
	} cases[] = {
		{ LINE("1700000000.25", "9"), 1700000000.25, 9 },
		{ LINE("1700000000", "9"), 1700000000, 9 },
		{ LINE("1.0", "9"), 1, 9 },
		{ LINE("1e+22", "9"), 1e22, 9 },
		{ LINE("Infinity", "9"), INFINITY, 9 },
		{ LINE("-Infinity", "9"), -INFINITY, 9 },
		{ LINE("-1", "0"), -1, 0 },
		{ LINE("1794771785.814559", "15"), 1794771785.814559, 15 },
		{ LINE("-0.0", "-1"), -0.0, -1 },
		{ LINE("1e300", "9"), 1e300, 9 },
	};
	AUTO(timer_line_done) struct timer_line line = TIMER_LINE_INIT;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		ck_assert_int_eq(parse(cases[i].text, &line), TIMER_FAULT_NONE);
		ck_assert_int_eq(line.pid, 18266);
		ck_assert_str_eq(buf_str(&line.scope), "scope1");
		ck_assert_double_eq(line.expiration_s, cases[i].expiration_s);
		ck_assert_int_eq(line.signal, cases[i].signal);
	}
	ck_assert_int_eq(parse(LINE("NaN", "9"), &line), TIMER_FAULT_NONE);
	ck_assert(isnan(line.expiration_s));
}

#define WITH_SCOPE(scope) \
	"{\"pid\":1,\"scope_id\":\"" scope "\",\"expiration_time\":2,\"signal\":9}"

TEST(scopes_come_back_as_utf8)
{
	static const struct {
		const char *text, *scope;
	} cases[] = {
		{ WITH_SCOPE("a\\\"b\\\\c\\n\\t\\u0001\\u00e9\\u6f22\\ud83d\\ude00/"),
		  "a\"b\\c\n\t\x01\xc3\xa9\xe6\xbc\xa2\xf0\x9f\x98\x80/" },
		{ WITH_SCOPE("\\/\\b\\f\\r"), "/\b\f\r" },
		{ WITH_SCOPE("\xc3\xa9"), "\xc3\xa9" },
		{ WITH_SCOPE("x\\u0000y"), "x\xef\xbf\xbdy" },
		{ WITH_SCOPE("\\ud83d\\u0041"), "\xef\xbf\xbd"
						"A" },
		{ WITH_SCOPE("\\ude00"), "\xef\xbf\xbd" },
		{ WITH_SCOPE(""), "" },
	};
	AUTO(timer_line_done) struct timer_line line = TIMER_LINE_INIT;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		ck_assert_int_eq(parse(cases[i].text, &line), TIMER_FAULT_NONE);
		ck_assert_str_eq(buf_str(&line.scope), cases[i].scope);
	}
}

TEST(order_unknown_members_and_version_do_not_matter)
{
	static const char *const texts[] = {
		"{\"signal\": 9, \"expiration_time\": 2, \"scope_id\": \"s\", \"pid\": 4, "
		"\"version\": 99}",
		"{\"signal\":9,\"expiration_time\":2,\"scope_id\":\"s\",\"pid\":4}",
		" \t{ \"x\" : [1, {\"y\": null}, [], {}, true, -1.5e-3, NaN], "
		"\"signal\":9,\"expiration_time\":2,"
		"\"scope_id\":\"s\",\"pid\":4 } \r",
		"{\"pid\": \"no\", "
		"\"signal\":9,\"expiration_time\":2,\"scope_id\":\"s\",\"pid\":4}",
	};
	AUTO(timer_line_done) struct timer_line line = TIMER_LINE_INIT;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		ck_assert_int_eq(parse(texts[i], &line), TIMER_FAULT_NONE);
		ck_assert_int_eq(line.pid, 4);
	}
}

TEST(each_fault_has_its_name)
{
	static const struct {
		const char *text;
		enum timer_fault fault;
	} cases[] = {
		{ "", TIMER_FAULT_EMPTY },
		{ "  \t", TIMER_FAULT_EMPTY },
		{ "this is not json", TIMER_FAULT_SYNTAX },
		{ "[]", TIMER_FAULT_SYNTAX },
		{ "{}", TIMER_FAULT_MEMBER_MISSING },
		{ LINE("1", "9") "x", TIMER_FAULT_SYNTAX },
		{ LINE("1", "9") LINE("1", "9"), TIMER_FAULT_SYNTAX },
		{ LINE("01", "9"), TIMER_FAULT_SYNTAX },
		{ LINE("1.", "9"), TIMER_FAULT_SYNTAX },
		{ LINE("+1", "9"), TIMER_FAULT_SYNTAX },
		{ LINE("0x10", "9"), TIMER_FAULT_SYNTAX },
		{ LINE("-NaN", "9"), TIMER_FAULT_SYNTAX },
		{ LINE("\"1\"", "9"), TIMER_FAULT_MEMBER_TYPE },
		{ LINE("null", "9"), TIMER_FAULT_MEMBER_TYPE },
		{ LINE("1", "9.0"), TIMER_FAULT_MEMBER_TYPE },
		{ LINE("1", "true"), TIMER_FAULT_MEMBER_TYPE },
		{ LINE("1", "99999999999999999999"), TIMER_FAULT_OUT_OF_RANGE },
		{ "{\"pid\":\"abc\",\"scope_id\":\"s\",\"expiration_time\":2,\"signal\":9}",
		  TIMER_FAULT_MEMBER_TYPE },
		{ "{\"pid\":1.0,\"scope_id\":\"s\",\"expiration_time\":2,\"signal\":9}",
		  TIMER_FAULT_MEMBER_TYPE },
		{ "{\"pid\":1,\"scope_id\":7,\"expiration_time\":2,\"signal\":9}",
		  TIMER_FAULT_MEMBER_TYPE },
		{ WITH_SCOPE("\\x"), TIMER_FAULT_SYNTAX },
		{ WITH_SCOPE("\\u12g4"), TIMER_FAULT_SYNTAX },
		{ WITH_SCOPE("\x01"), TIMER_FAULT_SYNTAX },
		{ WITH_SCOPE("\xff"), TIMER_FAULT_NOT_UTF8 },
		{ WITH_SCOPE("\xc0\x80"), TIMER_FAULT_NOT_UTF8 },
		{ WITH_SCOPE("\xed\xa0\x80"), TIMER_FAULT_NOT_UTF8 },
	};
	AUTO(timer_line_done) struct timer_line line = TIMER_LINE_INIT;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		ck_assert_msg(parse(cases[i].text, &line) == cases[i].fault, "case %zu: %s", i,
			      cases[i].text);
}

TEST(deep_nesting_is_refused_before_it_uses_the_stack)
{
	char text[TIMER_LINE_MAX];
	memset(text, '[', sizeof(text));
	memcpy(text, "{\"x\":", 5);
	AUTO(timer_line_done) struct timer_line line = TIMER_LINE_INIT;
	ck_assert_int_eq(timer_line_parse(text, sizeof(text), &line), TIMER_FAULT_SYNTAX);
}

/* Collects what the splitter gives for `text` fed in pieces of `step` bytes. */
static void split(const char *text, size_t len, size_t step, struct buf *out)
{
	AUTO(timer_splitter_done) struct timer_splitter splitter = TIMER_SPLITTER_INIT;
	for (size_t at = 0; at < len; at += step) {
		timer_splitter_feed(&splitter, text + at, MIN(step, len - at));
		enum timer_split what;
		const char *line = NULL;
		size_t line_len = 0;
		while ((what = timer_splitter_next(&splitter, &line, &line_len)))
			buf_printf(out, "%s%.*s|", what == TIMER_SPLIT_TOO_LONG ? "LONG" : "",
				   what == TIMER_SPLIT_LINE ? (int)line_len : 0, line);
	}
	buf_printf(out, "%s", timer_splitter_partial(&splitter) ? "partial" : "");
}

TEST(the_splitter_gives_the_same_lines_however_the_bytes_arrive)
{
	for (size_t step = 1; step < 20; step++) {
		AUTO(buf_done) struct buf out = BUF_INIT;
		const char *text = "one\n\ntwo three\nfour";
		split(text, strlen(text), step, &out);
		ck_assert_str_eq(buf_str(&out), "one||two three|partial");
	}
}

TEST(a_line_too_long_is_dropped_alone)
{
	size_t len = TIMER_LINE_MAX * 3;
	char *text = malloc(len + 16);
	memset(text, 'x', len);
	memcpy(text, "a\n", 2);
	memcpy(text + len, "\nb\n", 3);
	static const size_t steps[] = { 1, 100, 65536, TIMER_LINE_MAX * 4 };
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		AUTO(buf_done) struct buf out = BUF_INIT;
		split(text, len + 3, steps[i], &out);
		ck_assert_str_eq(buf_str(&out), "a|LONG|b|");
	}
	free(text);
}

TEST(a_dropped_fragment_does_not_spoil_the_next_line)
{
	AUTO(timer_splitter_done) struct timer_splitter splitter = TIMER_SPLITTER_INIT;
	const char *line;
	size_t len;
	timer_splitter_feed(&splitter, "{\"ver", 5);
	ck_assert_int_eq(timer_splitter_next(&splitter, &line, &len), TIMER_SPLIT_NONE);
	ck_assert(timer_splitter_partial(&splitter));
	timer_splitter_drop(&splitter);
	timer_splitter_feed(&splitter, "ok\n", 3);
	ck_assert_int_eq(timer_splitter_next(&splitter, &line, &len), TIMER_SPLIT_LINE);
	ck_assert_uint_eq(len, 2);
}

TEST(a_deadline_is_its_distance_to_the_wall_clock_on_receipt)
{
	uint64_t wall_ns = 1700000000 * NS_PER_S, now_ns = 50 * NS_PER_S;
	ck_assert_uint_eq(timer_line_deadline_ns(1700000002.5, wall_ns, now_ns), 52500 * NS_PER_MS);
	ck_assert_uint_eq(timer_line_deadline_ns(1699999999, wall_ns, now_ns), now_ns);
	ck_assert_uint_eq(timer_line_deadline_ns(INFINITY, wall_ns, now_ns), NS_NEVER);
	ck_assert_uint_eq(timer_line_deadline_ns(1e300, wall_ns, now_ns), NS_NEVER);
	/* The clock was set forward or back an hour before: worker and launcher both read the new
	 * one. */
	for (int hours = -1; hours <= 1; hours++) {
		uint64_t stepped_ns = (uint64_t)(1700000000 + hours * 3600) * NS_PER_S;
		ck_assert_uint_eq(timer_line_deadline_ns(1700000000 + hours * 3600 + 5, stepped_ns,
							 now_ns),
				  55 * NS_PER_S);
	}
}
