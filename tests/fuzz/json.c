/* Any text as JSON: what the reader accepts, plain or as Python would, is written again in every
 * style, and means the same. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "proto/json_value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Asks every question of every value. */
static void walk(struct json_value value)
{
	AUTO(buf_done) struct buf key = BUF_INIT;
	AUTO_FREE char *text = json_value_text(value);
	struct json_value item;
	struct json_in in;
	int64_t number;
	size_t count = 0;
	if ((text != NULL) != (value.kind == JSON_STRING))
		abort();
	if (json_value_int(value, &number) && value.kind != JSON_NUMBER)
		abort();
	json_value_real(value);
	for (json_value_enter(value, &in); json_value_next(&in, &item); count++)
		walk(item);
	if (count != json_value_count(value))
		abort();
	for (json_value_enter(value, &in); json_value_next_member(&in, &key, &item);) {
		if (json_value_get(value, buf_str(&key)).kind == JSON_NONE)
			abort();
		walk(item);
	}
}

static bool read_whole(const struct buf *text, bool python, struct json_value *ret_value)
{
	struct json_in in;
	json_in_init(&in, (const char *)buf_data(text), buf_len(text));
	in.python = python;
	return json_in_value(&in, ret_value) == 0 && json_in_end(&in) == 0;
}

static void write_styled(struct json_value value, struct json_out out, struct buf *ret_text)
{
	buf_clear(ret_text);
	out.buf = ret_text;
	json_out_value(&out, NULL, value);
}

static void check(const struct buf *input, bool python)
{
	static const struct json_out styles[] = {
		{ .ascii = true },
		{ .spaced = true },
		{ .ascii = true, .indent = 2, .flat = 3 },
		{ .indent = 1 },
	};
	AUTO(buf_done) struct buf plain = BUF_INIT, styled = BUF_INIT, again = BUF_INIT;
	struct json_value value, back;
	if (!read_whole(input, python, &value))
		return;
	walk(value);
	write_styled(value, styles[0], &plain);
	for (size_t i = 0; i < ARRAY_LEN(styles); i++) {
		write_styled(value, styles[i], &styled);
		if (!utf8_valid(buf_data(&styled), buf_len(&styled)) ||
		    !read_whole(&styled, false, &back)) {
			/* Only Python has these numbers. */
			if (!python || !read_whole(&styled, true, &back))
				abort();
			continue;
		}
		write_styled(back, styles[0], &again);
		if (buf_len(&plain) != buf_len(&again) ||
		    memcmp(buf_data(&plain), buf_data(&again), buf_len(&plain)) != 0)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(buf_done) struct buf input = BUF_INIT;
	if (size > 4096)
		return 0;
	buf_append(&input, data, size);
	check(&input, false);
	check(&input, true);
	return 0;
}
