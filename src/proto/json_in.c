#include "proto/json_in.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"

#define NUMBER_MAX 128 /* characters of a number that is converted */

void json_in_init(struct json_in *in, const char *text, size_t len)
{
	if (len == 0)
		text = ""; /* it may be NULL */
	*in = (struct json_in){ .start = text, .pos = text, .end = text + len };
}

static void skip_blanks(struct json_in *in)
{
	while (in->pos < in->end &&
	       (*in->pos == ' ' || *in->pos == '\t' || *in->pos == '\n' || *in->pos == '\r'))
		in->pos++;
}

/* The next byte that is not a blank, 0 at the end. */
static char next_char(struct json_in *in)
{
	skip_blanks(in);
	return in->pos < in->end ? *in->pos : '\0';
}

static bool take_char(struct json_in *in, char c)
{
	if (in->pos == in->end || *in->pos != c)
		return false;
	in->pos++;
	return true;
}

/* Where the text ends inside the word, the reader moves to the end. */
static bool take_word(struct json_in *in, const char *word)
{
	size_t len = strlen(word), left = (size_t)(in->end - in->pos);
	if (memcmp(in->pos, word, MIN(len, left)) != 0)
		return false;
	in->pos += MIN(len, left);
	return left >= len;
}

enum json_kind json_in_peek(struct json_in *in)
{
	switch (next_char(in)) {
	case 'n':
		return JSON_NULL;
	case 't':
	case 'f':
		return JSON_BOOL;
	case '"':
		return JSON_STRING;
	case '[':
		return JSON_ARRAY;
	case '{':
		return JSON_OBJECT;
	case '-':
	case '0' ... '9':
		return JSON_NUMBER;
	case 'N':
	case 'I':
		return in->python ? JSON_NUMBER : JSON_NONE;
	default:
		return JSON_NONE;
	}
}

int json_in_enter(struct json_in *in, char bracket)
{
	if (next_char(in) != bracket || in->depth == JSON_DEPTH_MAX)
		return -EINVAL;
	in->pos++;
	in->depth++;
	in->first = true;
	return 0;
}

/* Before an item: 1; at the closing bracket: 0, and it is consumed. */
static int next_item(struct json_in *in, char close)
{
	char c = next_char(in);
	if (c == close && in->depth > 0) {
		in->pos++;
		in->depth--;
		in->first = false;
		return 0;
	}
	if (!in->first) {
		if (c != ',')
			return -EINVAL;
		in->pos++;
	}
	in->first = false;
	return 1;
}

int json_in_element(struct json_in *in)
{
	return next_item(in, ']');
}

/* Where the text ends inside the digits, the reader moves to the end. */
static int hex4(struct json_in *in, uint32_t *ret_code)
{
	uint32_t code = 0;
	for (int i = 0; i < 4; i++, in->pos++) {
		if (in->pos == in->end)
			return -EINVAL;
		char c = *in->pos;
		unsigned digit;
		if (c >= '0' && c <= '9')
			digit = (unsigned)(c - '0');
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			digit = (unsigned)((c | 32) - 'a') + 10;
		else
			return -EINVAL;
		code = code << 4 | digit;
	}
	*ret_code = code;
	return 0;
}

static bool is_high_half(uint32_t code)
{
	return code >= 0xd800 && code <= 0xdbff;
}

static bool is_low_half(uint32_t code)
{
	return code >= 0xdc00 && code <= 0xdfff;
}

static bool take_low_half(struct json_in *in, uint32_t *ret_code)
{
	struct json_in ahead = *in;
	uint32_t code;
	if (!take_char(&ahead, '\\') || !take_char(&ahead, 'u') || hex4(&ahead, &code) < 0 ||
	    !is_low_half(code))
		return false;
	*in = ahead;
	*ret_code = code;
	return true;
}

/* After "\u". `out` may be NULL, here and below. */
static int unicode_escape(struct json_in *in, struct buf *out)
{
	uint32_t code, low;
	if (hex4(in, &code) < 0)
		return -EINVAL;
	if (is_high_half(code) && take_low_half(in, &low)) {
		code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
	} else if (!in->python && code >= 0xdc80 && code <= 0xdcff) {
		if (out)
			buf_append_char(out, (char)(code - 0xdc00));
		return 0;
	} else if (is_high_half(code) || is_low_half(code) || code == 0) {
		if (!in->python)
			return -EINVAL;
		code = UTF8_REPLACEMENT;
	}
	if (out)
		utf8_append(out, code);
	return 0;
}

/* After the backslash. */
static int escape(struct json_in *in, struct buf *out)
{
	static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	if (in->pos == in->end)
		return -EINVAL;
	char c = *in->pos;
	if (c == 'u') {
		in->pos++;
		return unicode_escape(in, out);
	}
	const char *found = c ? strchr(names, c) : NULL;
	if (!found)
		return -EINVAL;
	in->pos++;
	if (out)
		buf_append_char(out, values[found - names]);
	return 0;
}

int json_in_string(struct json_in *in, struct buf *ret_text)
{
	if (ret_text)
		buf_clear(ret_text);
	if (next_char(in) != '"')
		return -EINVAL;
	in->pos++;
	for (;;) {
		const char *run = in->pos, *pos = run, *end = in->end;
		while (pos < end && *pos != '"' && *pos != '\\' && (unsigned char)*pos >= 0x20)
			pos++;
		in->pos = pos;
		if (ret_text)
			buf_append(ret_text, run, (size_t)(pos - run));
		if (in->pos == in->end || (unsigned char)*in->pos < 0x20)
			return -EINVAL;
		if (*in->pos++ == '"')
			return 0;
		int r = escape(in, ret_text);
		if (r < 0)
			return r;
	}
}

int json_in_member(struct json_in *in, struct buf *ret_key)
{
	int r = next_item(in, '}');
	if (r <= 0)
		return r;
	r = json_in_string(in, ret_key);
	if (r < 0)
		return r;
	if (next_char(in) != ':')
		return -EINVAL;
	in->pos++;
	return 1;
}

static bool take_digits(struct json_in *in)
{
	const char *pos = in->pos, *end = in->end;
	while (pos < end && *pos >= '0' && *pos <= '9')
		pos++;
	bool any = pos > in->pos;
	in->pos = pos;
	return any;
}

/* The grammar is checked here, as strtod accepts more. */
static bool take_number(struct json_in *in, bool *ret_real)
{
	bool negative = take_char(in, '-');
	*ret_real = true;
	if (in->python && (take_word(in, "Infinity") || (!negative && take_word(in, "NaN"))))
		return true;
	if (!take_char(in, '0') && !take_digits(in))
		return false;
	bool fraction = take_char(in, '.');
	if (fraction && !take_digits(in))
		return false;
	bool exponent = take_char(in, 'e') || take_char(in, 'E');
	if (exponent && !take_char(in, '+'))
		take_char(in, '-');
	*ret_real = fraction || exponent;
	return !exponent || take_digits(in);
}

int json_in_number(struct json_in *in, struct json_number *ret_number)
{
	bool real;
	skip_blanks(in);
	const char *start = in->pos;
	if (!take_number(in, &real))
		return -EINVAL;
	*ret_number = (struct json_number){ start, (size_t)(in->pos - start), real };
	return 0;
}

static int number_text(const struct json_number *number, char ret_text[NUMBER_MAX])
{
	if (number->len >= NUMBER_MAX)
		return -ERANGE;
	memcpy(ret_text, number->text, number->len);
	ret_text[number->len] = '\0';
	return 0;
}

int json_number_int(const struct json_number *number, int64_t *ret_value)
{
	char text[NUMBER_MAX];
	if (number->real)
		return -EINVAL;
	int r = number_text(number, text);
	return r < 0 ? r : str_to_i64(text, ret_value);
}

int json_number_double(const struct json_number *number, double *ret_value)
{
	char text[NUMBER_MAX];
	int r = number_text(number, text);
	return r < 0 ? r : str_to_double(text, ret_value);
}

int json_in_int(struct json_in *in, int64_t *ret_value)
{
	struct json_number number;
	int r = json_in_number(in, &number);
	if (r < 0 || json_number_int(&number, ret_value) == 0)
		return r;
	in->pos = number.text;
	return -EINVAL;
}

int json_in_double(struct json_in *in, double *ret_value)
{
	struct json_number number;
	int r = json_in_number(in, &number);
	if (r < 0 || json_number_double(&number, ret_value) == 0)
		return r;
	in->pos = number.text;
	return -EINVAL;
}

static int word(struct json_in *in, const char *expected)
{
	skip_blanks(in);
	return take_word(in, expected) ? 0 : -EINVAL;
}

int json_in_bool(struct json_in *in, bool *ret_value)
{
	bool value = next_char(in) == 't';
	int r = word(in, value ? "true" : "false");
	if (r == 0)
		*ret_value = value;
	return r;
}

int json_in_null(struct json_in *in)
{
	return word(in, "null");
}

static int skip_items(struct json_in *in, bool object)
{
	int r = json_in_enter(in, object ? '{' : '[');
	while (r >= 0 && (r = object ? json_in_member(in, NULL) : json_in_element(in)) > 0)
		r = json_in_skip(in);
	return r;
}

int json_in_skip(struct json_in *in)
{
	struct json_number number;
	bool flag;
	switch (json_in_peek(in)) {
	case JSON_NULL:
		return json_in_null(in);
	case JSON_BOOL:
		return json_in_bool(in, &flag);
	case JSON_NUMBER:
		return json_in_number(in, &number);
	case JSON_STRING:
		return json_in_string(in, NULL);
	case JSON_ARRAY:
		return skip_items(in, false);
	case JSON_OBJECT:
		return skip_items(in, true);
	case JSON_NONE:
		break;
	}
	return -EINVAL;
}

int json_in_end(struct json_in *in)
{
	skip_blanks(in);
	return in->pos == in->end && in->depth == 0 ? 0 : -EINVAL;
}
