#include "proto/store_session.h"

#include <errno.h>

#include "base/mem.h"

/* The input of a query's handler. */
struct context {
	struct store_session *session;
	struct store_table *table;
	const struct store_session_limits *limits;
	struct buf *out;
	struct err *err;
};

typedef int handler_fn(const struct context *c, const struct c10d_message *request);

static void reply_byte(const struct context *c, unsigned char byte)
{
	buf_append(c->out, &byte, 1);
}

static int check_reply_size(const struct context *c, const struct c10d_message *request,
			    size_t size)
{
	if (size <= c->limits->reply_max)
		return 0;
	return err_set(c->err, EMSGSIZE, "%s wants a reply of %zu bytes; the limit is %zu",
		       c10d_query_name(request->query), size, c->limits->reply_max);
}

static int do_validate(const struct context *c, const struct c10d_message *request)
{
	if (c->session->validated)
		return err_set(c->err, EPROTO, "a second VALIDATE");
	if (request->number != C10D_MAGIC)
		return err_set(c->err, EPROTO, "VALIDATE with the wrong number 0x%08llx",
			       (unsigned long long)request->number);
	c->session->validated = true;
	return 0;
}

static int do_ping(const struct context *c, const struct c10d_message *request)
{
	c10d_put_u32(c->out, (uint32_t)request->number);
	return 0;
}

static int do_set(const struct context *c, const struct c10d_message *request)
{
	return store_table_set(c->table, request->string[0], request->string[1], c->err);
}

static int do_append(const struct context *c, const struct c10d_message *request)
{
	return store_table_append(c->table, request->string[0], request->string[1], c->err);
}

static int do_compare_set(const struct context *c, const struct c10d_message *request)
{
	struct bytes value;
	int r = store_table_compare_set(c->table, request->string[0], request->string[1],
					request->string[2], &value, c->err);
	if (r < 0)
		return r;
	r = check_reply_size(c, request, 8 + value.len);
	if (r < 0)
		return r;
	c10d_put_string(c->out, value);
	return 0;
}

/* An absent key gives the empty value: clients that care WAIT or CHECK first. */
static struct bytes value_or_empty(const struct context *c, struct bytes key)
{
	struct bytes value = { .len = 0 };
	store_table_get(c->table, key, &value);
	return value;
}

static int do_get(const struct context *c, const struct c10d_message *request)
{
	struct bytes value = value_or_empty(c, request->string[0]);
	int r = check_reply_size(c, request, 8 + value.len);
	if (r < 0)
		return r;
	c10d_put_string(c->out, value);
	return 0;
}

static int do_multi_get(const struct context *c, const struct c10d_message *request)
{
	size_t size = 0;
	struct bytes key;
	for (struct bytes keys = request->list; c10d_list_next(&keys, &key);) {
		size += 8 + value_or_empty(c, key).len;
		int r = check_reply_size(c, request, size);
		if (r < 0)
			return r;
	}
	for (struct bytes keys = request->list; c10d_list_next(&keys, &key);)
		c10d_put_string(c->out, value_or_empty(c, key));
	return 0;
}

static int do_multi_set(const struct context *c, const struct c10d_message *request)
{
	struct bytes key, value;
	for (struct bytes pairs = request->list; c10d_list_next(&pairs, &key);) {
		c10d_list_next(&pairs, &value);
		int r = store_table_set(c->table, key, value, c->err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int do_add(const struct context *c, const struct c10d_message *request)
{
	int64_t sum;
	int r = store_table_add(c->table, request->string[0], request->number, &sum, c->err);
	if (r < 0)
		return r;
	c10d_put_i64(c->out, sum);
	return 0;
}

static int do_check(const struct context *c, const struct c10d_message *request)
{
	struct bytes key;
	for (struct bytes keys = request->list; c10d_list_next(&keys, &key);)
		if (!store_table_has(c->table, key)) {
			reply_byte(c, C10D_NOT_READY);
			return 0;
		}
	reply_byte(c, C10D_READY);
	return 0;
}

static int refuse_second_wait(const struct context *c, const struct c10d_message *request)
{
	return err_set(c->err, EPROTO, "%s while another wait is unanswered",
		       c10d_query_name(request->query));
}

static int do_wait(const struct context *c, const struct c10d_message *request)
{
	if (store_waiter_busy(&c->session->waiter))
		return refuse_second_wait(c, request);
	AUTO_FREE struct bytes *keys = NEW_ARRAY(struct bytes, MAX(request->count, (size_t)1));
	struct bytes list = request->list;
	for (size_t i = 0; i < request->count; i++)
		c10d_list_next(&list, &keys[i]);
	int r = store_table_wait(c->table, &c->session->waiter, keys, request->count, c->err);
	if (r > 0)
		reply_byte(c, C10D_STOP_WAITING);
	return MIN(r, 0);
}

static int do_barrier(const struct context *c, const struct c10d_message *request)
{
	if (store_waiter_busy(&c->session->waiter))
		return refuse_second_wait(c, request);
	int r = store_table_barrier(c->table, &c->session->waiter, request->string[0],
				    request->number, c->err);
	if (r > 0)
		reply_byte(c, C10D_STOP_WAITING);
	return MIN(r, 0);
}

static int do_cancel_wait(const struct context *c, const struct c10d_message *request UNUSED)
{
	store_table_cancel(c->table, &c->session->waiter);
	reply_byte(c, C10D_CANCELED);
	return 0;
}

static int do_num_keys(const struct context *c, const struct c10d_message *request UNUSED)
{
	c10d_put_i64(c->out, (int64_t)c->table->key_count);
	return 0;
}

static int do_delete(const struct context *c, const struct c10d_message *request)
{
	c10d_put_i64(c->out, store_table_delete(c->table, request->string[0]));
	return 0;
}

static void put_key(void *arg, struct bytes key)
{
	c10d_put_string(arg, key);
}

static int do_list_keys(const struct context *c, const struct c10d_message *request)
{
	size_t count = c->table->key_count;
	int r = check_reply_size(c, request, 8 + 8 * count + store_table_key_bytes(c->table));
	if (r < 0)
		return r;
	c10d_put_i64(c->out, (int64_t)count);
	store_table_each_key(c->table, put_key, c->out);
	return 0;
}

static int do_queue_push(const struct context *c, const struct c10d_message *request)
{
	return store_table_push(c->table, request->string[0], request->string[1], c->err);
}

static int do_queue_pop(const struct context *c, const struct c10d_message *request)
{
	struct bytes value;
	size_t length = store_table_front(c->table, request->string[0], &value);
	c10d_put_i64(c->out, (int64_t)length);
	if (length > 0) {
		c10d_put_string(c->out, value);
		store_table_pop(c->table, request->string[0]);
	}
	return 0;
}

static int do_queue_len(const struct context *c, const struct c10d_message *request)
{
	struct bytes value;
	c10d_put_i64(c->out, (int64_t)store_table_front(c->table, request->string[0], &value));
	return 0;
}

static handler_fn *const handlers[] = {
	[C10D_VALIDATE] = do_validate,
	[C10D_SET] = do_set,
	[C10D_COMPARE_SET] = do_compare_set,
	[C10D_GET] = do_get,
	[C10D_ADD] = do_add,
	[C10D_CHECK] = do_check,
	[C10D_WAIT] = do_wait,
	[C10D_GETNUMKEYS] = do_num_keys,
	[C10D_DELETE_KEY] = do_delete,
	[C10D_APPEND] = do_append,
	[C10D_MULTI_GET] = do_multi_get,
	[C10D_MULTI_SET] = do_multi_set,
	[C10D_CANCEL_WAIT] = do_cancel_wait,
	[C10D_PING] = do_ping,
	[C10D_QUEUE_PUSH] = do_queue_push,
	[C10D_QUEUE_POP] = do_queue_pop,
	[C10D_QUEUE_LEN] = do_queue_len,
	[C10D_LIST_KEYS] = do_list_keys,
	[C10D_BARRIER] = do_barrier,
};
static_assert(ARRAY_LEN(handlers) == C10D_QUERY_COUNT, "every query needs a handler");

void store_session_init(struct store_session *session, uint64_t *executed)
{
	*session = (struct store_session){ .parser = C10D_PARSER_INIT, .executed = executed };
	store_waiter_init(&session->waiter);
}

void store_session_done(struct store_session *session, struct store_table *table)
{
	store_table_cancel(table, &session->waiter);
}

static int execute(const struct context *c, const struct c10d_message *request)
{
	if (!c->session->validated && request->query != C10D_VALIDATE)
		return err_set(c->err, EPROTO, "%s before VALIDATE",
			       c10d_query_name(request->query));
	int r = handlers[request->query](c, request);
	if (r < 0)
		return r;
	/* Its own request may have ended its wait: that answer comes before any later one. */
	struct list *released = &c->session->waiter.released;
	if (!list_empty(released)) {
		list_unlink(released);
		reply_byte(c, STORE_RELEASED_BYTE);
	}
	return 0;
}

ssize_t store_session_feed(struct store_session *session, struct store_table *table,
			   const struct store_session_limits *limits, const void *data, size_t len,
			   struct buf *out, struct err *err)
{
	const struct context c = { session, table, limits, out, err };
	/* Before the handshake, collect nothing but the handshake. */
	if (!session->validated && len > 0 && *(const unsigned char *)data != C10D_VALIDATE)
		return err_set(err, EPROTO, "not a store client: it began with 0x%02x",
			       *(const unsigned char *)data);
	size_t consumed = 0;
	while (consumed < len && buf_len(out) < limits->replies_high) {
		struct c10d_message request;
		int r = c10d_parse_request(&session->parser, &limits->wire,
					   (const unsigned char *)data + consumed, len - consumed,
					   &request, err);
		if (r == 0)
			break;
		if (r > 0)
			r = execute(&c, &request);
		if (r < 0)
			return r;
		if (session->executed)
			session->executed[request.query]++;
		consumed += request.size;
	}
	return (ssize_t)consumed;
}
