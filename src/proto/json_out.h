/* Writes JSON into a buffer.
 *
 *     struct json_out out = JSON_OUT(&buf);
 *     json_out_open(&out, NULL, '{');
 *     json_out_text(&out, "id", id);
 *     json_out_open(&out, "times", '[');
 *     json_out_int(&out, NULL, 3);
 *     json_out_close(&out, ']');
 *     json_out_close(&out, '}');
 *
 * Members of an object have a key, elements of an array and the outermost value have NULL. A byte
 * of a text that is not UTF-8 is written as \udcXX, as Python's "surrogateescape" does, and
 * json_in.h reads it back.
 */
#ifndef PROTO_JSON_OUT_H
#define PROTO_JSON_OUT_H

#include "base/strv.h"
#include "base/buf.h"

struct json_out {
	struct buf *buf;
	bool ascii;	 /* \uXXXX for every character beyond ASCII */
	bool spaced;	 /* ", " and ": ", as Python's json writes; else "," and ":" */
	unsigned indent; /* blanks per level; 0: all on one line */
	unsigned flat;	 /* with indent: from this depth on all on one line; 0: nowhere */
	unsigned depth;
	bool filled; /* the innermost object or array has something in it */
};

#define JSON_OUT(buffer, ...) ((struct json_out){ .buf = (buffer), __VA_ARGS__ })

void json_out_open(struct json_out *out, const char *key, char bracket); /* '{' or '[' */
void json_out_close(struct json_out *out, char bracket);		 /* '}' or ']' */

void json_out_text(struct json_out *out, const char *key, const char *text); /* NULL: null */
void json_out_int(struct json_out *out, const char *key, int64_t number);
void json_out_bool(struct json_out *out, const char *key, bool value);
void json_out_null(struct json_out *out, const char *key);

/* All digits that count, and always a fraction or an exponent, so that a reader in a typed language
 * tells them from integers. NaN and the infinities become null. */
void json_out_real(struct json_out *out, const char *key, double number);

/* What is JSON already. */
void json_out_raw(struct json_out *out, const char *key, const char *json, size_t len);

/* Nothing if the text is NULL or empty. */
void json_out_text_if(struct json_out *out, const char *key, const char *text);

/* An object of the texts "NAME=value", "NAME" alone is null; and its members into an open one. */
void json_out_members(struct json_out *out, const struct strv *map);
void json_out_map(struct json_out *out, const char *key, const struct strv *map);

/* An array of texts. */
void json_out_list(struct json_out *out, const char *key, const struct strv *list);

#endif
