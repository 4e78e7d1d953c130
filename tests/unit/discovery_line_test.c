#include "unit.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "proto/discovery_line.h"

static int parse(const char *text, struct discovery_line *line)
{
	struct err err = ERR_INIT;
	int r = discovery_line_parse(text, strlen(text), line, &err);
	ck_assert_int_eq(r, -err.code);
	return r;
}

TEST(a_line_names_the_coordinator_and_its_epoch)
{
	static const struct {
		const char *text, *coordinator;
		uint64_t epoch;
	} cases[] = {
		{ "{\"coordinator\":\"node1:40123\",\"epoch\":17}", "node1:40123", 17 },
		{ " { \"epoch\" : 1 , \"coordinator\" : \"[::1]:80\" } \r", "[::1]:80", 1 },
		{ "{\"coordinator\":\"a:1\",\"epoch\":9223372036854775807}", "a:1", INT64_MAX },
		{ "{\"coordinator\":\"a:1\",\"more\":[{},\"x\",null],\"epoch\":2}", "a:1", 2 },
		{ "{\"coordinator\":\"a:1\",\"epoch\":2,\"epoch\":3}", "a:1", 3 },
	};
	struct discovery_line line;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		ck_assert_int_eq(parse(cases[i].text, &line), 0);
		ck_assert_str_eq(line.coordinator, cases[i].coordinator);
		ck_assert_uint_eq(line.epoch, cases[i].epoch);
	}
}

TEST(a_line_has_the_lease_and_the_recorded_end)
{
	struct discovery_line line;
	ck_assert_int_eq(parse("{\"coordinator\":\"a:1\",\"epoch\":9,\"until_ms\":1500,"
			       "\"ended\":\"failed\",\"ended_epoch\":4}",
			       &line),
			 0);
	ck_assert_uint_eq(line.until_ns, 1500000000);
	ck_assert_uint_eq(line.past.epoch, 4);
	ck_assert_int_eq(line.past.ruling, RULING_FAILED);
	ck_assert_int_eq(parse("{\"coordinator\":\"a:1\",\"epoch\":9}", &line), 0);
	ck_assert_uint_eq(line.until_ns, 0);
	ck_assert_uint_eq(line.past.epoch, 0);
}

TEST(invalid_lines_are_refused)
{
	static const char *const cases[] = {
		"",
		"hello",
		"{}",
		"[]",
		"null",
		"{\"coordinator\":\"a:1\"}",
		"{\"epoch\":1}",
		"{\"coordinator\":\"a:1\",\"epoch\":0}",
		"{\"coordinator\":\"a:1\",\"epoch\":-1}",
		"{\"coordinator\":\"a:1\",\"epoch\":1.5}",
		"{\"coordinator\":\"a:1\",\"epoch\":\"1\"}",
		"{\"coordinator\":\"a:1\",\"epoch\":9223372036854775808}",
		"{\"coordinator\":7,\"epoch\":1}",
		"{\"coordinator\":\"\",\"epoch\":1}",
		"{\"coordinator\":\"a b:1\",\"epoch\":1}",
		"{\"coordinator\":\"a\\n:1\",\"epoch\":1}",
		"{\"coordinator\":\"\xc3\xa9:1\",\"epoch\":1}",
		"{\"coordinator\":\"a\\u0000:1\",\"epoch\":1}",
		"{\"coordinator\":\"a:1\",\"epoch\":1,\"until_ms\":-1}",
		"{\"coordinator\":\"a:1\",\"epoch\":1,\"until_ms\":9223372036854775807}",
		"{\"coordinator\":\"a:1\",\"epoch\":1,\"until_ms\":\"soon\"}",
		"{\"coordinator\":\"a:1\",\"epoch\":1,\"ended_epoch\":3}",
		"{\"coordinator\":\"a:1\",\"epoch\":1,\"ended\":\"done\"}",
		"{\"coordinator\":\"a:1\",\"epoch\":1,\"ended_epoch\":3,\"ended\":\"well\"}",
		"{\"coordinator\":\"a:1\",\"epoch\":1} x",
		"{\"coordinator\":\"a:1\",\"epoch\":1",
	};
	struct discovery_line line = { .epoch = 42 };
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		ck_assert_msg(parse(cases[i], &line) == -EINVAL, "%s", cases[i]);
	ck_assert_uint_eq(line.epoch, 42);
}

TEST(lengths_are_limited)
{
	char host[DISCOVERY_COORDINATOR_MAX + 1];
	memset(host, 'h', sizeof(host));
	host[sizeof(host) - 1] = '\0';
	ck_assert(!discovery_coordinator_ok(host));
	host[sizeof(host) - 2] = '\0';
	ck_assert(discovery_coordinator_ok(host));

	AUTO_FREE char *blanks =
		mem_printf("%*s{\"coordinator\":\"a:1\",\"epoch\":1}", DISCOVERY_LINE_MAX, "");
	struct discovery_line line;
	ck_assert_int_eq(parse(blanks, &line), -EINVAL);
}

TEST(what_is_written_is_read_back)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct discovery_line line;
	discovery_line_format(&text, &(struct discovery_line){ .coordinator = "strange\"\\host:1",
							       .epoch = 99 });
	ck_assert_int_eq(discovery_line_parse(buf_str(&text), buf_len(&text) - 1, &line, NULL), 0);
	ck_assert_str_eq(line.coordinator, "strange\"\\host:1");
	ck_assert_uint_eq(line.epoch, 99);
}
