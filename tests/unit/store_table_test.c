#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/store_table.h"

#define B(text) bytes_str(text)
static const uint64_t hash_key[2];

static void open_table(struct store_table *table)
{
	store_table_init(table, STORE_TABLE_BYTES_MAX, hash_key);
}

#define TABLE(name) \
	AUTO(store_table_done) struct store_table name; \
	open_table(&name)

#define WAITER(name) \
	struct store_waiter name; \
	store_waiter_init(&name)

static void assert_value(const struct store_table *table, const char *key, const char *expected)
{
	struct bytes value;
	ck_assert_msg(store_table_get(table, B(key), &value), "%s is absent", key);
	ck_assert_msg(bytes_eq(value, B(expected)), "%s is '%.*s'", key, (int)value.len,
		      value.data);
}

TEST(values_are_replaced_appended_to_and_deleted)
{
	TABLE(table);
	ck_assert_int_eq(store_table_set(&table, B("k"), B("one"), NULL), 0);
	ck_assert_int_eq(store_table_set(&table, B("k"), B("a longer value"), NULL), 0);
	assert_value(&table, "k", "a longer value");
	ck_assert_int_eq(store_table_set(&table, B("k"), B(""), NULL), 0);
	assert_value(&table, "k", "");
	for (int i = 0; i < 100; i++)
		ck_assert_int_eq(store_table_append(&table, B("log"), B("ab"), NULL), 0);
	struct bytes value;
	ck_assert(store_table_get(&table, B("log"), &value));
	ck_assert_uint_eq(value.len, 200);
	ck_assert_uint_eq(table.key_count, 2);
	ck_assert(store_table_delete(&table, B("k")));
	ck_assert(!store_table_delete(&table, B("k")));
	ck_assert(store_table_delete(&table, B("log")));
	ck_assert_uint_eq(table.key_count, 0);
	ck_assert_uint_eq(table.bytes, 0);
}

TEST(compare_set_has_the_four_outcomes_of_pytorch)
{
	TABLE(table);
	struct bytes value;
	ck_assert_int_eq(store_table_compare_set(&table, B("k"), B("old"), B("new"), &value, NULL),
			 0);
	ck_assert(
		bytes_eq(value, B("old"))); /* absent, something expected: looks like a lost race */
	ck_assert(!store_table_has(&table, B("k")));
	store_table_compare_set(&table, B("k"), B(""), B("new"), &value, NULL);
	ck_assert(bytes_eq(value, B("new")));
	store_table_compare_set(&table, B("k"), B("wrong"), B("x"), &value, NULL);
	ck_assert(bytes_eq(value, B("new")));
	store_table_compare_set(&table, B("k"), B("new"), B(""), &value, NULL);
	ck_assert(bytes_eq(value, B("")));
	store_table_compare_set(&table, B("k"), B(""), B("filled"), &value, NULL);
	ck_assert(bytes_eq(value, B("filled")));
}

TEST(add_reads_numbers_as_strtoll_and_wraps)
{
	static const struct {
		const char *text;
		int64_t delta;
		int result;
		int64_t sum;
	} cases[] = {
		{ "12abc", 1, 0, 13 },
		{ "0x10", 1, 0, 1 },
		{ " \t\n+7", 1, 0, 8 },
		{ "-0", -5, 0, -5 },
		{ "", 1, -EINVAL, 0 },
		{ "abc", 1, -EINVAL, 0 },
		{ "- 1", 1, -EINVAL, 0 },
		{ "+", 1, -EINVAL, 0 },
		{ "9223372036854775807", 1, 0, INT64_MIN },
		{ "-9223372036854775808", 0, 0, INT64_MIN },
		{ "9223372036854775808", 0, -EINVAL, 0 },
		{ "-9223372036854775809", 0, -EINVAL, 0 },
		{ "99999999999999999999999999", 0, -EINVAL, 0 },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		TABLE(table);
		int64_t sum = 0;
		store_table_set(&table, B("n"), B(cases[i].text), NULL);
		int r = store_table_add(&table, B("n"), cases[i].delta, &sum, NULL);
		ck_assert_msg(r == cases[i].result && sum == cases[i].sum, "'%s' gave %d, %lld",
			      cases[i].text, r, (long long)sum);
	}
	TABLE(table);
	int64_t sum;
	ck_assert_int_eq(store_table_add(&table, B("fresh"), 0, &sum, NULL), 0);
	assert_value(&table, "fresh", "0");
}

TEST(a_wait_ends_when_the_last_key_is_there_by_whatever_operation)
{
	TABLE(table);
	WAITER(w);
	const struct bytes keys[] = { B("set"), B("add"),   B("append"),
				      B("cas"), B("queue"), B("set") };
	ck_assert_int_eq(store_table_wait(&table, &w, keys, ARRAY_LEN(keys), NULL), 0);
	store_table_set(&table, B("set"), B("1"), NULL);
	ck_assert(store_table_delete(&table, B("set"))); /* seen is seen */
	int64_t sum;
	store_table_add(&table, B("add"), 1, &sum, NULL);
	store_table_append(&table, B("append"), B("1"), NULL);
	struct bytes value;
	store_table_compare_set(&table, B("cas"), B("something"), B("1"), &value, NULL);
	store_table_compare_set(&table, B("cas"), B(""), B("1"), &value, NULL);
	ck_assert_ptr_null(store_table_next_released(&table));
	store_table_push(&table, B("queue"), B("1"), NULL);
	ck_assert_ptr_eq(store_table_next_released(&table), &w);
	ck_assert_ptr_null(store_table_next_released(&table));
	ck_assert(!store_waiter_busy(&w));
	ck_assert_int_eq(store_table_wait(&table, &w, keys + 1, 4, NULL), 1);
	ck_assert_int_eq(store_table_wait(&table, &w, NULL, 0, NULL), 1);
}

TEST(waiters_are_released_in_the_order_they_came)
{
	TABLE(table);
	static struct store_waiter waiters[1000];
	for (size_t i = 0; i < ARRAY_LEN(waiters); i++) {
		store_waiter_init(&waiters[i]);
		store_table_wait(&table, &waiters[i], (struct bytes[]){ B("k") }, 1, NULL);
	}
	store_table_cancel(&table, &waiters[500]);
	store_table_set(&table, B("k"), B(""), NULL);
	for (size_t i = 0; i < ARRAY_LEN(waiters); i++)
		if (i != 500)
			ck_assert_ptr_eq(store_table_next_released(&table), &waiters[i]);
	ck_assert_ptr_null(store_table_next_released(&table));
}

TEST(a_cancelled_wait_leaves_nothing_behind)
{
	TABLE(table);
	WAITER(w);
	store_table_wait(&table, &w, (struct bytes[]){ B("a"), B("b"), B("a") }, 3, NULL);
	ck_assert(store_waiter_busy(&w));
	store_table_set(&table, B("b"), B("1"), NULL);
	store_table_delete(&table, B("b"));
	store_table_cancel(&table, &w);
	ck_assert(!store_waiter_busy(&w));
	ck_assert_uint_eq(table.bytes, 0);
	ck_assert_uint_eq(table.slots.count, 0);

	/* Released but not told yet. */
	store_table_wait(&table, &w, (struct bytes[]){ B("a") }, 1, NULL);
	store_table_set(&table, B("a"), B("1"), NULL);
	store_table_cancel(&table, &w);
	ck_assert_ptr_null(store_table_next_released(&table));
}

TEST(a_barrier_releases_all_when_the_last_arrives)
{
	TABLE(table);
	WAITER(a);
	WAITER(b);
	WAITER(c);
	WAITER(plain);
	store_table_wait(&table, &plain, (struct bytes[]){ B("bar") }, 1, NULL);
	ck_assert_int_eq(store_table_barrier(&table, &a, B("bar"), 3, NULL), 0);
	assert_value(&table, "bar", "1");
	ck_assert_int_eq(store_table_barrier(&table, &b, B("bar"), 3, NULL), 0);
	ck_assert_ptr_null(store_table_next_released(&table));
	ck_assert_int_eq(store_table_barrier(&table, &c, B("bar"), 3, NULL), 1);
	ck_assert_ptr_eq(store_table_next_released(&table), &plain);
	ck_assert_ptr_eq(store_table_next_released(&table), &a);
	ck_assert_ptr_eq(store_table_next_released(&table), &b);
	ck_assert_int_eq(store_table_barrier(&table, &a, B("bar"), 3, NULL), 1); /* not reusable */
	ck_assert_int_eq(store_table_barrier(&table, &a, B("none"), 0, NULL), 1);
	store_table_set(&table, B("text"), B("x"), NULL);
	ck_assert_int_eq(store_table_barrier(&table, &a, B("text"), 2, NULL), -EINVAL);
}

TEST(a_push_ends_one_wait_and_queues_are_not_keys)
{
	TABLE(table);
	WAITER(first);
	WAITER(second);
	store_table_wait(&table, &first, (struct bytes[]){ B("q") }, 1, NULL);
	store_table_wait(&table, &second, (struct bytes[]){ B("q") }, 1, NULL);
	store_table_push(&table, B("q"), B("x1"), NULL);
	ck_assert_ptr_eq(store_table_next_released(&table), &first);
	ck_assert_ptr_null(store_table_next_released(&table));
	store_table_push(&table, B("q"), B("x2"), NULL);
	ck_assert_ptr_eq(store_table_next_released(&table), &second);

	ck_assert(store_table_has(&table, B("q")));
	ck_assert_uint_eq(table.key_count, 0);
	ck_assert(!store_table_delete(&table, B("q")));
	struct bytes value;
	ck_assert(!store_table_get(&table, B("q"), &value));
	ck_assert_uint_eq(store_table_front(&table, B("q"), &value), 2);
	ck_assert(bytes_eq(value, B("x1")));
	store_table_pop(&table, B("q"));
	ck_assert_uint_eq(store_table_front(&table, B("q"), &value), 1);
	store_table_pop(&table, B("q"));
	ck_assert_uint_eq(store_table_front(&table, B("q"), &value), 0);
	ck_assert_uint_eq(table.bytes, 0);
}

TEST(what_would_exceed_the_memory_limit_is_refused_and_changes_nothing)
{
	AUTO(store_table_done) struct store_table table;
	store_table_init(&table, 4096, hash_key);
	static const char big[4096];
	WAITER(w);
	struct err err;
	ck_assert_int_eq(store_table_set(&table, B("k"), bytes_of(big, sizeof(big)), &err),
			 -ENOSPC);
	ck_assert_int_eq(store_table_push(&table, B("k"), bytes_of(big, sizeof(big)), &err),
			 -ENOSPC);
	ck_assert_int_eq(store_table_append(&table, B("k"), bytes_of(big, sizeof(big)), &err),
			 -ENOSPC);
	struct bytes keys[200];
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		keys[i] = B("missing");
	ck_assert_int_eq(store_table_wait(&table, &w, keys, ARRAY_LEN(keys), &err), -ENOSPC);
	ck_assert_uint_eq(table.bytes, 0);
	ck_assert_uint_eq(table.slots.count, 0);
	for (int i = 0, r = 0; r == 0; i++) {
		char key[16];
		snprintf(key, sizeof(key), "%d", i);
		r = store_table_set(&table, B(key), B("value"), &err);
		ck_assert(table.bytes <= 4096);
		ck_assert_int_lt(i, 100);
	}
}
