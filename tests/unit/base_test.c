#include "unit.h"

#include <inttypes.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/actions.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/env.h"
#include "base/err.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "base/utf8.h"

TEST(buf_keeps_bytes_in_order_through_growth_and_consumption)
{
	AUTO(buf_done) struct buf buf = BUF_INIT;
	unsigned char next_in = 0, next_out = 0;
	for (int round = 0; round < 1000; round++) {
		for (int i = 0; i < round % 97; i++)
			buf_append(&buf, &(unsigned char){ next_in++ }, 1);
		for (int i = 0; i < round % 89 && buf_len(&buf) > 0; i++) {
			ck_assert_uint_eq(*buf_data(&buf), next_out++);
			buf_consume(&buf, 1);
		}
	}
}

TEST(what_a_terminal_would_act_on_becomes_a_question_mark)
{
	static const char *const cases[][2] = {
		{ "a\033[31m\nb\tc\177", "a?[31m?b?c?" },
		{ "\xc2\x9b"
		  "31m \xc2\x9d"
		  "0;title\xc2\x9c",
		  "?31m ?0;title?" },
		{ "\xe2\x80\xae \xe2\x81\xa6 \xd8\x9c \xe2\x80\xa8 \xef\xbb\xbf", "? ? ? ? ?" },
		{ "\x9b cut \xe2\x80", "? cut ??" },
		{ "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xc2\xa0",
		  "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xc2\xa0" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_FREE char *text = mem_strdup(cases[i][0]);
		str_make_printable(text);
		ck_assert_str_eq(text, cases[i][1]);
	}
	AUTO(buf_done) struct buf buf = BUF_INIT;
	buf_append_str(&buf, "\033 a\033\n\xc2\x9b");
	utf8_make_rest_printable(&buf, 2, "\n");
	ck_assert_str_eq(buf_str(&buf), "\033 a?\n?");
}

TEST(buf_gives_its_text_away_after_consumption)
{
	struct buf buf = BUF_INIT;
	buf_printf(&buf, "%s-%d", "abc", 42);
	buf_consume(&buf, 2);
	char *text = buf_take_str(&buf);
	ck_assert_str_eq(text, "c-42");
	ck_assert_uint_eq(buf.cap, 0);
	free(text);
}

TEST(buf_writes_numbers_and_texts_that_just_fit)
{
	AUTO(buf_done) struct buf buf = BUF_INIT;
	const int64_t numbers[] = { 0, 7, -1, 1234567890123456789, INT64_MAX, INT64_MIN };
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		char expected[32];
		snprintf(expected, sizeof(expected), "%" PRId64, numbers[i]);
		buf_clear(&buf);
		buf_append_int(&buf, numbers[i]);
		ck_assert_str_eq(buf_str(&buf), expected);
	}
	/* One byte less than the room, as much as it, one more. */
	for (size_t len = 62; len <= 66; len++) {
		AUTO(buf_done) struct buf text = BUF_INIT;
		buf_reserve(&text, 1);
		buf_printf(&text, "%0*d", (int)len, 5);
		ck_assert_uint_eq(buf_len(&text), len);
		ck_assert_uint_eq(strspn(buf_str(&text), "0"), len - 1);
		ck_assert_str_eq(buf_str(&text) + len - 1, "5");
	}
}

TEST(heap_pops_in_key_order_and_equal_keys_in_arrival_order)
{
	AUTO(heap_done) struct heap heap = HEAP_INIT;
	struct heap_node nodes[200] = { 0 };
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
		heap_push(&heap, &nodes[i], (i * 7919) % 13);
	for (size_t i = 0; i < ARRAY_LEN(nodes); i += 3)
		heap_remove(&heap, &nodes[i]);
	const struct heap_node *last = NULL;
	for (const struct heap_node *node; (node = heap_pop(&heap)); last = node) {
		ck_assert((node - nodes) % 3 != 0);
		if (last && last->key == node->key)
			ck_assert(last < node);
		ck_assert(!last || last->key <= node->key);
	}
	ck_assert_uint_eq(heap.count, 0);
}

TEST(map_finds_what_was_put_and_forgets_what_was_removed)
{
	struct map map = MAP_INIT;
	char key[16];
	for (intptr_t i = 1; i <= 1000; i++)
		map_put(&map, key, (size_t)snprintf(key, sizeof(key), "key%d", (int)i), (void *)i);
	for (intptr_t i = 2; i <= 1000; i += 2)
		ck_assert_ptr_eq(map_remove(&map, key,
					    (size_t)snprintf(key, sizeof(key), "key%d", (int)i)),
				 (void *)i);
	ck_assert_uint_eq(map.count, 500);
	size_t seen = 0;
	map_foreach(entry, &map)
	{
		ck_assert((intptr_t)entry->value % 2 == 1);
		seen++;
		map_remove(&map, entry->key, entry->key_len);
	}
	ck_assert_uint_eq(seen, 500);
	ck_assert_uint_eq(map.count, 0);
	map_done(&map);
}

TEST(integers_follow_python)
{
	static const struct {
		const char *text;
		int result;
		int64_t value;
	} cases[] = {
		{ "7", 0, 7 },
		{ " +7 ", 0, 7 },
		{ "-3", 0, -3 },
		{ "1_0", 0, 10 },
		{ "_1", -EINVAL, 0 },
		{ "1__0", -EINVAL, 0 },
		{ "0x3", -EINVAL, 0 },
		{ "", -EINVAL, 0 },
		{ "1e9", -EINVAL, 0 },
		{ "99999999999999999999", -ERANGE, 0 },
		{ "-9223372036854775808", 0, INT64_MIN },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int64_t value = 0;
		ck_assert_int_eq(str_to_i64_python(cases[i].text, &value), cases[i].result);
		ck_assert_int_eq(value, cases[i].value);
	}
}

TEST(hexadecimal_stops_at_the_first_other_character)
{
	uint64_t value;
	ck_assert_int_eq(str_hex_to_u64("00000000000F4a0b\nx", &value), 0);
	ck_assert_uint_eq(value, 0xf4a0b);
	ck_assert_int_eq(str_hex_to_u64("ffffffffffffffff", &value), 0);
	ck_assert_uint_eq(value, UINT64_MAX);
	ck_assert_int_eq(str_hex_to_u64("10000000000000000", &value), -ERANGE);
	ck_assert_int_eq(str_hex_to_u64("xyz", &value), -EINVAL);
}

TEST(durations_and_sizes_take_units)
{
	uint64_t n;
	ck_assert_int_eq(str_to_duration_ns("1.5s", &n), 0);
	ck_assert_uint_eq(n, 1500 * NS_PER_MS);
	ck_assert_int_eq(str_to_duration_ns("2", &n), 0);
	ck_assert_uint_eq(n, 2 * NS_PER_S);
	ck_assert_int_eq(str_to_duration_ns("2min", &n), 0);
	ck_assert_uint_eq(n, 120 * NS_PER_S);
	ck_assert_int_eq(str_to_duration_ns("-1", &n), -EINVAL);
	ck_assert_int_eq(str_to_duration_ns("1 parsec", &n), -EINVAL);
	ck_assert_int_eq(str_to_duration_ns("1e30", &n), -ERANGE);
	ck_assert_int_eq(str_to_size("64K", &n), 0);
	ck_assert_uint_eq(n, 65536);
	ck_assert_int_eq(str_to_size("1MiB", &n), 0);
	ck_assert_uint_eq(n, 1 << 20);
}

TEST(reals_take_what_python_takes)
{
	double value;
	ck_assert_int_eq(str_to_double("1e-2", &value), 0);
	ck_assert_int_eq(str_to_double("nan", &value), 0);
	ck_assert(isnan(value));
	ck_assert_int_eq(str_to_double("0x10", &value), -EINVAL);
	ck_assert_int_eq(str_to_double("1.0x", &value), -EINVAL);
	ck_assert_int_eq(str_to_double("", &value), -EINVAL);
}

TEST(reals_are_rounded_as_strtod_does)
{
	static const char *const texts[] = { "0",
					     "7",
					     "1010253.7",
					     "0.1",
					     "00012.50",
					     "5.",
					     ".5",
					     "123456789012.345",
					     "999999999999999",
					     "9007199254740993",
					     "0.000000000000001",
					     "1e300",
					     "-2.5",
					     " 3.25 ",
					     "1.7976931348623157e308" };
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		double value;
		ck_assert_int_eq(str_to_double(texts[i], &value), 0);
		ck_assert_double_eq(value, strtod(texts[i], NULL));
	}
	uint64_t seed = 9;
	for (int i = 0; i < 10000; i++) {
		char text[64];
		double value;
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		snprintf(text, sizeof(text), "%.*f", i % 9, (double)(seed >> 24) / 1e7);
		ck_assert_int_eq(str_to_double(text, &value), 0);
		ck_assert_double_eq(value, strtod(text, NULL));
	}
}

TEST(signals_are_known_by_name_and_number)
{
	ck_assert_int_eq(str_to_signal("SIGTERM"), SIGTERM);
	ck_assert_int_eq(str_to_signal("usr1"), SIGUSR1);
	ck_assert_int_eq(str_to_signal("9"), SIGKILL);
	ck_assert_int_eq(str_to_signal("SIGNOPE"), -EINVAL);
	ck_assert_int_eq(str_to_signal("0"), -EINVAL);
	ck_assert_str_eq(str_signal_name(SIGSEGV), "SIGSEGV");
	ck_assert_ptr_null(str_signal_name(0));
}

TEST(distance_counts_edits)
{
	ck_assert_uint_eq(str_distance("nproc-per-node", "nproc-per-nod"), 1);
	ck_assert_uint_eq(str_distance("tee", "ete"), 1);
	ck_assert_uint_eq(str_distance("abc", "xyz"), 3);
}

TEST(nearest_name_shares_enough_with_what_was_typed)
{
	ck_assert_str_eq(str_nearest("rum", "run", NULL), "run");
	ck_assert_str_eq(str_nearest("stor", "store", "stop"), "stop"); /* as near: the first */
	ck_assert_str_eq(str_nearest("statsu", "status", "stacks"), "status");
	ck_assert_ptr_null(str_nearest("-v", "kv", NULL));
	ck_assert_ptr_null(str_nearest("", "kv", NULL));
	ck_assert_ptr_null(str_nearest("abc", "xyz", NULL));
}

TEST(programs_are_found_in_the_directories_of_a_path)
{
	AUTO_FREE char *found = path_search("sh", "/dev/null/x:/bin");
	ck_assert_str_eq(found, "/bin/sh");
	ck_assert_ptr_null(path_search("sh", "/dev/null/x:"));
	ck_assert_ptr_null(path_search("bin", "/usr"));	   /* a directory */
	ck_assert_ptr_null(path_search("passwd", "/etc")); /* not executable */
}

TEST(env_sets_replaces_and_unsets)
{
	AUTO(strv_done) struct strv env = STRV_INIT;
	env_set(&env, "A", "1");
	env_set(&env, "AB", "2");
	env_setf(&env, "A", "%d", 3);
	ck_assert_str_eq(env_get(&env, "A"), "3");
	env_unset(&env, "A");
	ck_assert_ptr_null(env_get(&env, "A"));
	ck_assert_str_eq(env_get(&env, "AB"), "2");
	ck_assert_ptr_null(strv_argv(&env)[1]);
}

TEST(err_wrap_puts_context_in_front)
{
	struct err err = ERR_INIT;
	ck_assert_int_eq(err_set(&err, ENOENT, "open %s: %m", "x"), -ENOENT);
	ck_assert_int_eq(err_wrap(&err, "config"), -ENOENT);
	ck_assert_str_eq(err.msg, "config: open x: No such file or directory");
	ck_assert_int_eq(err_set(NULL, EPERM, "ignored"), -EPERM);
}

TEST(list_survives_unlinking_while_walking)
{
	struct list head, links[10];
	list_init(&head);
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		list_append(&head, &links[i]);
	size_t seen = 0;
	list_foreach(link, &head)
	{
		ck_assert_ptr_eq(link, &links[seen++]);
		list_unlink(link);
	}
	ck_assert_uint_eq(seen, ARRAY_LEN(links));
	ck_assert(list_empty(&head));
	ck_assert_ptr_null(list_shift(&head));
}

TEST(arrays_are_zero_where_freed_memory_was_not)
{
	enum { COUNT = 40 };
	for (int i = 0; i < 100; i++) {
		uint64_t *items = NEW_ARRAY(uint64_t, COUNT);
		for (size_t n = 0; n < COUNT; n++) {
			ck_assert_uint_eq(items[n], 0);
			items[n] = UINT64_MAX;
		}
		free(items);
	}
}

/* A machine whose first event asks for two actions, of which the first brings a new event about. */
struct pair_event {
	char name;
};
QUEUE_OF(pair);

struct pair {
	struct pair_queue queue;
	struct buf seen;
};

static void take_pair(void *arg, const struct pair_event *event)
{
	struct pair *pair = arg;
	buf_printf(&pair->seen, "%c(", event->name);
	if (event->name == 'a') {
		pair_push(&pair->queue, &(struct pair_event){ 'c' });
		ck_assert(!pair_drive(&pair->queue, take_pair, pair));
	}
	buf_append_str(&pair->seen, ")");
}

TEST(an_event_that_an_action_brings_about_waits_for_the_other_actions)
{
	struct pair pair = { .seen = BUF_INIT };
	pair_push(&pair.queue, &(struct pair_event){ 'a' });
	pair_push(&pair.queue, &(struct pair_event){ 'b' });
	ck_assert(pair_drive(&pair.queue, take_pair, &pair));
	ck_assert_str_eq(buf_str(&pair.seen), "a()b()c()");
	ck_assert(pair_drive(&pair.queue, take_pair, &pair)); /* each is taken once */
	ck_assert_str_eq(buf_str(&pair.seen), "a()b()c()");
	pair_queue_done(&pair.queue);
	buf_done(&pair.seen);
}
