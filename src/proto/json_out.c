#include "proto/json_out.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

#define EXACT_MAX 1e15 /* whole numbers up to it are written with all their digits */

static void escape_ascii(struct buf *out, uint32_t code)
{
	if (code >= 0x10000) {
		buf_printf(out, "\\u%04x", 0xd7c0 + (code >> 10));
		code = 0xdc00 + (code & 0x3ff);
	}
	buf_printf(out, "\\u%04x", code);
}

/* Writes what stands at `p`, and returns how much of it. */
static size_t quote_special(const struct json_out *out, const char *p, size_t left)
{
	static const char chars[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
	unsigned char c = (unsigned char)*p;
	const char *found = strchr(chars, c);
	if (found) {
		buf_append_char(out->buf, '\\');
		buf_append_char(out->buf, letters[found - chars]);
		return 1;
	}
	size_t len = utf8_len(p, left);
	uint32_t code = len ? utf8_decode(p, len) : 0;
	if (len == 0)
		buf_printf(out->buf, "\\udc%02x", c);
	else if (out->ascii || utf8_is_unseen(code))
		escape_ascii(out->buf, code);
	else
		buf_append(out->buf, p, len);
	return MAX(len, (size_t)1);
}

static void quote(const struct json_out *out, const char *text)
{
	const char *p = text, *end = text + strlen(text);
	buf_append_char(out->buf, '"');
	while (p < end) {
		const char *run = p;
		while ((unsigned char)*p >= 0x20 && (unsigned char)*p < 0x7f && *p != '"' &&
		       *p != '\\')
			p++;
		buf_append(out->buf, run, (size_t)(p - run));
		if (p < end)
			p += quote_special(out, p, (size_t)(end - p));
	}
	buf_append_char(out->buf, '"');
}

static bool is_indented(const struct json_out *out)
{
	return out->indent && (!out->flat || out->depth < out->flat);
}

static void new_line(struct json_out *out)
{
	buf_printf(out->buf, "\n%*s", (int)(out->depth * out->indent), "");
}

/* Before a value: what separates it from the one before, and its key. */
static void begin(struct json_out *out, const char *key)
{
	bool wide = out->spaced || out->indent;
	if (out->filled)
		buf_append_str(out->buf, wide && !is_indented(out) ? ", " : ",");
	if (out->depth > 0 && is_indented(out))
		new_line(out);
	out->filled = true;
	if (!key)
		return;
	quote(out, key);
	buf_append_str(out->buf, wide ? ": " : ":");
}

void json_out_open(struct json_out *out, const char *key, char bracket)
{
	begin(out, key);
	buf_append_char(out->buf, bracket);
	out->depth++;
	out->filled = false;
}

void json_out_close(struct json_out *out, char bracket)
{
	bool own_line = out->filled && is_indented(out);
	out->depth--;
	out->filled = true;
	if (own_line)
		new_line(out);
	buf_append_char(out->buf, bracket);
}

void json_out_raw(struct json_out *out, const char *key, const char *json, size_t len)
{
	begin(out, key);
	buf_append(out->buf, json, len);
}

static void put_word(struct json_out *out, const char *key, const char *word)
{
	json_out_raw(out, key, word, strlen(word));
}

void json_out_null(struct json_out *out, const char *key)
{
	put_word(out, key, "null");
}

void json_out_bool(struct json_out *out, const char *key, bool value)
{
	put_word(out, key, value ? "true" : "false");
}

void json_out_int(struct json_out *out, const char *key, int64_t number)
{
	begin(out, key);
	buf_append_int(out->buf, number);
}

void json_out_real(struct json_out *out, const char *key, double number)
{
	if (!isfinite(number)) {
		json_out_null(out, key);
		return;
	}
	bool whole = number == trunc(number) && fabs(number) <= EXACT_MAX;
	begin(out, key);
	buf_printf(out->buf, whole ? "%.1f" : "%.17g", number);
}

void json_out_text(struct json_out *out, const char *key, const char *text)
{
	if (!text) {
		json_out_null(out, key);
		return;
	}
	begin(out, key);
	quote(out, text);
}

void json_out_text_if(struct json_out *out, const char *key, const char *text)
{
	if (text && *text)
		json_out_text(out, key, text);
}

void json_out_list(struct json_out *out, const char *key, const struct strv *list)
{
	json_out_open(out, key, '[');
	for (size_t i = 0; i < list->count; i++)
		json_out_text(out, NULL, list->items[i]);
	json_out_close(out, ']');
}

void json_out_members(struct json_out *out, const struct strv *map)
{
	for (size_t i = 0; i < map->count; i++) {
		size_t len = strcspn(map->items[i], "=");
		const char *equals = map->items[i] + len;
		AUTO_FREE char *name = mem_strndup(map->items[i], len);
		json_out_text(out, name, *equals ? equals + 1 : NULL);
	}
}

void json_out_map(struct json_out *out, const char *key, const struct strv *map)
{
	json_out_open(out, key, '{');
	json_out_members(out, map);
	json_out_close(out, '}');
}
