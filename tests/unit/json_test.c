#include "unit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "proto/json_value.h"

static struct json_in read_from(const char *text, bool python)
{
	struct json_in in;
	json_in_init(&in, text, strlen(text));
	in.python = python;
	return in;
}

static bool accepts(const char *text, bool python)
{
	struct json_in in = read_from(text, python);
	return json_in_skip(&in) == 0 && json_in_end(&in) == 0;
}

/* Each byte that begins a character, with the ranges of RFC 3629 for the byte that follows. */
TEST(utf8_is_what_the_rfc_says)
{
	static const struct {
		const char *text;
		size_t len;
	} cases[] = {
		{ "a", 1 },
		{ "\x7f", 1 },
		{ "\x80", 0 },
		{ "\xc1\xbf", 0 },
		{ "\xc2\x80", 2 },
		{ "\xdf\xbf", 2 },
		{ "\xc2", 0 },
		{ "\xc2\x41", 0 },
		{ "\xe0\x9f\xbf", 0 },
		{ "\xe0\xa0\x80", 3 },
		{ "\xed\x9f\xbf", 3 },
		{ "\xed\xa0\x80", 0 },
		{ "\xef\xbf\xbf", 3 },
		{ "\xe1\x80", 0 },
		{ "\xf0\x8f\xbf\xbf", 0 },
		{ "\xf0\x90\x80\x80", 4 },
		{ "\xf4\x8f\xbf\xbf", 4 },
		{ "\xf4\x90\x80\x80", 0 },
		{ "\xf5\x80\x80\x80", 0 },
		{ "\xff", 0 },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		ck_assert_uint_eq(utf8_len(cases[i].text, strlen(cases[i].text)), cases[i].len);
}

TEST(every_character_survives_utf8)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	for (uint32_t code = 1; code < 0x110000; code++) {
		buf_clear(&text);
		utf8_append(&text, code);
		size_t len = utf8_len(buf_data(&text), buf_len(&text));
		bool surrogate = code >= 0xd800 && code <= 0xdfff;
		ck_assert_uint_eq(len, surrogate ? 0 : buf_len(&text));
		if (!surrogate)
			ck_assert_uint_eq(utf8_decode(buf_data(&text), len), code);
	}
}

TEST(what_is_not_json_is_refused)
{
	static const char *const texts[] = {
		"",	" ",	    "{",	   "}",		  "[1,]",
		"[,1]", "[1 2]",    "{\"a\"}",	   "{a:1}",	  "01",
		"1.",	".5",	    "+1",	   "-",		  "1e",
		"1e+",	"\"",	    "\"\\x\"",	   "\"\\u12g4\"", "\"\x01\"",
		"tru",	"nul",	    "1 2",	   "[1}",	  "{\"a\":}",
		"{,}",	"'a'",	    "\"\\u0000\"", "\"\\ud800\"", "\"\\udc00\"",
		"NaN",	"Infinity", "-Infinity",
	};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		ck_assert_msg(!accepts(texts[i], false), "accepted: %s", texts[i]);
	ck_assert(accepts(" {\"a\" : [ 1 , -0.5e-3, true, false, null, \"\\u00e9\", {}, [] ] }\r\n",
			  false));
}

TEST(python_allows_more)
{
	static const char *const texts[] = { "NaN",	    "Infinity",	   "-Infinity",	 "[NaN, 1]",
					     "\"\\ud800\"", "\"\\udc80\"", "\"\\u0000\"" };
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		ck_assert_msg(accepts(texts[i], true), "refused: %s", texts[i]);
	ck_assert(!accepts("-NaN", true));
	ck_assert(!accepts("nan", true));
	struct json_in in = read_from("\"a\\ud800b\\udcffc\\u0000\"", true);
	AUTO(buf_done) struct buf text = BUF_INIT;
	ck_assert_int_eq(json_in_string(&in, &text), 0);
	ck_assert_str_eq(buf_str(&text), "a\xef\xbf\xbd"
					 "b\xef\xbf\xbd"
					 "c\xef\xbf\xbd");
}

TEST(a_cut_text_leaves_the_reader_at_its_end)
{
	static const char text[] = "{\"a\\n\\u00e9\\ud83d\\ude00\": [-1.5e-3, true, false, null]}";
	for (size_t len = 0; len < strlen(text); len++) {
		struct json_in in;
		json_in_init(&in, text, len);
		in.python = true;
		ck_assert(json_in_skip(&in) < 0 || json_in_end(&in) < 0);
		ck_assert_ptr_eq(in.pos, in.end);
	}
}

TEST(numbers_are_told_apart)
{
	static const struct {
		const char *text;
		int r;
	} cases[] = {
		{ "0", 0 },
		{ "-9223372036854775808", 0 },
		{ "9223372036854775808", -ERANGE },
		{ "1.0", -EINVAL },
		{ "1e2", -EINVAL },
		{ "NaN", -EINVAL },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct json_in in = read_from(cases[i].text, true);
		struct json_number number;
		int64_t value;
		ck_assert_int_eq(json_in_number(&in, &number), 0);
		ck_assert_int_eq(json_number_int(&number, &value), cases[i].r);
	}
	AUTO(buf_done) struct buf digits = BUF_INIT;
	for (int i = 0; i < 1000; i++)
		buf_append_char(&digits, '7');
	ck_assert(accepts(buf_str(&digits), false));
	struct json_in in = read_from(buf_str(&digits), false);
	int64_t value;
	ck_assert_int_eq(json_in_int(&in, &value), -EINVAL);
	ck_assert_uint_eq(json_in_column(&in), 1);
}

TEST(depth_is_bounded)
{
	char text[2 * JSON_DEPTH_MAX + 3] = "";
	memset(text, '[', JSON_DEPTH_MAX);
	memset(text + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
	ck_assert(accepts(text, false));
	memset(text, '[', JSON_DEPTH_MAX + 1);
	memset(text + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
	ck_assert(!accepts(text, false));
}

static void write_sample(struct json_out *out)
{
	json_out_open(out, NULL, '{');
	json_out_text(out, "t", "\"\\\n\x01/\xc3\xa9\xf0\x9f\x98\x80\xff");
	json_out_open(out, "l", '[');
	json_out_int(out, NULL, INT64_MIN);
	json_out_real(out, NULL, 2);
	json_out_real(out, NULL, 0.1);
	json_out_real(out, NULL, NAN);
	json_out_open(out, NULL, '{');
	json_out_close(out, '}');
	json_out_close(out, ']');
	json_out_bool(out, "b", true);
	json_out_text(out, "n", NULL);
	json_out_text_if(out, "none", "");
	json_out_close(out, '}');
}

TEST(what_a_terminal_would_act_on_is_written_as_a_number)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct json_out out = JSON_OUT(&text);
	json_out_text(&out, NULL,
		      "\x7f \xc2\x85 \xc2\x9b \xe2\x80\xae \xef\xbb\xbf \xef\xbf\xbe \xc2\xa0");
	ck_assert_str_eq(buf_str(&text),
			 "\"\\u007f \\u0085 \\u009b \\u202e \\ufeff \\ufffe \xc2\xa0\"");
}

TEST(the_styles_of_the_writer)
{
	static const struct {
		struct json_out out;
		const char *text;
	} cases[] = {
		{ { .ascii = false },
		  "{\"t\":\"\\\"\\\\\\n\\u0001/\xc3\xa9\xf0\x9f\x98\x80\\udcff\","
		  "\"l\":[-9223372036854775808,2.0,0.10000000000000001,null,{}],"
		  "\"b\":true,\"n\":null}" },
		{ { .ascii = true, .spaced = true },
		  "{\"t\": \"\\\"\\\\\\n\\u0001/\\u00e9\\ud83d\\ude00\\udcff\", "
		  "\"l\": [-9223372036854775808, 2.0, 0.10000000000000001, null, {}], "
		  "\"b\": true, \"n\": null}" },
		{ { .ascii = true, .indent = 2, .flat = 2 },
		  "{\n  \"t\": \"\\\"\\\\\\n\\u0001/\\u00e9\\ud83d\\ude00\\udcff\",\n"
		  "  \"l\": [-9223372036854775808, 2.0, 0.10000000000000001, null, {}],\n"
		  "  \"b\": true,\n  \"n\": null\n}" },
		{ { .ascii = true, .indent = 1 },
		  "{\n \"t\": \"\\\"\\\\\\n\\u0001/\\u00e9\\ud83d\\ude00\\udcff\",\n"
		  " \"l\": [\n  -9223372036854775808,\n  2.0,\n  0.10000000000000001,\n  null,\n"
		  "  {}\n ],\n \"b\": true,\n \"n\": null\n}" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_done) struct buf text = BUF_INIT;
		struct json_out out = cases[i].out;
		out.buf = &text;
		write_sample(&out);
		ck_assert_str_eq(buf_str(&text), cases[i].text);
	}
}

TEST(any_bytes_survive_writing_and_reading)
{
	char bytes[256];
	for (int i = 0; i < 255; i++)
		bytes[i] = (char)(i + 1);
	bytes[255] = '\0';
	for (int ascii = 0; ascii < 2; ascii++) {
		AUTO(buf_done) struct buf text = BUF_INIT;
		struct json_out out = JSON_OUT(&text, .ascii = ascii);
		json_out_text(&out, NULL, bytes);
		ck_assert(utf8_valid(buf_data(&text), buf_len(&text)));
		struct json_value value;
		ck_assert_int_eq(json_value_parse(buf_str(&text), buf_len(&text), &value), 0);
		AUTO_FREE char *back = json_value_text(value);
		ck_assert_str_eq(back, bytes);
	}
}

TEST(values_answer_and_what_is_absent_answers_nothing)
{
	static const char text[] =
		"{\"a\": {\"b\": [7, \"x\", 1.5, true]}, \"a\\u0062\": 1, \"a\\u0062\": 2}";
	struct json_value root, item;
	int64_t number;
	struct json_in in;
	ck_assert_int_eq(json_value_parse(text, strlen(text), &root), 0);
	struct json_value list = json_value_get(json_value_get(root, "a"), "b");
	ck_assert_uint_eq(json_value_count(list), 4);
	ck_assert(json_value_int(json_value_first(list), &number));
	ck_assert_int_eq(number, 7);
	json_value_enter(list, &in);
	ck_assert(json_value_next(&in, &item) && json_value_next(&in, &item));
	AUTO_FREE char *x = json_value_text(item);
	ck_assert_str_eq(x, "x");
	ck_assert(json_value_next(&in, &item) && json_value_real(item) == 1.5);
	ck_assert(json_value_next(&in, &item) && json_value_is_true(item));
	ck_assert(!json_value_next(&in, &item));
	ck_assert(json_value_int(json_value_get(root, "ab"), &number));
	ck_assert_int_eq(number, 2);

	struct json_value none = json_value_get(json_value_get(root, "c"), "d");
	ck_assert_int_eq(none.kind, JSON_NONE);
	ck_assert_uint_eq(json_value_count(none), 0);
	ck_assert_uint_eq(json_value_count(root), 0);
	ck_assert_ptr_null(json_value_text(none));
	ck_assert_ptr_null(json_value_text(list));
	ck_assert(!json_value_int(none, &number) && !json_value_is_true(none));
	ck_assert_int_eq(json_value_parse("[", 1, &root), -EINVAL);
	ck_assert_int_eq(json_value_parse("[] []", 5, &root), -EINVAL);
}

TEST(a_value_is_written_in_another_style)
{
	static const char text[] = "{\"a\":[1,{\"b\":\"\\udcff\\u00e9\"}],\"c\":{}}";
	AUTO(buf_done) struct buf copy = BUF_INIT;
	struct json_out out = JSON_OUT(&copy, .spaced = true);
	struct json_value root;
	ck_assert_int_eq(json_value_parse(text, strlen(text), &root), 0);
	json_out_value(&out, NULL, root);
	ck_assert_str_eq(buf_str(&copy), "{\"a\": [1, {\"b\": \"\\udcff\xc3\xa9\"}], \"c\": {}}");
}
