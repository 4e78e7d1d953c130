#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "proto/args/blocks.h"

/* The blocks of a text, each in brackets. */
static const char *cut(const struct block_rules *rules, const char *text)
{
	static struct buf all;
	AUTO(buf_done) struct buf block = BUF_INIT;
	struct block_cutter cutter;
	struct err err = ERR_INIT;
	size_t at = 0, len = strlen(text);
	int r;
	buf_clear(&all);
	ck_assert_int_eq(block_cutter_init(&cutter, rules, &err), 0);
	while ((r = block_cutter_next(&cutter, &block, &err)) >= 0) {
		size_t wants = block_cutter_wants(&cutter), left = len - at;
		if (r > 0)
			buf_printf(&all, "[%s]", buf_str(&block));
		else if (block_cutter_over(&cutter))
			break;
		else if (left == 0)
			block_cutter_end(&cutter);
		else
			buf_append(&cutter.in, text + at, MIN(wants, left));
		at += r > 0 ? 0 : MIN(wants, left);
	}
	ck_assert_int_eq(r, 0);
	block_cutter_done(&cutter);
	return buf_str(&all);
}

TEST(a_block_ends_with_the_last_record_that_fits)
{
	ck_assert_str_eq(cut(&(struct block_rules){ .size = 10 },
			     "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"),
			 "[1\n2\n3\n4\n5\n][6\n7\n8\n9\n][10\n]");
	ck_assert_str_eq(cut(&(struct block_rules){ .size = 4 }, "a\nb"), "[a\nb]");
	ck_assert_str_eq(cut(&(struct block_rules){ .size = 4 }, ""), "");
}

TEST(a_record_that_is_longer_than_a_block_stays_whole)
{
	ck_assert_str_eq(cut(&(struct block_rules){ .size = 3 }, "aaaaaaaaaaaaaaaaaa\nb\nc\n"),
			 "[aaaaaaaaaaaaaaaaaa\nb\nc\n]");
}

TEST(without_separators_a_block_ends_anywhere_and_none_is_removed)
{
	ck_assert_str_eq(cut(&(struct block_rules){ .size = 2, .recend = "", .remove = true },
			     "a\nb"),
			 "[a\n][b]");
}

TEST(records_may_be_counted_and_be_lines)
{
	ck_assert_str_eq(cut(&(struct block_rules){ .records = 2 }, "1\n2\n3\n4\n5\n"),
			 "[1\n2\n][3\n4\n][5\n]");
	ck_assert_str_eq(cut(&(struct block_rules){ .lines = 2, .size = 9 }, "1\n2\n3\n4\n5\n"),
			 "[1\n2\n3\n4\n][5\n]");
	ck_assert_str_eq(cut(&(struct block_rules){ .lines = 2, .records = 2 }, "1\n2\n3\n4\n5\n"),
			 "[1\n2\n3\n4\n][5\n]");
}

TEST(records_begin_and_end_as_told)
{
	static const char text[] = "/foo, bar/, /baz, qux/, ";
	ck_assert_str_eq(cut(&(struct block_rules){ .records = 1, .recend = ", " }, text),
			 "[/foo, ][bar/, ][/baz, ][qux/, ]");
	ck_assert_str_eq(cut(&(struct block_rules){ .records = 1, .recstart = "/" }, text),
			 "[/foo, bar][/, ][/baz, qux][/, ]");
	ck_assert_str_eq(cut(&(struct block_rules){ .records = 1, .recend = ", ", .recstart = "/" },
			     text),
			 "[/foo, bar/, ][/baz, qux/, ]");
	ck_assert_str_eq(cut(&(struct block_rules){ .size = 3, .recend = "" }, "abcdefg"),
			 "[abc][def][g]");
	ck_assert_str_eq(cut(&(struct block_rules){ .records = 1, .recend = "\\t" }, "a\tb"),
			 "[a\t][b]");
}

TEST(separators_may_be_regular_expressions_and_left_out)
{
	ck_assert_str_eq(cut(&(struct block_rules){ .records = 1, .recend = ",_+", .regexp = true },
			     "foo,bar,_baz,__qux,"),
			 "[foo,bar,_][baz,__][qux,]");
	ck_assert_str_eq(cut(&(struct block_rules){ .records = 1,
						    .recend = ",_+",
						    .regexp = true,
						    .remove = true },
			     "foo,bar,_baz,__qux,"),
			 "[foo,bar][baz][qux,]");
	ck_assert_str_eq(cut(&(struct block_rules){ .records = 1,
						    .recend = "\\d(?:;|,\\s)",
						    .regexp = true },
			     "ad,1, b;2;c"),
			 "[ad,1, ][b;2;][c]");
	ck_assert_str_eq(cut(&(struct block_rules){ .records = 2,
						    .recend = ", ",
						    .recstart = "/",
						    .remove = true },
			     "/a, /b, /c, /d"),
			 "[ab][cd]");
}

TEST(the_header_comes_first_in_every_block)
{
	ck_assert_str_eq(cut(&(struct block_rules){ .size = 6, .header = ":" },
			     "head\n1\n2\n3\n4\n5\n6\n7\n"),
			 "[head\n1\n2\n3\n][head\n4\n5\n6\n][head\n7\n]");
	ck_assert_str_eq(cut(&(struct block_rules){ .records = 1, .header = "2" }, "a\nb\n1\n2\n"),
			 "[a\nb\n1\n][a\nb\n2\n]");
	ck_assert_str_eq(cut(&(struct block_rules){ .records = 2, .header = "(%.*\\n)*" },
			     "%a\n%b\n1\n2\n3\n"),
			 "[%a\n%b\n1\n2\n][%a\n%b\n3\n]");
	ck_assert_str_eq(cut(&(struct block_rules){ .size = 3, .recend = "", .header = ".{4}" },
			     "HHHHAAABBBCC"),
			 "[HHHHAAA][HHHHBBB][HHHHCC]");
	ck_assert_str_eq(cut(&(struct block_rules){ .header = ":" }, "only\n"), "");
}

TEST(rules_without_records_are_refused)
{
	struct block_cutter cutter;
	struct err err = ERR_INIT;
	struct block_rules none = { .records = 2, .recend = "" };
	ck_assert_int_eq(block_cutter_init(&cutter, &none, &err), -EINVAL);
	struct block_rules bad = { .recend = "(", .regexp = true };
	ck_assert_int_eq(block_cutter_init(&cutter, &bad, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.msg, "--recend"));
}
