#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "proto/args/fill.h"
#include "proto/orders.h"
#include "proto/shell.h"

static int add(struct orders *orders, const char *line, struct err *err)
{
	return orders_add_line(orders, line, strlen(line), (uint32_t)orders->count + 1, err);
}

static const char *command_of(const struct order *order)
{
	static char text[256];
	AUTO(buf_done) struct buf out = BUF_INIT;
	order_append_command(order, 3, &out);
	snprintf(text, sizeof(text), "%s", buf_str(&out));
	return text;
}

TEST(plain_lines_are_shell_lines_and_comments_are_skipped)
{
	AUTO(orders_done) struct orders orders = ORDERS_INIT;
	ck_assert_int_eq(add(&orders, "# no", NULL), 0);
	ck_assert_int_eq(add(&orders, "  \r\n", NULL), 0);
	ck_assert_int_eq(add(&orders, "  echo 'a  b' # c \n", NULL), 0);
	ck_assert_uint_eq(orders.count, 1);
	ck_assert_str_eq(orders.items[0].shell, "echo 'a  b' # c");
}

TEST(json_lines_have_every_key)
{
	AUTO(orders_done) struct orders orders = ORDERS_INIT;
	struct err err = ERR_INIT;
	int r = add(&orders,
		    "{\"id\":\"x\",\"cmd\":[\"./a\",\"b "
		    "c\"],\"cores\":2,\"timeout\":\"2m\",\"cpu_timeout\":1.5,\"retries\":0,"
		    "\"env\":{\"A\":\"1\",\"B\":null},\"cwd\":\"/"
		    "tmp\",\"stdin\":\"in\",\"group\":\"g\",\"runs\":3}",
		    &err);
	ck_assert_msg(r == 0, "%s", err.msg);
	struct order *order = &orders.items[0];
	ck_assert_str_eq(order->argv[1], "b c");
	ck_assert_str_eq(command_of(order), "./a 'b c'");
	ck_assert_int_eq(order->cores, 2);
	ck_assert_uint_eq(order->timeout_ns, 120 * NS_PER_S);
	ck_assert_uint_eq(order->cpu_timeout_ns, 1500 * NS_PER_MS);
	ck_assert_int_eq(order->retries, 0);
	ck_assert_int_eq(order->runs, 3);
	ck_assert_str_eq(order->extra->env.items[0], "A=1");
	ck_assert_str_eq(order->extra->env.items[1], "B");
	ck_assert_str_eq(order_group(order), "g");
	ck_assert_int_eq(add(&orders, "{\"cmd\":\"x\",\"timeout\":\"200%\"}", &err), 0);
	ck_assert_uint_eq(orders.items[1].timeout_percent, 200);
	ck_assert_int_eq(orders.items[1].retries, -1);
	ck_assert_int_eq(add(&orders,
			     "{\"cmd\":\"y\",\"hosts\":\"a\",\"features\":[\"gpu\",\"ssd\"],"
			     "\"memory\":\"2G\"}",
			     &err),
			 0);
	ck_assert_str_eq(orders.items[2].extra->hosts.items[0], "a");
	ck_assert_uint_eq(orders.items[2].extra->features.count, 2);
	ck_assert_uint_eq(orders.items[2].extra->memory, (uint64_t)2 << 30);
}

TEST(broken_orders_are_refused_by_key)
{
	static const struct {
		const char *line, *message;
	} cases[] = {
		{ "{\"cmd\":\"x\",\"timeuot\":1}",
		  "unknown key 'timeuot'; did you mean 'timeout'?" },
		{ "{\"cmd\":\"x\",\"surprise\":1}", "unknown key 'surprise'" },
		{ "{\"id\":\"x\"}", "key 'cmd' is missing" },
		{ "{\"cmd\":\"x\",\"cores\":0}",
		  "column 21: key 'cores' must be a number from 1 to 4096" },
		{ "{\"cmd\":\"\"}",
		  "column 10: key 'cmd' must be a shell line or a list of words" },
		{ "{\"cmd\":[]}", "column 10: key 'cmd' must be a shell line or a list of words" },
		{ "{\"cmd\":\"a\",\"cmd\":[\"b\"]}", "two commands" },
		{ "{\"cmd\":\"x\"", "column 11: not a JSON object" },
		{ "{\"cmd\":\"x\"} y", "column 13: not a JSON object" },
		{ "{\"cmd\":\"x\",\"env\":{\"A=B\":\"1\"}}", NULL },
		{ "{\"cmd\":\"x\",\"timeout\":-1}", NULL },
		{ "{\"cmd\":\"x\",\"cpu_timeout\":\"200%\"}", NULL },
		{ "{\"cmd\":\"x\\u0000\"}", NULL },
		{ "{\"cmd\":\"x\",\"labels\":\"a\"}",
		  "column 21: key 'labels' must be an object of at most 64 texts, or a list of "
		  "them" },
		{ "{\"cmd\":\"x\",\"labels\":{\"a b\":\"c\"}}", NULL },
		{ "{\"cmd\":\"x\",\"labels\":{\"a\":1.5}}", NULL },
		{ "{\"cmd\":\"x\",\"labels\":[[]]}", NULL },
		{ "{\"cmd\":\"x\",\"variant\":\"more than fifteen\"}", NULL },
		{ "{\"cmd\":\"x\",\"features\":\"a,b\"}",
		  "column 28: key 'features' must be a word or a list of at most 64" },
		{ "{\"cmd\":\"x\",\"hosts\":[]}", NULL },
		{ "{\"cmd\":\"x\",\"hosts\":[1]}", NULL },
		{ "{\"cmd\":\"x\",\"memory\":0}", NULL },
		{ "{\"cmd\":\"x\",\"memory\":\"much\"}", NULL },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(orders_done) struct orders orders = ORDERS_INIT;
		struct err err = ERR_INIT;
		ck_assert_msg(add(&orders, cases[i].line, &err) == -EINVAL, "accepted %s",
			      cases[i].line);
		if (cases[i].message)
			ck_assert_str_eq(err.msg, cases[i].message);
	}
}

TEST(labels_are_named_or_numbered)
{
	AUTO(orders_done) struct orders orders = ORDERS_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	ck_assert_int_eq(add(&orders, "{\"cmd\":\"x\",\"labels\":[\"pointwise\",\"add\"]}", NULL),
			 0);
	ck_assert_int_eq(add(&orders,
			     "{\"cmd\":\"y\",\"labels\":{\"op\":\"a\",\"none\":\"\","
			     "\"threads\":2}}",
			     NULL),
			 0);
	label_format(&orders.items[0].extra->labels, &text);
	ck_assert_str_eq(buf_str(&text), "pointwise, add");
	buf_clear(&text);
	label_format(&orders.items[1].extra->labels, &text);
	ck_assert_str_eq(buf_str(&text), "op=a, threads=2");
	struct label_of of = order_labels(&orders.items[0], "x");
	ck_assert(label_value(&of, "2", &text));
	ck_assert_str_eq(buf_str(&text), "add");
}

TEST(a_source_command_goes_before_the_command)
{
	static const struct {
		const char *line, *source, *program, *command;
	} cases[] = {
		{ ". env && ./a b", ". env", "./a", ". env && ./a b" },
		{ "source 'a && b' && . c  && x", "source 'a && b' && . c", "x",
		  "source 'a && b' && . c  && x" },
		{ ". env; x", "", ".", ". env; x" },
		{ ". env || x && y", "", ".", ". env || x && y" },
		{ "x && . env && y", "", "x", "x && . env && y" },
		{ "{\"cmd\":\"x y\",\"source\":\"conda activate e\"}", "conda activate e", "x",
		  "conda activate e && x y" },
		{ "{\"cmd\":[\"x\",\"a b\"],\"source\":\". e\"}", ". e", "x", ". e && x 'a b'" },
		{ "{\"cmd\":\"x; y\",\"source\":\". e\"}", ". e", "{", ". e && { x; y\n}" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(orders_done) struct orders orders = ORDERS_INIT;
		ck_assert_int_eq(add(&orders, cases[i].line, NULL), 0);
		AUTO_FREE char *program = order_program(&orders.items[0]);
		ck_assert_str_eq(order_source(&orders.items[0]), cases[i].source);
		ck_assert_str_eq(program, cases[i].program);
		ck_assert_str_eq(command_of(&orders.items[0]), cases[i].command);
	}
}

TEST(only_orders_that_pass_the_filter_stay)
{
	AUTO(orders_done) struct orders orders = ORDERS_INIT;
	AUTO(strv_done) struct strv filter = STRV_INIT;
	add(&orders, "{\"cmd\":\"a\",\"labels\":{\"op\":\"add\"}}", NULL);
	add(&orders, "{\"cmd\":\"b\",\"labels\":{\"op\":\"mul\"}}", NULL);
	add(&orders, "c", NULL);
	orders_filter(&orders, &filter);
	ck_assert_uint_eq(orders.count, 3);
	label_filter_add(&filter, "op!=add", NULL);
	label_filter_add(&filter, "program=?", NULL);
	orders_filter(&orders, &filter);
	ck_assert_uint_eq(orders.count, 2);
	ck_assert_str_eq(orders.items[0].shell, "b");
}

TEST(variants_share_an_id)
{
	AUTO(orders_done) struct orders orders = ORDERS_INIT;
	struct err err = ERR_INIT;
	add(&orders, "{\"cmd\":\"a\",\"id\":\"i\",\"variant\":\"A\"}", NULL);
	add(&orders, "{\"cmd\":\"b\",\"id\":\"i\",\"variant\":\"B\"}", NULL);
	ck_assert_int_eq(orders_check_unique(&orders, false, &err), 0);
	add(&orders, "{\"cmd\":\"c\",\"id\":\"i\",\"variant\":\"B\"}", NULL);
	ck_assert_int_eq(orders_check_unique(&orders, false, &err), -EEXIST);
	ck_assert_str_eq(err.msg, "orders 2 and 3 have the same id 'i'");
}

TEST(identity_is_what_runs_and_nothing_else)
{
	static const char *const same[] = {
		"{\"cmd\":\"x y\",\"env\":{\"A\":\"1\",\"B\":\"2\"}}",
		"{\"id\":\"n\",\"cores\":4,\"timeout\":3,\"env\":{\"B\":\"2\",\"A\":\"1\"},\"cmd\":"
		"\"x y\"}",
	};
	static const char *const different[] = {
		"x y",
		"{\"cmd\":[\"x\",\"y\"]}",
		"{\"cmd\":[\"x y\"]}",
		"{\"cmd\":\"x y\",\"cwd\":\"/\"}",
		"{\"cmd\":\"x y\",\"stdin\":\"/\"}",
		"{\"cmd\":\"x y\",\"env\":{\"A\":\"1\"}}",
		"{\"cmd\":\"x y\",\"env\":{\"A\":null}}",
		"{\"cmd\":\"x y\",\"env\":{\"A\":\"\"}}",
	};
	AUTO(orders_done) struct orders orders = ORDERS_INIT, others = ORDERS_INIT;
	ck_assert_int_eq(add(&orders, same[0], NULL), 0);
	ck_assert_int_eq(add(&orders, same[1], NULL), 0);
	ck_assert_mem_eq(orders.items[0].hash, orders.items[1].hash, ORDER_HASH_BYTES);
	for (size_t i = 0; i < ARRAY_LEN(different); i++)
		ck_assert_int_eq(add(&others, different[i], NULL), 0);
	ck_assert_int_eq(orders_check_unique(&others, false, NULL), 0);
}

TEST(duplicates_are_refused_or_told_apart)
{
	AUTO(orders_done) struct orders orders = ORDERS_INIT;
	struct err err = ERR_INIT;
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(add(&orders, "true", NULL), 0);
	ck_assert_int_eq(orders_check_unique(&orders, false, &err), -EEXIST);
	ck_assert_str_eq(err.msg, "order 2 runs the same as order 1: true");
	ck_assert_int_eq(orders_check_unique(&orders, true, NULL), 0);
	ck_assert_mem_ne(orders.items[0].hash, orders.items[1].hash, ORDER_HASH_BYTES);
	ck_assert_mem_ne(orders.items[1].hash, orders.items[2].hash, ORDER_HASH_BYTES);
	ck_assert_int_eq(add(&orders, "{\"id\":\"a\",\"cmd\":\"y\"}", NULL), 0);
	ck_assert_int_eq(add(&orders, "{\"id\":\"a\",\"cmd\":\"z\"}", NULL), 0);
	ck_assert_int_eq(orders_check_unique(&orders, true, &err), -EEXIST);
}

TEST(one_command_may_run_on_several_numbers_of_cores_and_under_several_names)
{
	AUTO(orders_done) struct orders orders = ORDERS_INIT;
	struct err err = ERR_INIT;
	add(&orders, "x", NULL);
	add(&orders, "{\"cmd\":\"x\",\"cores\":2}", NULL);
	add(&orders, "{\"cmd\":\"x\",\"cores\":2,\"id\":\"named\"}", NULL);
	ck_assert_int_eq(orders_check_unique(&orders, false, &err), 0);
	for (int i = 0; i < 3; i++)
		ck_assert_mem_ne(orders.items[i].hash, orders.items[(i + 1) % 3].hash,
				 ORDER_HASH_BYTES);

	AUTO(orders_done) struct orders twins = ORDERS_INIT;
	add(&twins, "x", NULL);
	add(&twins, "{\"cmd\":\"x\",\"cores\":2}", NULL);
	add(&twins, "{\"cmd\":\"x\",\"cores\":2}", NULL);
	ck_assert_int_eq(orders_check_unique(&twins, false, &err), -EEXIST);
	ck_assert_str_eq(err.msg, "order 3 runs the same as order 2: x");
}

#define TEMPLATE(orders, ...) \
	orders_add_template(orders, (int)ARRAY_LEN(((char *[]){ __VA_ARGS__ })), \
			    (char *[]){ __VA_ARGS__ }, NULL)

TEST(arguments_are_put_in_quoted)
{
	AUTO(orders_done) struct orders orders = ORDERS_INIT;
	ck_assert_int_eq(TEMPLATE(&orders, "echo {#} {%} {}", ":::", "a b", "it's", ""), 0);
	ck_assert_uint_eq(orders.count, 3);
	ck_assert_str_eq(command_of(&orders.items[0]), "echo 1 3 'a b'");
	ck_assert_str_eq(command_of(&orders.items[1]), "echo 2 3 'it'\"'\"'s'");
	ck_assert_str_eq(command_of(&orders.items[2]), "echo 3 3 ''");
}

TEST(arguments_are_appended_when_they_have_no_place)
{
	AUTO(orders_done) struct orders orders = ORDERS_INIT;
	ck_assert_int_eq(TEMPLATE(&orders, "gzip", "-9", ":::", "x", "y"), 0);
	ck_assert_str_eq(command_of(&orders.items[1]), "gzip -9 y");
}

TEST(several_lists_make_all_combinations)
{
	AUTO(orders_done) struct orders orders = ORDERS_INIT;
	ck_assert_int_eq(TEMPLATE(&orders, "f {2} {1}", ":::", "a", "b", ":::", "x", "y", "z"), 0);
	ck_assert_uint_eq(orders.count, 6);
	ck_assert_str_eq(command_of(&orders.items[1]), "f y a");
	ck_assert_str_eq(command_of(&orders.items[3]), "f x b");
	AUTO(orders_done) struct orders none = ORDERS_INIT;
	ck_assert_int_eq(TEMPLATE(&none, "f", ":::"), 0);
	ck_assert_uint_eq(none.count, 0);
}

TEST(parts_of_paths_can_be_named)
{
	AUTO(orders_done) struct orders orders = ORDERS_INIT;
	ck_assert_int_eq(TEMPLATE(&orders, "{.} {/} {//} {/.} {x} {} }", ":::", "/a/b.c/d.e"), 0);
	ck_assert_str_eq(command_of(&orders.items[0]), "/a/b.c/d d.e /a/b.c d {x} /a/b.c/d.e }");
}

TEST(without_a_command_the_arguments_are_commands)
{
	AUTO(orders_done) struct orders orders = ORDERS_INIT;
	ck_assert_int_eq(TEMPLATE(&orders, ":::", "sleep 1", "echo {}"), 0);
	ck_assert_str_eq(command_of(&orders.items[0]), "sleep 1");
	ck_assert_str_eq(command_of(&orders.items[1]), "echo {}");
}

TEST(only_lines_a_shell_would_not_change_are_run_without_one)
{
	static const char *const plain[] = { "/bin/true", "sleep  1", "a -x --y=z b,c:d@e 50%" };
	static const char *const shell[] = { "a | b", "a;b",  "a 'b'", "cd x", "A=1 b", "exit 3",
					     "a $b",  "a *",  "a ~",   "a #b", ": x",	"a {b}",
					     "a [b]", "a\\b", "a&",    "a>b",  "a\nb",	"" };
	for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
		AUTO(strv_done) struct strv words = STRV_INIT;
		ck_assert_msg(shell_split_plain(plain[i], &words), "%s", plain[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(shell); i++) {
		AUTO(strv_done) struct strv words = STRV_INIT;
		ck_assert_msg(!shell_split_plain(shell[i], &words), "%s", shell[i]);
	}
	AUTO(strv_done) struct strv words = STRV_INIT;
	shell_split_plain(plain[2], &words);
	ck_assert_uint_eq(words.count, 5);
	ck_assert_str_eq(words.items[3], "b,c:d@e");
}
