/* A JSON text to ask questions about, for answers and files whose members come in any order.
 *
 *     if (json_value_parse(text, len, &root) < 0) ...
 *     struct json_value kvs = json_value_get(root, "kvs");
 *
 * A value is a piece of the text, which json_in.h has checked whole and which is borrowed; nothing
 * is allocated and nothing is freed. Each question reads the text again, so this is for short texts
 * and few questions. A question about a value of another kind gives the absent value, false or 0.
 */
#ifndef PROTO_JSON_VALUE_H
#define PROTO_JSON_VALUE_H

#include "proto/json_in.h"
#include "proto/json_out.h"

struct json_value {
	enum json_kind kind; /* JSON_NONE: absent */
	bool python;	     /* as in struct json_in */
	const char *text;
	size_t len;
};

#define JSON_ABSENT ((struct json_value){ .kind = JSON_NONE })

/* The whole text as one value; -EINVAL: it is not JSON. */
int json_value_parse(const char *text, size_t len, struct json_value *ret_value);

/* The next value of a reader. */
int json_in_value(struct json_in *in, struct json_value *ret_value);

/* The member of that name; the last, if there are several. */
struct json_value json_value_get(struct json_value object, const char *key);

/* for (json_value_enter(array, &in); json_value_next(&in, &item);)
 * for (json_value_enter(object, &in); json_value_next_member(&in, &key, &member);) */
void json_value_enter(struct json_value value, struct json_in *ret_in);
bool json_value_next(struct json_in *in, struct json_value *ret_item);
bool json_value_next_member(struct json_in *in, struct buf *ret_key, struct json_value *ret_member);

size_t json_value_count(struct json_value array);
struct json_value json_value_first(struct json_value array);

char *json_value_text(struct json_value value);			   /* a copy to free, or NULL */
bool json_value_int(struct json_value value, int64_t *ret_number); /* false: not an integer */
double json_value_real(struct json_value value);
bool json_value_is_true(struct json_value value);

/* Writes the value in the style of `out`. */
void json_out_value(struct json_out *out, const char *key, struct json_value value);

#endif
