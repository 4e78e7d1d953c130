#include "proto/pickle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "proto/json_out.h"

enum item_kind { ITEM_MARK, ITEM_SCALAR, ITEM_TEXT, ITEM_LIST, ITEM_DICT };

/* A value on the stack: its JSON, which a list or dict lacks the closing bracket of. */
struct item {
	enum item_kind kind;
	unsigned depth; /* of lists and dicts inside each other */
	struct buf json;
	size_t held; /* bytes that it is charged with */
};

/* What an item takes without the text that its JSON may grow to. */
#define ITEM_COST (sizeof(struct item) + 64)

struct machine {
	const unsigned char *pos, *end;
	struct item *stack;
	size_t count, cap;
	struct item *memo; /* what cannot be referred to has the kind ITEM_MARK */
	size_t memo_count, memo_cap;
	size_t held;   /* bytes of all items */
	size_t copied; /* bytes, ever: a short operation can copy much */
	size_t copied_max;
	struct err *err;
};

static int broken(const struct machine *m, const char *why)
{
	return err_set(m->err, EPROTO, "not a pickle of plain data: %s", why);
}

static void machine_done(struct machine *m)
{
	for (size_t i = 0; i < m->count; i++)
		buf_done(&m->stack[i].json);
	for (size_t i = 0; i < m->memo_count; i++)
		buf_done(&m->memo[i].json);
	free(m->stack);
	free(m->memo);
}

static void charge(struct machine *m, struct item *item, size_t bytes)
{
	item->held += bytes;
	m->held += bytes;
}

static void release(struct machine *m, struct item *item)
{
	m->held -= item->held;
	item->held = 0;
	buf_done(&item->json);
}

static void add_json(struct machine *m, struct item *item, const struct buf *json)
{
	buf_append(&item->json, buf_data(json), buf_len(json));
	charge(m, item, buf_len(json));
}

static void copy_json(struct machine *m, struct item *item, const struct buf *json)
{
	add_json(m, item, json);
	m->copied += buf_len(json);
}

static struct item *push(struct machine *m, enum item_kind kind, const char *json)
{
	ARRAY_RESERVE(m->stack, m->count, m->cap);
	struct item *item = &m->stack[m->count++];
	*item = (struct item){ .kind = kind, .json = BUF_INIT };
	buf_append_str(&item->json, json);
	charge(m, item, ITEM_COST);
	return item;
}

static struct json_out push_scalar(struct machine *m)
{
	return JSON_OUT(&push(m, ITEM_SCALAR, "")->json);
}

/* `size` little-endian bytes. */
static int take_number(struct machine *m, size_t size, uint64_t *ret_value)
{
	*ret_value = 0;
	if ((size_t)(m->end - m->pos) < size)
		return broken(m, "it is truncated");
	for (size_t i = 0; i < size; i++)
		*ret_value |= (uint64_t)m->pos[i] << (8 * i);
	m->pos += size;
	return 0;
}

static int64_t sign_extend(uint64_t value, size_t size)
{
	if (size > 0 && size < 8 && value >> (8 * size - 1))
		value |= ~(uint64_t)0 << (8 * size);
	return (int64_t)value;
}

static int take_int(struct machine *m, size_t size, bool is_signed)
{
	uint64_t value;
	int r = take_number(m, size, &value);
	if (r < 0)
		return r;
	struct json_out out = push_scalar(m);
	json_out_int(&out, NULL, is_signed ? sign_extend(value, size) : (int64_t)value);
	return 0;
}

/* LONG1: a length byte and that many bytes of two's complement. */
static int take_long(struct machine *m)
{
	uint64_t size;
	int r = take_number(m, 1, &size);
	if (r < 0)
		return r;
	return size > 8 ? broken(m, "a number is too long") : take_int(m, size, true);
}

static int take_double(struct machine *m)
{
	uint64_t bits = 0;
	double value;
	if (m->end - m->pos < 8)
		return broken(m, "it is truncated");
	for (size_t i = 0; i < 8; i++)
		bits = bits << 8 | m->pos[i];
	m->pos += 8;
	memcpy(&value, &bits, sizeof(value));
	struct json_out out = push_scalar(m);
	json_out_real(&out, NULL, value);
	return 0;
}

static int take_text(struct machine *m, size_t size)
{
	uint64_t len;
	int r = take_number(m, size, &len);
	if (r < 0)
		return r;
	if ((size_t)(m->end - m->pos) < len || memchr(m->pos, '\0', len))
		return broken(m, "a text is truncated or has a NUL in it");
	AUTO_FREE char *text = mem_strndup((const char *)m->pos, len);
	m->pos += len;
	struct item *item = push(m, ITEM_TEXT, "");
	struct json_out out = JSON_OUT(&item->json);
	json_out_text(&out, NULL, text);
	charge(m, item, buf_len(&item->json));
	return 0;
}

static int put_memo(struct machine *m, uint64_t index)
{
	if (m->count == 0 || index >= PICKLE_MEMO_MAX)
		return broken(m, "it remembers too much, or nothing");
	while (m->memo_count <= index) {
		ARRAY_RESERVE(m->memo, m->memo_count, m->memo_cap);
		m->memo[m->memo_count++] = (struct item){ .kind = ITEM_MARK, .json = BUF_INIT };
	}
	const struct item *top = &m->stack[m->count - 1];
	struct item *slot = &m->memo[index];
	release(m, slot);
	slot->kind = ITEM_MARK;
	bool open = top->kind == ITEM_LIST || top->kind == ITEM_DICT;
	/* One without members gets them later, when this copy does not learn of them. */
	if (top->kind == ITEM_MARK || (open && buf_len(&top->json) <= 1))
		return 0;
	slot->kind = top->kind;
	slot->depth = top->depth;
	charge(m, slot, ITEM_COST);
	copy_json(m, slot, &top->json);
	return 0;
}

static int get_memo(struct machine *m, uint64_t index)
{
	if (index >= m->memo_count || m->memo[index].kind == ITEM_MARK)
		return broken(m, "it refers to a list or dict that had no members");
	const struct item *slot = &m->memo[index];
	struct item *item = push(m, slot->kind, "");
	item->depth = slot->depth;
	copy_json(m, item, &slot->json);
	return 0;
}

static int find_mark(const struct machine *m, size_t *ret_mark)
{
	for (size_t i = m->count; i-- > 0;)
		if (m->stack[i].kind == ITEM_MARK) {
			*ret_mark = i;
			return 0;
		}
	return broken(m, "a mark is missing");
}

static const char *closing(enum item_kind kind)
{
	return kind == ITEM_LIST ? "]" : kind == ITEM_DICT ? "}" : "";
}

/* Moves the values from `first` on into `into`, which they are members of. */
static int fill(struct machine *m, struct item *into, size_t first)
{
	bool dict = into->kind == ITEM_DICT;
	if (dict && (m->count - first) % 2)
		return broken(m, "a key has no value");
	for (size_t i = first; i < m->count; i++) {
		struct item *item = &m->stack[i];
		bool key = dict && (i - first) % 2 == 0;
		if (item->kind == ITEM_MARK || (key && item->kind != ITEM_TEXT))
			return broken(m, "a key is not a text");
		into->depth = MAX(into->depth, item->depth + 1);
		if (into->depth > PICKLE_DEPTH_MAX)
			return broken(m, "it is too deep");
		if (buf_len(&into->json) > 1)
			buf_append_char(&into->json, dict && !key ? ':' : ',');
		add_json(m, into, &item->json);
		buf_append_str(&into->json, closing(item->kind));
		release(m, item);
	}
	m->count = first;
	return 0;
}

/* The values behind the mark, or the last `last` ones, go into the list or dict before them. */
static int add_members(struct machine *m, size_t last, enum item_kind kind)
{
	size_t mark = m->count >= last ? m->count - last : 0;
	if (last == 0 && find_mark(m, &mark) < 0)
		return -EPROTO;
	if (mark == 0 || m->stack[mark - 1].kind != kind)
		return broken(m, "members of something that is not there");
	int r = fill(m, &m->stack[mark - 1], last == 0 ? mark + 1 : mark);
	if (r == 0 && last == 0)
		release(m, &m->stack[--m->count]); /* the mark */
	return r;
}

/* The last `last` values, or those behind the mark, become one list. */
static int make_tuple(struct machine *m, size_t last, bool marked)
{
	size_t first = m->count >= last ? m->count - last : 0;
	if (marked ? find_mark(m, &first) < 0 : m->count < last)
		return broken(m, "a tuple lacks members");
	struct item tuple = { .kind = ITEM_LIST, .json = BUF_INIT };
	charge(m, &tuple, ITEM_COST);
	buf_append_char(&tuple.json, '[');
	int r = fill(m, &tuple, first + marked);
	if (r < 0) {
		release(m, &tuple);
		return r;
	}
	if (marked)
		release(m, &m->stack[--m->count]);
	ARRAY_RESERVE(m->stack, m->count, m->cap);
	m->stack[m->count++] = tuple;
	return 0;
}

static int with_index(struct machine *m, size_t size, int (*act)(struct machine *, uint64_t))
{
	uint64_t index;
	int r = take_number(m, size, &index);
	return r < 0 ? r : act(m, index);
}

static int skip(struct machine *m, size_t size)
{
	uint64_t ignored;
	return take_number(m, size, &ignored);
}

static int step_value(struct machine *m, unsigned char op)
{
	switch (op) {
	case 'N':
		push(m, ITEM_SCALAR, "null");
		return 0;
	case 0x88:
		push(m, ITEM_SCALAR, "true");
		return 0;
	case 0x89:
		push(m, ITEM_SCALAR, "false");
		return 0;
	case 'K':
		return take_int(m, 1, false);
	case 'M':
		return take_int(m, 2, false);
	case 'J':
		return take_int(m, 4, true);
	case 0x8a:
		return take_long(m);
	case 'G':
		return take_double(m);
	case 'X':
		return take_text(m, 4);
	case 0x8c:
		return take_text(m, 1);
	default:
		return err_set(m->err, EPROTO,
			       "not a pickle of plain data: operation 0x%02x is not read", op);
	}
}

static int step(struct machine *m, unsigned char op)
{
	switch (op) {
	case 0x80: /* PROTO */
		return skip(m, 1);
	case 0x95: /* FRAME */
		return skip(m, 8);
	case '(':
		push(m, ITEM_MARK, "");
		return 0;
	case '}':
		push(m, ITEM_DICT, "{");
		return 0;
	case ']':
		push(m, ITEM_LIST, "[");
		return 0;
	case ')':
		return make_tuple(m, 0, false);
	case 't':
		return make_tuple(m, 0, true);
	case 0x85: /* TUPLE1 to TUPLE3 */
	case 0x86:
	case 0x87:
		return make_tuple(m, op - 0x84u, false);
	case 'a':
		return add_members(m, 1, ITEM_LIST);
	case 'e':
		return add_members(m, 0, ITEM_LIST);
	case 's':
		return add_members(m, 2, ITEM_DICT);
	case 'u':
		return add_members(m, 0, ITEM_DICT);
	case 'q':
		return with_index(m, 1, put_memo);
	case 'r':
		return with_index(m, 4, put_memo);
	case 0x94: /* MEMOIZE */
		return put_memo(m, m->memo_count);
	case 'h':
		return with_index(m, 1, get_memo);
	case 'j':
		return with_index(m, 4, get_memo);
	default:
		return step_value(m, op);
	}
}

static int run(struct machine *m, struct buf *ret_json)
{
	while (m->pos < m->end) {
		unsigned char op = *m->pos++;
		if (op != '.') {
			int r = step(m, op);
			if (r < 0)
				return r;
			if (m->held > PICKLE_HELD_MAX || m->copied > m->copied_max)
				return broken(m, "it is too long");
			continue;
		}
		if (m->count != 1 || m->stack[0].kind == ITEM_MARK)
			return broken(m, "it ends with less or more than one value");
		buf_clear(ret_json);
		buf_append(ret_json, buf_data(&m->stack[0].json), buf_len(&m->stack[0].json));
		buf_append_str(ret_json, closing(m->stack[0].kind));
		return 0;
	}
	return broken(m, "it is truncated");
}

int pickle_to_json(const void *data, size_t len, struct buf *ret_json, struct err *err)
{
	struct machine m = { .pos = data,
			     .end = (const unsigned char *)data + len,
			     .copied_max = PICKLE_JSON_MAX + len,
			     .err = err };
	int r = run(&m, ret_json);
	machine_done(&m);
	return r;
}
