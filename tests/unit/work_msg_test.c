#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "proto/deal/work_msg.h"

TEST(a_message_comes_out_as_it_went_in_however_the_stream_is_cut)
{
	AUTO(buf_done) struct buf data = BUF_INIT;
	struct work_msg in = { .type = WORK_RESULT,
			       .flags = WORK_FINAL | WORK_OK,
			       .order = 1,
			       .lease = 2,
			       .number = 3,
			       .count = 4,
			       .value = 5,
			       .text = "text",
			       .len = 4 };
	struct work_msg out;
	size_t size;
	work_put(&data, &in);
	for (size_t len = 0; len < buf_len(&data); len++)
		ck_assert_int_eq(work_next(buf_data(&data), len, &out, &size, NULL), 0);
	ck_assert_int_eq(work_next(buf_data(&data), buf_len(&data), &out, &size, NULL), 1);
	ck_assert_uint_eq(size, buf_len(&data));
	ck_assert_int_eq(out.type, in.type);
	ck_assert_int_eq(out.flags, in.flags);
	ck_assert_uint_eq(out.order, 1);
	ck_assert_uint_eq(out.lease, 2);
	ck_assert_uint_eq(out.number, 3);
	ck_assert_uint_eq(out.count, 4);
	ck_assert_uint_eq(out.value, 5);
	ck_assert_mem_eq(out.text, "text", out.len);
}

TEST(what_no_peer_would_send_is_rejected_at_its_head)
{
	AUTO(buf_done) struct buf data = BUF_INIT;
	struct work_msg out;
	size_t size;
	work_put(&data, &(struct work_msg){ .type = WORK_BEAT });
	unsigned char *bytes = mem_alloc(buf_len(&data));
	const struct {
		size_t at;
		unsigned char value;
	} bad[] = { { 3, 0xff }, { 4, WORK_TYPE_COUNT }, { 5, 64 } };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		memcpy(bytes, buf_data(&data), buf_len(&data));
		bytes[bad[i].at] = bad[i].value;
		ck_assert_int_eq(work_next(bytes, buf_len(&data), &out, &size, NULL), -EPROTO);
	}
	free(bytes);
}

TEST(a_host_says_what_it_has)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	static struct work_hello in = { .id = { 1, 2 },
					.facts = { 8, 4, 6, 1000, .files = true, .trees = true },
					.name = "node1",
					.features = "gpu,ssd",
					.held = { 7, 9 },
					.held_count = 2 },
				 out;
	work_put_hello(&text, &in);
	ck_assert_int_eq(work_get_hello(buf_data(&text), buf_len(&text), &out, NULL), 0);
	ck_assert_mem_eq(&in, &out, sizeof(in));
	/* One of an earlier version can be sent no directories, and one before that no files. */
	ck_assert_int_eq(work_get_hello(buf_data(&text), buf_len(&text) - 1, &out, NULL), 0);
	ck_assert(out.facts.files && !out.facts.trees);
	ck_assert_int_eq(work_get_hello(buf_data(&text), buf_len(&text) - 2, &out, NULL), 0);
	ck_assert(!out.facts.files);
	ck_assert_str_eq(out.features, "gpu,ssd");
	ck_assert_int_lt(work_get_hello(buf_data(&text), buf_len(&text) - 3, &out, NULL), 0);
	/* One of a still earlier version has no features. */
	size_t without = buf_len(&text) - strlen(in.features) - 2;
	while (work_get_hello(buf_data(&text), without, &out, NULL) < 0)
		without--;
	ck_assert_str_eq(out.features, "");
	ck_assert_uint_eq(out.held_count, 2);
}

static void check_order(const char *line)
{
	AUTO(buf_done) struct buf text = BUF_INIT, again = BUF_INIT;
	AUTO(orders_done) struct orders from = ORDERS_INIT, to = ORDERS_INIT;
	ck_assert_int_eq(orders_add_line(&from, line, strlen(line), 1, NULL), 0);
	order_set_copy(&from.items[0], 2); /* its identity is not that of what it runs */
	work_put_order(&text, &from.items[0]);
	ck_assert_int_eq(work_get_orders(buf_data(&text), buf_len(&text), &to, NULL), 0);
	ck_assert_mem_eq(to.items[0].hash, from.items[0].hash, ORDER_HASH_BYTES);
	work_put_order(&again, &to.items[0]);
	ck_assert_str_eq(buf_str(&again), buf_str(&text));
}

TEST(an_order_runs_the_same_elsewhere)
{
	check_order("echo \"a\" $HOME");
	check_order("{\"id\":\"x\",\"cmd\":[\"a b\",\"\",\"\\u00e4\"],\"cores\":3,\"runs\":2,"
		    "\"retries\":0,\"env\":{\"A\":\"1\",\"B\":null},\"cwd\":\"/tmp\","
		    "\"stdin\":\"in\",\"group\":\"g\",\"timeout\":1.5,\"cpu_timeout\":\"2m\"}");
	check_order("{\"cmd\":\"true\",\"timeout\":\"200%\",\"source\":\". env\"}");
}

TEST(a_host_is_told_its_own_names_of_the_files)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	AUTO(orders_done) struct orders from = ORDERS_INIT, to = ORDERS_INIT;
	const char *line = "{\"cmd\":\"true\",\"transfer\":[\"a\",\"/x/./b/c\"],"
			   "\"return\":\"d\",\"cleanup\":true}";
	ck_assert_int_eq(orders_add_line(&from, line, strlen(line), 1, NULL), 0);
	work_put_order(&text, &from.items[0]);
	ck_assert_int_eq(work_get_orders(buf_data(&text), buf_len(&text), &to, NULL), 0);
	const struct order_extra *extra = to.items[0].extra;
	ck_assert_uint_eq(extra->transfer.count, 2);
	ck_assert_str_eq(extra->transfer.items[0], "a");
	ck_assert_str_eq(extra->transfer.items[1], "b/c");
	ck_assert_str_eq(extra->returns.items[0], "d");
	ck_assert(extra->cleanup);
	/* They are no part of what it is. */
	ck_assert_int_eq(orders_add_line(&from, "true", 4, 2, NULL), 0);
	ck_assert_mem_eq(from.items[0].hash, from.items[1].hash, ORDER_HASH_BYTES);
	const char *bad = "{\"cmd\":\"true\",\"transfer\":\"../a\"}";
	ck_assert_int_lt(orders_add_line(&from, bad, strlen(bad), 3, NULL), 0);
}

TEST(an_order_without_an_identity_is_rejected)
{
	AUTO(orders_done) struct orders to = ORDERS_INIT;
	const char *bad[] = { "", "{\"cmd\":\"true\"}",
			      "0123456789abcdef0123456789abcdeX{\"cmd\":\"a\"}",
			      "0123456789abcdef0123456789abcdef{\"cmd\":1}",
			      "0123456789abcdef0123456789abcdef{\"cmd\":\"a\"} x" };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ck_assert_int_lt(work_get_orders(bad[i], strlen(bad[i]), &to, NULL), 0);
}

TEST(the_variants_of_an_order_travel_together)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	AUTO(orders_done) struct orders from = ORDERS_INIT, to = ORDERS_INIT, none = ORDERS_INIT;
	ck_assert_int_eq(orders_add_line(&from, "./old x", 7, 1, NULL), 0);
	ck_assert_int_eq(orders_add_line(&from, "./new x", 7, 2, NULL), 0);
	work_put_order(&text, &from.items[0]);
	buf_append_char(&text, '\n');
	work_put_order(&text, &from.items[1]);
	ck_assert_int_eq(work_get_orders(buf_data(&text), buf_len(&text), &to, NULL), 0);
	ck_assert_uint_eq(to.count, 2);
	ck_assert_str_eq(to.items[1].shell, "./new x");
	for (int i = 0; i < WORK_VARIANTS_MAX; i++) {
		buf_append_char(&text, '\n');
		work_put_order(&text, &from.items[1]);
	}
	ck_assert_int_eq(work_get_orders(buf_data(&text), buf_len(&text), &none, NULL), -EPROTO);
}
