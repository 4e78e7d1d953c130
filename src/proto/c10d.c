#include "proto/c10d.h"

#include <errno.h>
#include <string.h>

/* One letter a field:
 *   k key, v value     u64 length and bytes
 *   w u32, i i64, b u8
 *   K keys             u64 count, then that many k
 *   P pairs            u64 count, then that many k v
 *   L listed keys      i64 count, then that many k (a reply; as K on the wire)
 *   V values           as many v as keys were asked for, no count
 *   o optional value   a v if the number before it is above 0
 */
struct signature {
	const char *name;
	const char *request;
	const char *reply;
};

static const struct signature signatures[] = {
	[C10D_VALIDATE] = { "VALIDATE", "w", "" },
	[C10D_SET] = { "SET", "kv", "" },
	[C10D_COMPARE_SET] = { "COMPARE_SET", "kvv", "v" },
	[C10D_GET] = { "GET", "k", "v" },
	[C10D_ADD] = { "ADD", "ki", "i" },
	[C10D_CHECK] = { "CHECK", "K", "b" },
	[C10D_WAIT] = { "WAIT", "K", "b" },
	[C10D_GETNUMKEYS] = { "GETNUMKEYS", "", "i" },
	[C10D_DELETE_KEY] = { "DELETE_KEY", "k", "i" },
	[C10D_APPEND] = { "APPEND", "kv", "" },
	[C10D_MULTI_GET] = { "MULTI_GET", "K", "V" },
	[C10D_MULTI_SET] = { "MULTI_SET", "P", "" },
	[C10D_CANCEL_WAIT] = { "CANCEL_WAIT", "", "b" },
	[C10D_PING] = { "PING", "w", "w" },
	[C10D_QUEUE_PUSH] = { "QUEUE_PUSH", "kv", "" },
	[C10D_QUEUE_POP] = { "QUEUE_POP", "k", "io" },
	[C10D_QUEUE_LEN] = { "QUEUE_LEN", "k", "i" },
	[C10D_LIST_KEYS] = { "LIST_KEYS", "", "L" },
	[C10D_BARRIER] = { "BARRIER", "ki", "b" },
};
static_assert(ARRAY_LEN(signatures) == C10D_QUERY_COUNT, "every query needs a signature");

const char *c10d_query_name(enum c10d_query query)
{
	return signatures[query].name;
}

bool c10d_has_reply(enum c10d_query query)
{
	return signatures[query].reply[0] != '\0';
}

/* ---- encoding ---- */

static void put_le(struct buf *buf, uint64_t number, size_t size)
{
	unsigned char *to = buf_reserve(buf, size);
	for (size_t i = 0; i < size; i++)
		to[i] = (unsigned char)(number >> (8 * i));
	buf_commit(buf, size);
}

void c10d_put_i64(struct buf *buf, int64_t number)
{
	put_le(buf, (uint64_t)number, 8);
}

void c10d_put_u32(struct buf *buf, uint32_t number)
{
	put_le(buf, number, 4);
}

void c10d_put_string(struct buf *buf, struct bytes string)
{
	put_le(buf, string.len, 8);
	buf_append(buf, string.data, string.len);
}

static void put_fields(struct buf *buf, const char *fields, const struct c10d_message *message)
{
	const struct bytes *string = message->string;
	for (; *fields; fields++) {
		switch (*fields) {
		case 'k':
		case 'v':
			c10d_put_string(buf, *string++);
			break;
		case 'w':
			put_le(buf, (uint64_t)message->number, 4);
			break;
		case 'i':
			put_le(buf, (uint64_t)message->number, 8);
			break;
		case 'K':
		case 'P':
			put_le(buf, message->count, 8);
			buf_append(buf, message->list.data, message->list.len);
			break;
		}
	}
}

void c10d_put_request(struct buf *buf, const struct c10d_message *request)
{
	put_le(buf, request->query, 1);
	put_fields(buf, signatures[request->query].request, request);
}

/* ---- decoding ---- */

static uint64_t get_le(const unsigned char *from, size_t size)
{
	uint64_t number = 0;
	for (size_t i = 0; i < size; i++)
		number |= (uint64_t)from[i] << (8 * i);
	return number;
}

bool c10d_list_next(struct bytes *list, struct bytes *ret_string)
{
	if (list->len == 0)
		return false;
	*ret_string = bytes_of(list->data + 8, (size_t)get_le(list->data, 8));
	*list = bytes_of(list->data + 8 + ret_string->len, list->len - 8 - ret_string->len);
	return true;
}

/* The state of one decoding step. */
struct input {
	struct c10d_parser *parser;
	const struct c10d_limits *limits;
	const unsigned char *data;
	size_t len;
	enum c10d_query query;
	struct err *err;
};

/* 1 if `size` more bytes are there, else 0 and parser->need says how many are needed. */
static int have(const struct input *in, size_t size)
{
	struct c10d_parser *parser = in->parser;
	if (in->len - parser->pos >= size)
		return 1;
	parser->need = parser->pos + size;
	return 0;
}

static int take_number(const struct input *in, size_t size, uint64_t *ret_number)
{
	int r = have(in, size);
	if (r <= 0)
		return r;
	*ret_number = get_le(in->data + in->parser->pos, size);
	in->parser->pos += size;
	return 1;
}

static int refuse_length(const struct input *in, const char *what, uint64_t length, size_t limit)
{
	return err_set(in->err, EMSGSIZE, "%s with a %s of %llu bytes; the limit is %zu",
		       c10d_query_name(in->query), what, (unsigned long long)length, limit);
}

/* Takes a whole string or nothing: the position stays before its length until all of it is
 * there. */
static int take_string(const struct input *in, bool is_key, size_t *ret_at, size_t *ret_len)
{
	struct c10d_parser *parser = in->parser;
	int r = have(in, 8);
	if (r <= 0)
		return r;
	uint64_t length = get_le(in->data + parser->pos, 8);
	size_t limit = is_key ? in->limits->key_max : in->limits->value_max;
	if (length > limit)
		return refuse_length(in, is_key ? "key" : "value", length, limit);
	if (length + 8 > in->limits->message_max - MIN(parser->pos, in->limits->message_max))
		return refuse_length(in, "message", parser->pos + 8 + length,
				     in->limits->message_max);
	r = have(in, 8 + (size_t)length);
	if (r <= 0)
		return r;
	*ret_at = parser->pos + 8;
	*ret_len = (size_t)length;
	parser->pos += 8 + (size_t)length;
	return 1;
}

static int take_field_string(const struct input *in, bool is_key)
{
	struct c10d_parser *parser = in->parser;
	unsigned i = parser->strings;
	int r = take_string(in, is_key, &parser->string[i].at, &parser->string[i].len);
	if (r > 0)
		parser->strings++;
	return r;
}

static int begin_list(const struct input *in, char kind)
{
	struct c10d_parser *parser = in->parser;
	if (kind != 'V') {
		uint64_t count;
		int r = take_number(in, 8, &count);
		if (r <= 0)
			return r;
		if (count > in->limits->keys_max)
			return err_set(in->err, EMSGSIZE,
				       "%s with a list of %llu; the limit is %zu",
				       c10d_query_name(in->query), (unsigned long long)count,
				       in->limits->keys_max);
		parser->count = (size_t)count;
	}
	parser->left = kind == 'P' ? 2 * (uint64_t)parser->count : parser->count;
	parser->list_at = parser->pos;
	parser->in_list = true;
	return 1;
}

static int take_list(const struct input *in, char kind)
{
	struct c10d_parser *parser = in->parser;
	if (!parser->in_list) {
		int r = begin_list(in, kind);
		if (r <= 0)
			return r;
	}
	for (; parser->left > 0; parser->left--) {
		bool is_key = kind == 'P' ? parser->left % 2 == 0 : kind != 'V';
		size_t at, len;
		int r = take_string(in, is_key, &at, &len);
		if (r <= 0)
			return r;
	}
	return 1;
}

static int take_field(const struct input *in, char field)
{
	struct c10d_parser *parser = in->parser;
	switch (field) {
	case 'k':
		return take_field_string(in, true);
	case 'v':
		return take_field_string(in, false);
	case 'o':
		return (int64_t)parser->number > 0 ? take_field_string(in, false) : 1;
	case 'b':
		return take_number(in, 1, &parser->number);
	case 'w':
		return take_number(in, 4, &parser->number);
	case 'i':
		return take_number(in, 8, &parser->number);
	default:
		return take_list(in, field);
	}
}

static int take_fields(const struct input *in, const char *fields, struct c10d_message *ret)
{
	struct c10d_parser *parser = in->parser;
	for (; fields[parser->field]; parser->field++) {
		int r = take_field(in, fields[parser->field]);
		if (r <= 0)
			return r;
	}

	*ret = (struct c10d_message){ .query = in->query,
				      .number = (int64_t)parser->number,
				      .count = parser->count,
				      .size = parser->pos };
	for (unsigned i = 0; i < parser->strings; i++)
		ret->string[i] = bytes_of(in->data + parser->string[i].at, parser->string[i].len);
	if (parser->in_list)
		ret->list = bytes_of(in->data + parser->list_at, parser->pos - parser->list_at);
	*parser = C10D_PARSER_INIT;
	return 1;
}

int c10d_parse_request(struct c10d_parser *parser, const struct c10d_limits *limits,
		       const void *data, size_t len, struct c10d_message *ret_request,
		       struct err *err)
{
	if (len < 1 || len < parser->need) {
		parser->need = MAX(parser->need, (size_t)1);
		return 0;
	}
	unsigned char query = *(const unsigned char *)data;
	if (query >= C10D_QUERY_COUNT)
		return err_set(err, EPROTO, "unknown query %u", query);
	if (parser->pos == 0)
		parser->pos = 1;
	const struct input in = { .parser = parser,
				  .limits = limits,
				  .data = data,
				  .len = len,
				  .query = query,
				  .err = err };
	return take_fields(&in, signatures[query].request, ret_request);
}

int c10d_parse_reply(struct c10d_parser *parser, const struct c10d_limits *limits,
		     enum c10d_query query, size_t count, const void *data, size_t len,
		     struct c10d_message *ret_reply, struct err *err)
{
	if (len < parser->need)
		return 0;
	parser->count = query == C10D_MULTI_GET ? count : parser->count;
	const struct input in = { .parser = parser,
				  .limits = limits,
				  .data = data,
				  .len = len,
				  .query = query,
				  .err = err };
	return take_fields(&in, signatures[query].reply, ret_reply);
}
