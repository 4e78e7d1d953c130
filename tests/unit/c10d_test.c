#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "c10d_reply.h"

static const struct c10d_limits limits = C10D_LIMITS_DEFAULT;

/* "06 01 00" -> bytes */
static void from_hex(const char *text, struct buf *ret)
{
	while (*text) {
		char *end;
		unsigned char byte = (unsigned char)strtoul(text, &end, 16);
		buf_append(ret, &byte, 1);
		text = *end ? end + 1 : end;
	}
}

static struct bytes bytes_in(const struct buf *buf)
{
	return bytes_of(buf_data(buf), buf_len(buf));
}

/* Requests and replies as PyTorch 2.13 puts them on the wire. */
static const struct {
	enum c10d_query query;
	const char *request;
	const char *reply; /* NULL: none */
	const char *strings[3];
	int64_t number;
	int count;
	const char *list[4];
} captures[] = {
	{ C10D_VALIDATE, "00 ce f7 85 3c", NULL, .number = 0x3C85F7CE },
	{ C10D_PING, "0d b4 21 00 00", "b4 21 00 00", .number = 0x21b4 },
	{ C10D_SET, "01 02 00 00 00 00 00 00 00 2f 6b 02 00 00 00 00 00 00 00 76 31", NULL,
	  .strings = { "/k", "v1" } },
	{ C10D_SET, "01 02 00 00 00 00 00 00 00 2f 65 00 00 00 00 00 00 00 00", NULL,
	  .strings = { "/e", "" } },
	{ C10D_GET, "03 02 00 00 00 00 00 00 00 2f 6b", "02 00 00 00 00 00 00 00 76 31",
	  .strings = { "/k" } },
	{ C10D_ADD, "04 05 00 00 00 00 00 00 00 69 6e 69 74 2f 01 00 00 00 00 00 00 00",
	  "01 00 00 00 00 00 00 00", .strings = { "init/" }, .number = 1 },
	{ C10D_ADD, "04 02 00 00 00 00 00 00 00 2f 6e f9 ff ff ff ff ff ff ff",
	  "fe ff ff ff ff ff ff ff", .strings = { "/n" }, .number = -7 },
	{ C10D_CHECK,
	  "05 02 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 2f 6b 05 00 00 00 00 00 00 00 2f 6e "
	  "6f 70 65",
	  "01", .count = 2, .list = { "/k", "/nope" } },
	{ C10D_CHECK, "05 00 00 00 00 00 00 00 00", "00", .count = 0 },
	{ C10D_WAIT, "06 01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 2f 6b", "00", .count = 1,
	  .list = { "/k" } },
	{ C10D_CANCEL_WAIT, "0c", "01", .count = 0 },
	{ C10D_COMPARE_SET,
	  "02 03 00 00 00 00 00 00 00 2f 63 73 00 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00 6e "
	  "65 77",
	  "03 00 00 00 00 00 00 00 6e 65 77", .strings = { "/cs", "", "new" } },
	{ C10D_GETNUMKEYS, "07", "05 00 00 00 00 00 00 00", .count = 0 },
	{ C10D_DELETE_KEY, "08 02 00 00 00 00 00 00 00 2f 6b", "01 00 00 00 00 00 00 00",
	  .strings = { "/k" } },
	{ C10D_APPEND, "09 03 00 00 00 00 00 00 00 2f 61 70 03 00 00 00 00 00 00 00 66 6f 6f", NULL,
	  .strings = { "/ap", "foo" } },
	{ C10D_MULTI_SET,
	  "0b 02 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 2f 61 01 00 00 00 00 00 00 00 31 02 "
	  "00 00 00 00 00 00 00 2f 62 02 00 00 00 00 00 00 00 32 32",
	  NULL, .count = 2, .list = { "/a", "1", "/b", "22" } },
	{ C10D_MULTI_GET,
	  "0a 02 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 2f 61 02 00 00 00 00 00 00 00 2f 62",
	  "01 00 00 00 00 00 00 00 31 02 00 00 00 00 00 00 00 32 32", .count = 2,
	  .list = { "/a", "/b" } },
	{ C10D_QUEUE_PUSH, "0e 02 00 00 00 00 00 00 00 2f 71 02 00 00 00 00 00 00 00 78 31", NULL,
	  .strings = { "/q", "x1" } },
	{ C10D_QUEUE_POP, "0f 02 00 00 00 00 00 00 00 2f 71",
	  "02 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 78 31", .strings = { "/q" } },
	{ C10D_QUEUE_POP, "0f 02 00 00 00 00 00 00 00 2f 71", "00 00 00 00 00 00 00 00",
	  .strings = { "/q" } },
	{ C10D_QUEUE_LEN, "10 02 00 00 00 00 00 00 00 2f 71", "02 00 00 00 00 00 00 00",
	  .strings = { "/q" } },
	{ C10D_LIST_KEYS, "11",
	  "02 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 2f 61 05 00 00 00 00 00 00 00 69 6e 69 "
	  "74 2f",
	  .count = 0 },
	{ C10D_BARRIER, "12 04 00 00 00 00 00 00 00 2f 62 61 72 01 00 00 00 00 00 00 00", "00",
	  .strings = { "/bar" }, .number = 1 },
};

TEST(requests_are_read_as_pytorch_sends_them_and_written_the_same)
{
	bool seen[C10D_QUERY_COUNT] = { false };
	for (size_t i = 0; i < ARRAY_LEN(captures); i++) {
		AUTO(buf_done) struct buf wire = BUF_INIT;
		from_hex(captures[i].request, &wire);
		struct c10d_parser parser = C10D_PARSER_INIT;
		struct c10d_message m;
		ck_assert_int_eq(c10d_parse_request(&parser, &limits, buf_data(&wire),
						    buf_len(&wire), &m, NULL),
				 1);
		ck_assert_uint_eq(m.query, captures[i].query);
		ck_assert_uint_eq(m.size, buf_len(&wire));
		ck_assert_int_eq(m.number, captures[i].number);
		ck_assert_uint_eq(m.count, (size_t)captures[i].count);
		for (int s = 0; s < 3 && captures[i].strings[s]; s++)
			ck_assert(bytes_eq(m.string[s], bytes_str(captures[i].strings[s])));
		struct bytes list = m.list, item;
		for (int s = 0; c10d_list_next(&list, &item); s++)
			ck_assert(bytes_eq(item, bytes_str(captures[i].list[s])));

		AUTO(buf_done) struct buf again = BUF_INIT;
		c10d_put_request(&again, &m);
		ck_assert(bytes_eq(bytes_in(&again), bytes_in(&wire)));
		seen[m.query] = true;
	}
	for (size_t i = 0; i < C10D_QUERY_COUNT; i++)
		ck_assert_msg(seen[i], "%s has no capture", c10d_query_name(i));
}

TEST(replies_are_read_as_pytorch_sends_them_and_written_the_same)
{
	for (size_t i = 0; i < ARRAY_LEN(captures); i++) {
		ck_assert_int_eq(c10d_has_reply(captures[i].query), captures[i].reply != NULL);
		if (!captures[i].reply)
			continue;
		AUTO(buf_done) struct buf wire = BUF_INIT;
		from_hex(captures[i].reply, &wire);
		struct c10d_parser parser = C10D_PARSER_INIT;
		struct c10d_message m;
		ck_assert_int_eq(c10d_parse_reply(&parser, &limits, captures[i].query,
						  (size_t)captures[i].count, buf_data(&wire),
						  buf_len(&wire), &m, NULL),
				 1);
		ck_assert_uint_eq(m.size, buf_len(&wire));
		AUTO(buf_done) struct buf again = BUF_INIT;
		c10d_put_reply(&again, &m);
		ck_assert(bytes_eq(bytes_in(&again), bytes_in(&wire)));
	}
}

/* Offers ever longer beginnings; `exact` gives the parser a copy that ends where the offer ends, so
 * that a sanitizer sees any look beyond it. */
static void check_prefixes(enum c10d_query query, bool is_reply, int count, const struct buf *wire)
{
	struct c10d_parser parser = C10D_PARSER_INIT;
	for (size_t len = 0; len <= buf_len(wire); len++) {
		struct c10d_message m;
		unsigned char *exact = NEW_ARRAY(unsigned char, MAX(len, (size_t)1));
		memcpy(exact, buf_data(wire), len);
		int r = is_reply ? c10d_parse_reply(&parser, &limits, query, (size_t)count, exact,
						    len, &m, NULL)
				 : c10d_parse_request(&parser, &limits, exact, len, &m, NULL);
		ck_assert_int_eq(r, len == buf_len(wire));
		if (r == 0)
			ck_assert(parser.need > len && parser.need <= buf_len(wire));
		free(exact);
	}
	ck_assert_uint_eq(parser.pos, 0); /* ready for the next one */
}

TEST(a_message_is_the_same_whatever_pieces_it_comes_in)
{
	for (size_t i = 0; i < ARRAY_LEN(captures); i++) {
		AUTO(buf_done) struct buf request = BUF_INIT;
		from_hex(captures[i].request, &request);
		check_prefixes(captures[i].query, false, 0, &request);
		if (!captures[i].reply)
			continue;
		AUTO(buf_done) struct buf reply = BUF_INIT;
		from_hex(captures[i].reply, &reply);
		check_prefixes(captures[i].query, true, captures[i].count, &reply);
	}
}

static int parse_one(const struct buf *wire, struct err *err)
{
	struct c10d_parser parser = C10D_PARSER_INIT;
	struct c10d_message m;
	return c10d_parse_request(&parser, &limits, buf_data(wire), buf_len(wire), &m, err);
}

TEST(lengths_and_counts_beyond_the_limit_are_refused_before_the_bytes_come)
{
	static const struct {
		const char *hex;
		int result;
	} cases[] = {
		{ "13", -EPROTO }, /* query 19 */
		{ "ff", -EPROTO },
		{ "03 00 20 00 00 00 00 00 00", 0 },	     /* key of 8192 */
		{ "03 01 20 00 00 00 00 00 00", -EMSGSIZE }, /* one more */
		{ "03 00 00 00 00 00 00 00 80", -EMSGSIZE }, /* 2^63 */
		{ "03 ff ff ff ff ff ff ff ff", -EMSGSIZE },
		{ "01 00 00 00 00 00 00 00 00 00 00 80 00 00 00 00 00", 0 }, /* value of 8 MiB */
		{ "01 00 00 00 00 00 00 00 00 01 00 80 00 00 00 00 00", -EMSGSIZE },
		{ "06 00 00 02 00 00 00 00 00", 0 }, /* 131072 keys */
		{ "06 01 00 02 00 00 00 00 00", -EMSGSIZE },
		{ "0b ff ff ff ff ff ff ff ff", -EMSGSIZE },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_done) struct buf wire = BUF_INIT;
		from_hex(cases[i].hex, &wire);
		ck_assert_msg(parse_one(&wire, NULL) == cases[i].result, "%s", cases[i].hex);
	}
}

TEST(a_message_is_limited_as_a_whole)
{
	const struct c10d_limits small = {
		.key_max = 10, .value_max = 10, .keys_max = 100, .message_max = 40
	};
	AUTO(buf_done) struct buf wire = BUF_INIT;
	buf_append_char(&wire, C10D_MULTI_SET);
	c10d_put_i64(&wire, 50);
	for (int i = 0; i < 50; i++)
		c10d_put_string(&wire, bytes_str("12345"));
	struct c10d_parser parser = C10D_PARSER_INIT;
	struct c10d_message m;
	struct err err;
	ck_assert_int_eq(c10d_parse_request(&parser, &small, buf_data(&wire), buf_len(&wire), &m,
					    &err),
			 -EMSGSIZE);
	ck_assert_str_eq(err.msg, "MULTI_SET with a message of 48 bytes; the limit is 40");
}
