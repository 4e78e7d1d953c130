#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/batch/batch_words.h"
#include "proto/args/fill.h"
#include "proto/args/words.h"

static char joined[1 << 12];

/* "[a|b][c]": the columns of the records. */
static const char *show(const struct arg_records *records)
{
	joined[0] = '\0';
	for (size_t i = 0; i < records->count; i++) {
		strcat(joined, "[");
		for (size_t k = 0; k < records->items[i].count; k++) {
			strcat(joined, k ? "|" : "");
			strcat(joined, records->items[i].items[k]);
		}
		strcat(joined, "]");
	}
	return joined;
}

static const char *cut(struct arg_format format, const char *text, size_t len, struct err *err)
{
	AUTO(arg_cutter_done) struct arg_cutter cutter = { .has_regex = false };
	AUTO(arg_records_done) struct arg_records records = ARG_RECORDS_INIT;
	if (arg_cutter_init(&cutter, &format, err) < 0 ||
	    arg_records_read(&records, &cutter, text, len, err) < 0)
		return NULL;
	return show(&records);
}

#define CUT(text, ...) cut((struct arg_format){ __VA_ARGS__ }, text, sizeof(text) - 1, &ERR_INIT)

TEST(a_text_is_cut_into_records_and_columns)
{
	ck_assert_str_eq(CUT("a\nb c\n", .end = '\n'), "[a][b c]");
	ck_assert_str_eq(CUT("a\n\nb", .end = '\n'), "[a][][b]");
	ck_assert_str_eq(CUT("a\n\nb", .end = '\n', .skip_empty = true), "[a][b]");
	ck_assert_str_eq(CUT("a\0b\nc\0", .end = '\0'), "[a][b\nc]");
	ck_assert_str_eq(CUT("a\tb\n\tc\n", .end = '\n', .colsep = "\\t"), "[a|b][|c]");
	ck_assert_str_eq(CUT("a  b c\n", .end = '\n', .colsep = " +"), "[a|b|c]");
	ck_assert_str_eq(CUT("a1b22c", .end = '\n', .colsep = "\\d+"), "[a|b|c]");
	ck_assert_str_eq(CUT("a\nSTOP\nb", .end = '\n', .eof = "STOP"), "[a]");
	ck_assert_str_eq(CUT("", .end = '\n'), "");
}

TEST(csv_columns_may_be_quoted)
{
	ck_assert_str_eq(CUT("a,\"b,\"\"c\"\"\",d\r\n1,,\n", .end = '\n', .csv = true),
			 "[a|b,\"c\"|d][1||]");
	ck_assert_str_eq(CUT("\"two\nlines\",x", .end = '\n', .csv = true), "[two\nlines|x]");
	ck_assert_str_eq(CUT("a;b", .end = '\n', .csv = true, .colsep = ";"), "[a|b]");
	ck_assert_ptr_null(CUT("\"open", .end = '\n', .csv = true));
}

TEST(what_cannot_be_an_argument_is_an_error_that_names_it)
{
	struct err err = ERR_INIT;
	ck_assert_ptr_null(cut((struct arg_format){ .end = '\n' }, "a\nb\0c", 5, &err));
	ck_assert_str_eq(err.msg, "argument 2 contains a NUL byte (see -0)");
	ck_assert_ptr_null(cut((struct arg_format){ .end = '\n', .colsep = "(" }, "a", 1, &err));
	ck_assert_ptr_nonnull(strstr(err.msg, "--colsep '('"));
	ck_assert_ptr_null(cut((struct arg_format){ .end = '\n', .colsep = "x*" }, "abc", 3, &err));
	ck_assert_ptr_nonnull(strstr(err.msg, "matches nothing"));
}

/* ---- whole command lines ---- */

struct line {
	struct orders orders;
	struct err err;
};

static struct line fill(struct arg_filling filling, bool header, bool link, int argc, char **argv)
{
	struct line line = { .orders = ORDERS_INIT, .err = ERR_INIT };
	struct arg_words words;
	AUTO(arg_sources_done) struct arg_sources sources = ARG_SOURCES_INIT;
	const struct arg_cutter cutter = { .format = { .end = '\n' } };
	sources.all_linked = link;
	int r = arg_words_parse(&words, argc, argv, &line.err);
	for (size_t i = 0; r >= 0 && i < words.list_count; i++)
		r = arg_sources_add_words(&sources, &words.lists[i], &cutter, &line.err);
	if (r >= 0 && header)
		r = arg_sources_take_header(&sources, &line.err);
	if (r < 0)
		return line;
	AUTO_FREE char *command = arg_words_command(&words, false);
	filling.command.text = command;
	filling.sources = sources.count ? &sources : NULL;
	orders_add_filled(&line.orders, &filling, &line.err);
	return line;
}

/* "a;b;c": the commands. */
static const char *commands(struct line line)
{
	joined[0] = '\0';
	if (line.err.code)
		snprintf(joined, sizeof(joined), "%s", line.err.msg);
	for (size_t i = 0; i < line.orders.count; i++) {
		strcat(joined, i ? ";" : "");
		strcat(joined, line.orders.items[i].shell);
	}
	orders_done(&line.orders);
	return joined;
}

#define WORDS(...) \
	(int)ARRAY_LEN(((char *[]){ __VA_ARGS__ })), (char *[]) \
	{ \
		__VA_ARGS__ \
	}
#define PLAIN ((struct arg_filling){ .max_rows = 0 })

TEST(linked_lists_go_along_with_the_one_before)
{
	ck_assert_str_eq(commands(fill(PLAIN, 0, 0, WORDS("f", ":::", "A", "B", ":::+", "1", "2"))),
			 "f A 1;f B 2");
	ck_assert_str_eq(
		commands(fill(PLAIN, 0, 0,
			      WORDS("f", ":::", "A", "B", ":::", "X", "Y", ":::+", "1", "2"))),
		"f A X 1;f A Y 2;f B X 1;f B Y 2");
	ck_assert_str_eq(
		commands(fill(PLAIN, 0, 1, WORDS("f", ":::", "A", "B", "C", ":::", "1", "2"))),
		"f A 1;f B 2;f C 1");
	ck_assert_str_eq(commands(fill(PLAIN, 0, 0, WORDS("f", ":::+", "A"))),
			 "':::+' has no list before it to go along with");
}

TEST(a_command_takes_several_arguments)
{
	char *five[] = { "f", ":::", "1", "2", "3", "4", "5" };
	struct arg_filling two = { .max_rows = 2 }, line = { .fill = ARG_FILL_LINE },
			   spread = { .fill = ARG_FILL_SPREAD, .jobs = 2 }, none = { .drop = true };
	ck_assert_str_eq(commands(fill(two, 0, 0, 7, five)), "f 1 2;f 3 4;f 5");
	ck_assert_str_eq(commands(fill(line, 0, 0, 7, five)), "f 1 2 3 4 5");
	ck_assert_str_eq(commands(fill(spread, 0, 0, 7, five)), "f 1 2 3;f 4 5");
	ck_assert_str_eq(commands(fill(none, 0, 0, 4, five)), "f;f");
	line.max_chars = 6;
	ck_assert_str_eq(commands(fill(line, 0, 0, 7, five)), "f 1 2;f 3 4;f 5");
	line.max_chars = 3;
	ck_assert_str_eq(commands(fill(line, 0, 0, 7, five)),
			 "argument 1 does not fit into a command of 3 bytes");
	struct arg_filling context = { .fill = ARG_FILL_SPREAD,
				       .jobs = 2,
				       .command = { .context = true } };
	ck_assert_str_eq(commands(fill(context, 0, 0, WORDS("f a{}b {#}", ":::", "1", "2", "3"))),
			 "f a1b a2b 1;f a3b 2");
	ck_assert_str_eq(commands(fill(two, 0, 0, WORDS("f {2}-{1}", ":::", "1", "2", "3"))),
			 "f 2-1;f -3");
}

TEST(columns_have_names_and_forms)
{
	ck_assert_str_eq(commands(fill(PLAIN, 1, 0,
				       WORDS("f {y/.} {x}", ":::", "x", "1", ":::", "y", "d/a.c"))),
			 "f a 1");
	ck_assert_str_eq(commands(fill(PLAIN, 0, 0, WORDS("f {-1} {x} {a,b} {}", ":::", "1"))),
			 "f 1 {x} {a,b} 1");
	struct arg_filling other = { .command = { .replace = ",," } };
	ck_assert_str_eq(commands(fill(other, 0, 0, WORDS("f ,, {} {.}", ":::", "a.b"))),
			 "f a.b {} a");
	ck_assert_str_eq(commands(fill(PLAIN, 0, 0, WORDS("f {= $_++ =}", ":::", "1"))),
			 "Perl expressions ({= ... =}) are not supported: use the shell");
}

TEST(parameters_are_put_in_as_they_are)
{
	AUTO(arg_sources_done) struct arg_sources params = ARG_SOURCES_INIT;
	struct arg_filling filling = { .params = &params };
	arg_source_list(arg_sources_append(&params, NULL), "opt", "-O1,-O2 -g,a\\,b");
	ck_assert_str_eq(commands(fill(filling, 0, 0, WORDS("cc {opt}"))),
			 "cc -O1;cc -O2 -g;cc a,b");
	ck_assert_int_eq(arg_source_scan(arg_sources_append(&params, NULL), "n", "0.5", "1.5",
					 "0.5", NULL),
			 0);
	struct line line = fill(filling, 0, 0, WORDS("f {opt} {n}"));
	ck_assert_uint_eq(line.orders.count, 9);
	ck_assert_str_eq(line.orders.items[1].shell, "f -O1 1.0");
	ck_assert_str_eq(line.orders.items[1].extra->arg_names.items[1], "n");
	ck_assert_str_eq(line.orders.items[1].extra->args.items[1], "1.0");
	orders_done(&line.orders);
}

TEST(a_scan_has_numbers_that_lead_somewhere)
{
	static const char *const bad[][3] = {
		{ "a", "2", "1" },
		{ "1", "2", "0" },
		{ "2", "1", "1" },
		{ "0", "1e9", "0.000001" },
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		AUTO(arg_sources_done) struct arg_sources params = ARG_SOURCES_INIT;
		ck_assert_int_lt(arg_source_scan(arg_sources_append(&params, NULL), "n", bad[i][0],
						 bad[i][1], bad[i][2], NULL),
				 0);
	}
	AUTO(arg_sources_done) struct arg_sources params = ARG_SOURCES_INIT;
	ck_assert_int_eq(
		arg_source_scan(arg_sources_append(&params, NULL), "n", "-2", "4", "3", NULL), 0);
	ck_assert_str_eq(show(&params.items[0].records), "[-2][1][4]");
}

/* ---- what the words mean ---- */

TEST(words_mean_one_thing)
{
	static const struct {
		struct batch_words_facts facts;
		enum batch_words meaning;
	} cases[] = {
		{ { .has_words = true, .is_list = true }, BATCH_WORDS_LISTS },
		{ { .has_words = true, .is_program = true }, BATCH_WORDS_STDIN_ARGS },
		{ { .has_words = true, .is_program = true, .measures = true },
		  BATCH_WORDS_COMMANDS },
		{ { .has_words = true, .is_list = true, .measures = true }, BATCH_WORDS_LISTS },
		{ { .has_words = true, .is_list = true, .is_program = true }, BATCH_WORDS_BOTH },
		{ { .has_words = true }, BATCH_WORDS_UNKNOWN },
		{ { .has_words = true, .has_sources = true, .is_list = true },
		  BATCH_WORDS_SOURCES },
		{ { .has_sources = true }, BATCH_WORDS_SOURCES },
		{ { .stdin_is_data = true }, BATCH_WORDS_STDIN_LIST },
		{ { .has_words = false }, BATCH_WORDS_NONE },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		ck_assert_int_eq(batch_words_decide(&cases[i].facts), cases[i].meaning);
}
