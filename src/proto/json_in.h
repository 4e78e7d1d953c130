/* JSON without a tree: a reader that walks over a text, for files of many small lines.
 *
 *     json_in_init(&in, line, len);
 *     for (r = json_in_enter(&in, '{'); r >= 0 && (r = json_in_member(&in, &key)) > 0;)
 *         r = str_eq(buf_str(&key), "id") ? json_in_string(&in, &id) : json_in_skip(&in);
 *     if (r == 0) r = json_in_end(&in);
 *
 * Functions return 0 or more, or -EINVAL; the reader then stands at the offending byte
 * (json_in_column), or at the end of the text if only the rest is missing. Strings are C strings:
 * "\u0000" is refused. \udcXX is read as the byte XX, as Python's "surrogateescape" does, so any
 * file name or command line that json_out.h wrote comes back.
 *
 * With `python` the reader accepts what Python's json module accepts: NaN and the infinities are
 * numbers, and halves of surrogate pairs are characters. C strings cannot have those or a NUL:
 * U+FFFD stands for each.
 */
#ifndef PROTO_JSON_IN_H
#define PROTO_JSON_IN_H

#include "base/buf.h"

#define JSON_DEPTH_MAX 64

enum json_kind {
	JSON_NONE, /* the end, or not JSON */
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
	bool first;  /* nothing read yet of the object or array just entered */
	bool python; /* set it after json_in_init() */
};

/* `text` is borrowed while the reader is used. */
void json_in_init(struct json_in *in, const char *text, size_t len);

enum json_kind json_in_peek(struct json_in *in);

/* Enters an object ('{') or array ('['). */
int json_in_enter(struct json_in *in, char bracket);

/* In an object: 1 and the key (into NULL: nowhere), its value comes next; 0 at the end, which is
 * consumed. */
int json_in_member(struct json_in *in, struct buf *ret_key);

/* In an array: 1 when an element comes next; 0 at the end, which is consumed. */
int json_in_element(struct json_in *in);

int json_in_string(struct json_in *in, struct buf *ret_text); /* replaces what is there; or NULL */
int json_in_int(struct json_in *in, int64_t *ret_value);      /* no fraction, no exponent */
int json_in_double(struct json_in *in, double *ret_value);
int json_in_bool(struct json_in *in, bool *ret_value);
int json_in_null(struct json_in *in);
int json_in_skip(struct json_in *in); /* any value */
int json_in_end(struct json_in *in);  /* nothing but blanks is left */

/* A number as it stands in the text, for those who tell its forms apart. */
struct json_number {
	const char *text;
	size_t len;
	bool real; /* with a fraction or an exponent, NaN or infinite */
};

int json_in_number(struct json_in *in, struct json_number *ret_number);
int json_number_int(const struct json_number *number,
		    int64_t *ret_value); /* -EINVAL: real; -ERANGE */
int json_number_double(const struct json_number *number, double *ret_value); /* -ERANGE: too long */

/* 1-based place of the reader in its text, for messages. */
static inline size_t json_in_column(const struct json_in *in)
{
	return (size_t)(in->pos - in->start) + 1;
}

#endif
