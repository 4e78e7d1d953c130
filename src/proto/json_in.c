#include "proto/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

#define NUMBER_MAX 64 /* characters of a number */

void json_in_init(struct json_in *in, const char *text, size_t len)
{
	*in = (struct json_in){ .start = text, .pos = text, .end = text + len };
}

static void skip_blanks(struct json_in *in)
{
	while (in->pos < in->end &&
	       (*in->pos == ' ' || *in->pos == '\t' || *in->pos == '\n' || *in->pos == '\r'))
		in->pos++;
}

/* The next byte that is no blank, 0 at the end. */
static char next_char(struct json_in *in)
{
	skip_blanks(in);
	return in->pos < in->end ? *in->pos : '\0';
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

static int hex4(struct json_in *in, unsigned *ret_code)
{
	unsigned code = 0;
	if (in->end - in->pos < 4)
		return -EINVAL;
	for (int i = 0; i < 4; i++) {
		char c = in->pos[i];
		unsigned digit;
		if (c >= '0' && c <= '9')
			digit = (unsigned)(c - '0');
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			digit = (unsigned)((c | 32) - 'a') + 10;
		else
			return -EINVAL;
		code = code << 4 | digit;
	}
	in->pos += 4;
	*ret_code = code;
	return 0;
}

static void put_utf8(struct buf *out, unsigned code)
{
	if (code < 0x80) {
		buf_append_char(out, (char)code);
	} else if (code < 0x800) {
		buf_append_char(out, (char)(0xc0 | code >> 6));
		buf_append_char(out, (char)(0x80 | (code & 0x3f)));
	} else if (code < 0x10000) {
		buf_append_char(out, (char)(0xe0 | code >> 12));
		buf_append_char(out, (char)(0x80 | (code >> 6 & 0x3f)));
		buf_append_char(out, (char)(0x80 | (code & 0x3f)));
	} else {
		buf_append_char(out, (char)(0xf0 | code >> 18));
		buf_append_char(out, (char)(0x80 | (code >> 12 & 0x3f)));
		buf_append_char(out, (char)(0x80 | (code >> 6 & 0x3f)));
		buf_append_char(out, (char)(0x80 | (code & 0x3f)));
	}
}

/* After "\u". */
static int unicode_escape(struct json_in *in, struct buf *out)
{
	unsigned code, low;
	if (hex4(in, &code) < 0 || code == 0)
		return -EINVAL;
	if (code >= 0xdc80 && code <= 0xdcff) {
		buf_append_char(out, (char)(code - 0xdc00));
		return 0;
	}
	if (code >= 0xdc00 && code <= 0xdfff)
		return -EINVAL;
	if (code >= 0xd800 && code <= 0xdbff) {
		if (in->end - in->pos < 2 || in->pos[0] != '\\' || in->pos[1] != 'u')
			return -EINVAL;
		in->pos += 2;
		if (hex4(in, &low) < 0 || low < 0xdc00 || low > 0xdfff)
			return -EINVAL;
		code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
	}
	put_utf8(out, code);
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
	buf_append_char(out, values[found - names]);
	return 0;
}

int json_in_string(struct json_in *in, struct buf *ret_text)
{
	buf_clear(ret_text);
	if (next_char(in) != '"')
		return -EINVAL;
	in->pos++;
	for (;;) {
		const char *run = in->pos;
		while (in->pos < in->end && *in->pos != '"' && *in->pos != '\\' &&
		       (unsigned char)*in->pos >= 0x20)
			in->pos++;
		buf_append(ret_text, run, (size_t)(in->pos - run));
		if (in->pos == in->end || (unsigned char)*in->pos < 0x20)
			return -EINVAL;
		if (*in->pos++ == '"')
			return 0;
		int r = escape(in, ret_text);
		if (r < 0)
			return r;
	}
}

/* The characters of a number as a C string; the grammar is checked, as strtod accepts more. */
static int number_text(struct json_in *in, char text[NUMBER_MAX])
{
	size_t len = 0;
	skip_blanks(in);
	while (in->pos + len < in->end && len < NUMBER_MAX - 1 &&
	       memchr("0123456789+-.eE", in->pos[len], 15))
		len++;
	memcpy(text, in->pos, len);
	text[len] = '\0';

	const char *p = text + (*text == '-');
	size_t whole = strspn(p, "0123456789");
	if (whole == 0 || (whole > 1 && *p == '0'))
		return -EINVAL;
	p += whole;
	if (*p == '.') {
		size_t digits = strspn(p + 1, "0123456789");
		if (digits == 0)
			return -EINVAL;
		p += 1 + digits;
	}
	if (*p == 'e' || *p == 'E') {
		p += 1 + (p[1] == '+' || p[1] == '-');
		size_t digits = strspn(p, "0123456789");
		if (digits == 0)
			return -EINVAL;
		p += digits;
	}
	return *p ? -EINVAL : (int)len;
}

int json_in_int(struct json_in *in, int64_t *ret_value)
{
	char text[NUMBER_MAX];
	int len = number_text(in, text);
	if (len < 0 || str_to_i64(text, ret_value) < 0)
		return -EINVAL;
	in->pos += len;
	return 0;
}

int json_in_double(struct json_in *in, double *ret_value)
{
	char text[NUMBER_MAX];
	int len = number_text(in, text);
	if (len < 0 || str_to_double(text, ret_value) < 0)
		return -EINVAL;
	in->pos += len;
	return 0;
}

static int word(struct json_in *in, const char *expected)
{
	size_t len = strlen(expected);
	skip_blanks(in);
	if ((size_t)(in->end - in->pos) < len || memcmp(in->pos, expected, len) != 0)
		return -EINVAL;
	in->pos += len;
	return 0;
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

static int skip_string(struct json_in *in)
{
	AUTO(buf_done) struct buf ignored = BUF_INIT;
	return json_in_string(in, &ignored);
}

static int skip_items(struct json_in *in, bool object)
{
	AUTO(buf_done) struct buf key = BUF_INIT;
	int r = json_in_enter(in, object ? '{' : '[');
	while (r >= 0 && (r = object ? json_in_member(in, &key) : json_in_element(in)) > 0)
		r = json_in_skip(in);
	return r;
}

int json_in_skip(struct json_in *in)
{
	double number;
	bool flag;
	switch (json_in_peek(in)) {
	case JSON_NULL:
		return json_in_null(in);
	case JSON_BOOL:
		return json_in_bool(in, &flag);
	case JSON_NUMBER:
		return json_in_double(in, &number);
	case JSON_STRING:
		return skip_string(in);
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

/* Length of the UTF-8 sequence at `p`, 0 if it is none (overlong and surrogates included). */
static size_t utf8_len(const unsigned char *p)
{
	size_t len = p[0] >= 0xf0 && p[0] < 0xf5   ? 4
		     : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
		     : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
						   : 0;
	for (size_t i = 1; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] >= 0xa0) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] >= 0x90))
		return 0;
	return len;
}

static size_t quote_special(struct buf *out, const unsigned char *p)
{
	static const char names[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
	const char *found = strchr(names, *p);
	if (found) {
		buf_append_char(out, '\\');
		buf_append_char(out, letters[found - names]);
		return 1;
	}
	if (*p < 0x20) {
		buf_printf(out, "\\u%04x", *p);
		return 1;
	}
	size_t len = utf8_len(p);
	if (len > 0) {
		buf_append(out, p, len);
		return len;
	}
	buf_printf(out, "\\udc%02x", *p);
	return 1;
}

void json_quote(struct buf *out, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	buf_append_char(out, '"');
	while (*p) {
		const unsigned char *run = p;
		while (*p >= 0x20 && *p < 0x80 && *p != '"' && *p != '\\')
			p++;
		buf_append(out, run, (size_t)(p - run));
		if (*p)
			p += quote_special(out, p);
	}
	buf_append_char(out, '"');
}
