#include "unit.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/store_session.h"

#define B(text) bytes_str(text)

struct fixture {
	struct store_table table;
	struct store_session_limits limits;
	struct store_session client[3];
	struct buf out[3];
};

static void fixture_init(struct fixture *f)
{
	store_table_init(&f->table, STORE_TABLE_BYTES_MAX, (uint64_t[2]){ 0 });
	f->limits = STORE_SESSION_LIMITS_DEFAULT;
	for (size_t i = 0; i < ARRAY_LEN(f->client); i++) {
		store_session_init(&f->client[i], NULL);
		f->client[i].validated = true;
		f->out[i] = BUF_INIT;
	}
}

static void fixture_done(struct fixture *f)
{
	for (size_t i = 0; i < ARRAY_LEN(f->client); i++) {
		store_session_done(&f->client[i], &f->table);
		buf_done(&f->out[i]);
	}
	store_table_done(&f->table);
}

static ssize_t feed(struct fixture *f, int who, struct bytes wire, struct err *err)
{
	ssize_t n = store_session_feed(&f->client[who], &f->table, &f->limits, wire.data, wire.len,
				       &f->out[who], err);
	for (struct store_waiter *w; (w = store_table_next_released(&f->table));)
		buf_append_char(&f->out[container_of(w, struct store_session, waiter) - f->client],
				STORE_RELEASED_BYTE);
	return n;
}

static void ask(struct fixture *f, int who, struct c10d_message request)
{
	AUTO(buf_done) struct buf wire = BUF_INIT;
	c10d_put_request(&wire, &request);
	ck_assert_int_eq(feed(f, who, bytes_of(buf_data(&wire), buf_len(&wire)), NULL),
			 (ssize_t)buf_len(&wire));
}

static void ask_wait(struct fixture *f, int who, const char *key)
{
	AUTO(buf_done) struct buf list = BUF_INIT;
	c10d_put_string(&list, B(key));
	ask(f, who,
	    (struct c10d_message){ .query = C10D_WAIT,
				   .count = 1,
				   .list = bytes_of(buf_data(&list), buf_len(&list)) });
}

#define WITH_FIXTURE(f) \
	AUTO(fixture_done) struct fixture f; \
	fixture_init(&f)

TEST(a_connection_begins_with_validate_in_any_number_of_pieces)
{
	WITH_FIXTURE(f);
	static const unsigned char wire[] = { 0x00, 0xce, 0xf7, 0x85, 0x3c, 0x0d, 1, 2, 3, 4 };
	f.client[0].validated = false;
	for (size_t len = 0; len < 5; len++)
		ck_assert_int_eq(feed(&f, 0, bytes_of(wire, len), NULL), 0);
	ck_assert_int_eq(feed(&f, 0, bytes_of(wire, sizeof(wire)), NULL), sizeof(wire));
	ck_assert_uint_eq(buf_len(&f.out[0]), 4);
	struct err err;
	ck_assert_int_eq(feed(&f, 0, bytes_of(wire, 5), &err), -EPROTO);
	ck_assert_str_eq(err.msg, "a second VALIDATE");

	f.client[1].validated = false;
	ck_assert_int_eq(feed(&f, 1, bytes_of(wire + 5, 1), &err), -EPROTO); /* PING first */
	ck_assert_str_eq(err.msg, "not a store client: it began with 0x0d");
	f.client[2].validated = false;
	ck_assert_int_eq(feed(&f, 2, B("GET / HTTP/1.0"), &err), -EPROTO);
	static const unsigned char wrong[] = { 0x00, 0xce, 0xf7, 0x85, 0x3d };
	ck_assert_int_eq(feed(&f, 2, bytes_of(wrong, sizeof(wrong)), &err), -EPROTO);
	ck_assert_str_eq(err.msg, "VALIDATE with the wrong number 0x3d85f7ce");
}

TEST(other_requests_are_answered_while_a_wait_is_pending)
{
	WITH_FIXTURE(f);
	ask_wait(&f, 0, "k");
	ask(&f, 0, (struct c10d_message){ .query = C10D_PING, .number = 7 });
	ck_assert_uint_eq(buf_len(&f.out[0]), 4);
	ask(&f, 1, (struct c10d_message){ .query = C10D_SET, .string = { B("k"), B("v") } });
	ck_assert_uint_eq(buf_len(&f.out[0]), 5);
	ck_assert_uint_eq(buf_data(&f.out[0])[4], C10D_STOP_WAITING);
}

TEST(a_client_that_ends_its_own_wait_hears_of_it_before_later_answers)
{
	WITH_FIXTURE(f);
	AUTO(buf_done) struct buf wire = BUF_INIT;
	ask_wait(&f, 0, "k");
	c10d_put_request(&wire,
			 &(struct c10d_message){ .query = C10D_SET, .string = { B("k"), B("v") } });
	c10d_put_request(&wire, &(struct c10d_message){ .query = C10D_PING, .number = 0x07070707 });
	feed(&f, 0, bytes_of(buf_data(&wire), buf_len(&wire)), NULL);
	ck_assert_uint_eq(buf_len(&f.out[0]), 5);
	ck_assert_uint_eq(buf_data(&f.out[0])[0], C10D_STOP_WAITING);
}

TEST(cancel_wait_is_always_answered_and_the_wait_is_gone)
{
	WITH_FIXTURE(f);
	ask(&f, 0, (struct c10d_message){ .query = C10D_CANCEL_WAIT });
	ask_wait(&f, 0, "k");
	ask(&f, 0, (struct c10d_message){ .query = C10D_CANCEL_WAIT });
	ask(&f, 1, (struct c10d_message){ .query = C10D_SET, .string = { B("k"), B("v") } });
	ck_assert_uint_eq(buf_len(&f.out[0]), 2);
	ck_assert_uint_eq(buf_data(&f.out[0])[0], C10D_CANCELED);
	ck_assert_uint_eq(buf_data(&f.out[0])[1], C10D_CANCELED);
}

TEST(one_client_waits_for_one_thing_at_a_time)
{
	WITH_FIXTURE(f);
	ask_wait(&f, 0, "k");
	AUTO(buf_done) struct buf wire = BUF_INIT;
	c10d_put_request(&wire, &(struct c10d_message){
					.query = C10D_BARRIER, .string = { B("b") }, .number = 2 });
	struct err err;
	ck_assert_int_eq(feed(&f, 0, bytes_of(buf_data(&wire), buf_len(&wire)), &err), -EPROTO);
	ck_assert_str_eq(err.msg, "BARRIER while another wait is unanswered");
}

TEST(no_more_requests_are_executed_while_replies_pile_up)
{
	WITH_FIXTURE(f);
	f.limits.replies_high = 64;
	ask(&f, 1,
	    (struct c10d_message){ .query = C10D_SET, .string = { B("k"), B("0123456789") } });
	AUTO(buf_done) struct buf wire = BUF_INIT;
	for (int i = 0; i < 100; i++)
		c10d_put_request(&wire,
				 &(struct c10d_message){ .query = C10D_GET, .string = { B("k") } });
	size_t total = 0;
	while (buf_len(&wire) > 0) {
		ssize_t n = feed(&f, 0, bytes_of(buf_data(&wire), buf_len(&wire)), NULL);
		ck_assert_int_eq(n, 4 * (1 + 8 + 1));
		ck_assert_uint_le(buf_len(&f.out[0]), 64 + 18);
		total += buf_len(&f.out[0]);
		buf_clear(&f.out[0]);
		buf_consume(&wire, (size_t)n);
	}
	ck_assert_uint_eq(total, 100 * 18);
}

TEST(a_reply_is_limited_however_small_its_request)
{
	WITH_FIXTURE(f);
	f.limits.reply_max = 1000;
	static const char value[400];
	ask(&f, 0,
	    (struct c10d_message){ .query = C10D_SET,
				   .string = { B("k"), bytes_of(value, sizeof(value)) } });
	AUTO(buf_done) struct buf list = BUF_INIT;
	AUTO(buf_done) struct buf wire = BUF_INIT;
	for (int i = 0; i < 3; i++)
		c10d_put_string(&list, B("k"));
	c10d_put_request(
		&wire, &(struct c10d_message){ .query = C10D_MULTI_GET,
					       .count = 3,
					       .list = bytes_of(buf_data(&list), buf_len(&list)) });
	struct err err;
	ck_assert_int_eq(feed(&f, 0, bytes_of(buf_data(&wire), buf_len(&wire)), &err), -EMSGSIZE);
	ck_assert_str_eq(err.msg, "MULTI_GET wants a reply of 1224 bytes; the limit is 1000");
	ck_assert_uint_eq(buf_len(&f.out[0]), 0);
}

/* A random conversation, once fed whole and once in random pieces. */
static void random_request(struct buf *wire, struct buf *list, unsigned short seed[3])
{
	static const char *const keys[] = { "a", "b", "init/", "" };
	struct c10d_message m = { .query = (enum c10d_query)(1 + nrand48(seed) %
									 (C10D_QUERY_COUNT - 1)) };
	if (m.query == C10D_WAIT || m.query == C10D_BARRIER)
		m.query = C10D_CHECK;
	for (int i = 0; i < 3; i++)
		m.string[i] = B(keys[nrand48(seed) % 4]);
	m.number = nrand48(seed) % 5;
	m.count = (size_t)nrand48(seed) % 4;
	buf_clear(list);
	for (size_t i = 0; i < m.count * (m.query == C10D_MULTI_SET ? 2 : 1); i++)
		c10d_put_string(list, B(keys[nrand48(seed) % 4]));
	m.list = bytes_of(buf_data(list), buf_len(list));
	if (m.query ==
	    C10D_ADD) /* a counter of its own: a value that is not a number ends a session */
		m.string[0] = B("counter");
	c10d_put_request(wire, &m);
}

static void feed_in_pieces(struct fixture *f, struct bytes wire, unsigned short seed[3])
{
	size_t begin = 0, end = 0;
	while (begin < wire.len) {
		size_t piece = 1 + (size_t)nrand48(seed) % 20;
		end = MIN(wire.len, end + piece);
		ssize_t n = feed(f, 0, bytes_of(wire.data + begin, end - begin), NULL);
		ck_assert_int_ge(n, 0);
		begin += (size_t)n;
	}
}

TEST(any_split_of_the_byte_stream_gives_the_same_replies)
{
	unsigned short seed[3] = { 1, 2, 3 };
	for (int round = 0; round < 200; round++) {
		AUTO(buf_done) struct buf wire = BUF_INIT;
		AUTO(buf_done) struct buf list = BUF_INIT;
		for (int i = 0; i < 50; i++)
			random_request(&wire, &list, seed);
		struct bytes all = bytes_of(buf_data(&wire), buf_len(&wire));
		WITH_FIXTURE(whole);
		WITH_FIXTURE(split);
		ck_assert_int_eq(feed(&whole, 0, all, NULL), (ssize_t)all.len);
		feed_in_pieces(&split, all, seed);
		ck_assert(bytes_eq(bytes_of(buf_data(&whole.out[0]), buf_len(&whole.out[0])),
				   bytes_of(buf_data(&split.out[0]), buf_len(&split.out[0]))));
	}
}
