/* JSON without a tree: a reader that walks over a text, for files of many small lines, and the one
 * thing a writer needs, quoting.
 *
 *     json_in_init(&in, line, len);
 *     for (r = json_in_enter(&in, '{'); r >= 0 && (r = json_in_member(&in, &key)) > 0;)
 *         r = str_eq(buf_str(&key), "id") ? json_in_string(&in, &id) : json_in_skip(&in);
 *     if (r == 0) r = json_in_end(&in);
 *
 * Functions return 0 or more, or -EINVAL; the reader then stands at the offending byte
 * (json_column). Strings are C strings: "\u0000" is refused. A byte that is not UTF-8 is written as
 * \udcXX, as Python's "surrogateescape" does, and read back as that byte, so any file name or
 * command line survives a round trip.
 */
#ifndef PROTO_JSON_H
#define PROTO_JSON_H

#include "base/buf.h"

#define JSON_DEPTH_MAX 64

enum json_kind {
	JSON_NONE, /* the end, or no JSON */
	JSON_NULL,
	JSON_BOOL,
	JSON_NUMBER,
	JSON_STRING,
	JSON_ARRAY,
	JSON_OBJECT,
};

struct json_in {
	const char *start, *pos, *end;
	unsigned depth;
	bool first; /* nothing read yet of the object or array just entered */
};

/* `text` is borrowed while the reader is used. */
void json_in_init(struct json_in *in, const char *text, size_t len);

enum json_kind json_in_peek(struct json_in *in);

/* Enters an object ('{') or array ('['). */
int json_in_enter(struct json_in *in, char bracket);

/* In an object: 1 and the key, its value comes next; 0 at the end, which is consumed. */
int json_in_member(struct json_in *in, struct buf *ret_key);

/* In an array: 1 when an element comes next; 0 at the end, which is consumed. */
int json_in_element(struct json_in *in);

int json_in_string(struct json_in *in, struct buf *ret_text); /* replaces what the buffer held */
int json_in_int(struct json_in *in, int64_t *ret_value);      /* no fraction, no exponent */
int json_in_double(struct json_in *in, double *ret_value);
int json_in_bool(struct json_in *in, bool *ret_value);
int json_in_null(struct json_in *in);
int json_in_skip(struct json_in *in); /* any value */
int json_in_end(struct json_in *in);  /* nothing but blanks is left */

/* 1-based place of the reader in its text, for messages. */
static inline size_t json_in_column(const struct json_in *in)
{
	return (size_t)(in->pos - in->start) + 1;
}

/* Appends `text` in quotes. */
void json_quote(struct buf *out, const char *text);

#endif
