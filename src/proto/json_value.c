#include "proto/json_value.h"

#include <errno.h>

#include "base/mem.h"
#include "base/str.h"

int json_in_value(struct json_in *in, struct json_value *ret_value)
{
	struct json_value value = { .kind = json_in_peek(in),
				    .python = in->python,
				    .text = in->pos };
	int r = json_in_skip(in);
	if (r < 0)
		return r;
	value.len = (size_t)(in->pos - value.text);
	*ret_value = value;
	return 0;
}

int json_value_parse(const char *text, size_t len, struct json_value *ret_value)
{
	struct json_in in;
	struct json_value value;
	json_in_init(&in, text, len);
	if (json_in_value(&in, &value) < 0 || json_in_end(&in) < 0)
		return -EINVAL;
	*ret_value = value;
	return 0;
}

static void reader_of(struct json_value value, struct json_in *ret_in)
{
	json_in_init(ret_in, value.text, value.len);
	ret_in->python = value.python;
}

/* The first byte of its text tells the reader whether it is in an array or an object. */
void json_value_enter(struct json_value value, struct json_in *ret_in)
{
	reader_of(value, ret_in);
	if (value.kind == JSON_ARRAY || value.kind == JSON_OBJECT)
		json_in_enter(ret_in, *value.text);
}

bool json_value_next(struct json_in *in, struct json_value *ret_item)
{
	return *in->start == '[' && json_in_element(in) > 0 && json_in_value(in, ret_item) == 0;
}

bool json_value_next_member(struct json_in *in, struct buf *ret_key, struct json_value *ret_member)
{
	return *in->start == '{' && json_in_member(in, ret_key) > 0 &&
	       json_in_value(in, ret_member) == 0;
}

struct json_value json_value_get(struct json_value object, const char *key)
{
	AUTO(buf_done) struct buf name = BUF_INIT;
	struct json_value found = JSON_ABSENT, member;
	struct json_in in;
	for (json_value_enter(object, &in); json_value_next_member(&in, &name, &member);)
		if (str_eq(buf_str(&name), key))
			found = member;
	return found;
}

size_t json_value_count(struct json_value array)
{
	struct json_value item;
	struct json_in in;
	size_t count = 0;
	for (json_value_enter(array, &in); json_value_next(&in, &item);)
		count++;
	return count;
}

struct json_value json_value_first(struct json_value array)
{
	struct json_value item;
	struct json_in in;
	json_value_enter(array, &in);
	return json_value_next(&in, &item) ? item : JSON_ABSENT;
}

char *json_value_text(struct json_value value)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct json_in in;
	reader_of(value, &in);
	return json_in_string(&in, &text) < 0 ? NULL : buf_take_str(&text);
}

bool json_value_int(struct json_value value, int64_t *ret_number)
{
	struct json_in in;
	reader_of(value, &in);
	return json_in_int(&in, ret_number) == 0;
}

double json_value_real(struct json_value value)
{
	struct json_in in;
	double number;
	reader_of(value, &in);
	return json_in_double(&in, &number) < 0 ? 0 : number;
}

bool json_value_is_true(struct json_value value)
{
	return value.kind == JSON_BOOL && *value.text == 't';
}

static void put_members(struct json_out *out, struct json_value object)
{
	AUTO(buf_done) struct buf name = BUF_INIT;
	struct json_value member;
	struct json_in in;
	json_value_enter(object, &in);
	while (json_value_next_member(&in, &name, &member))
		json_out_value(out, buf_str(&name), member);
}

static void put_elements(struct json_out *out, struct json_value array)
{
	struct json_value item;
	struct json_in in;
	json_value_enter(array, &in);
	while (json_value_next(&in, &item))
		json_out_value(out, NULL, item);
}

void json_out_value(struct json_out *out, const char *key, struct json_value value)
{
	AUTO_FREE char *text = json_value_text(value);
	if (text) {
		json_out_text(out, key, text);
	} else if (value.kind == JSON_OBJECT) {
		json_out_open(out, key, '{');
		put_members(out, value);
		json_out_close(out, '}');
	} else if (value.kind == JSON_ARRAY) {
		json_out_open(out, key, '[');
		put_elements(out, value);
		json_out_close(out, ']');
	} else {
		json_out_raw(out, key, value.text, value.len);
	}
}
