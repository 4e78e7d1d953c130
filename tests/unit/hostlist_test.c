#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "core/host/hostlist.h"

/* The names with blanks between them, or "error: …". */
static const char *expand_some(const char *text, size_t limit)
{
	static char names_text[4096];
	AUTO(strv_done) struct strv names = STRV_INIT;
	AUTO(buf_done) struct buf out = BUF_INIT;
	struct err err = ERR_INIT;
	uint32_t count;
	if (hostlist_expand(text, limit, &names, &count, &err) < 0) {
		buf_printf(&out, "error: %s", err.msg);
	} else {
		ck_assert_uint_eq(names.count, MIN(limit, count));
		for (size_t i = 0; i < names.count; i++)
			buf_printf(&out, "%s%s", i ? " " : "", names.items[i]);
	}
	snprintf(names_text, sizeof(names_text), "%s", buf_str(&out));
	return names_text;
}

static const char *expand(const char *text)
{
	return expand_some(text, SIZE_MAX);
}

TEST(plain_names_are_taken_as_they_are)
{
	ck_assert_str_eq(expand("node1"), "node1");
	ck_assert_str_eq(expand("a.example,b-2"), "a.example b-2");
	ck_assert_str_eq(expand("a,,a,"), "a a");
}

TEST(ranges_keep_the_width_of_their_lower_end)
{
	ck_assert_str_eq(expand("n[1-3,7]"), "n1 n2 n3 n7");
	ck_assert_str_eq(expand("n[08-11]"), "n08 n09 n10 n11");
	ck_assert_str_eq(expand("n[9-11,009]"), "n9 n10 n11 n009");
	ck_assert_str_eq(expand("n[8-010]"), "n8 n9 n10");
	ck_assert_str_eq(expand("[1-3]"), "1 2 3");
}

TEST(several_brackets_count_in_slurms_order)
{
	ck_assert_str_eq(expand("a[1-2,07]b[2-3],c"), "a1b2 a1b3 a2b2 a2b3 a07b2 a07b3 c");
	ck_assert_str_eq(expand("a[1-2]b[3-4]c[5-6]"),
			 "a1b3c5 a1b3c6 a2b3c5 a2b3c6 a1b4c5 a1b4c6 a2b4c5 a2b4c6");
	ck_assert_str_eq(expand("a[1-2][3-4]"), "a13 a14 a23 a24");
	ck_assert_str_eq(expand("a[1-2]-ib"), "a1-ib a2-ib");
}

TEST(a_few_names_of_a_hundred_thousand_are_cheap_and_all_are_counted)
{
	AUTO(strv_done) struct strv names = STRV_INIT;
	uint32_t count;
	ck_assert_int_eq(hostlist_expand("r[001-100]n[0001-1000]", 2, &names, &count, NULL), 0);
	ck_assert_uint_eq(count, 100000);
	ck_assert_uint_eq(names.count, 2);
	ck_assert_str_eq(names.items[1], "r001n0002");
	ck_assert_int_eq(hostlist_expand("n[1-100000]", SIZE_MAX, &names, &count, NULL), 0);
	ck_assert_uint_eq(names.count, 2 + 100000);
	ck_assert_str_eq(names.items[100001], "n100000");
}

TEST(what_is_not_a_host_list_is_refused_by_name)
{
	ck_assert_str_eq(expand(""), "error: the list of hosts is empty");
	ck_assert_str_eq(expand(","), "error: the list of hosts is empty");
	ck_assert_str_eq(expand("a[3-1]"), "error: '3-1': a range that ends before it begins");
	ck_assert_str_eq(expand("a[]"), "error: '': not a number or a range of numbers");
	ck_assert_str_eq(expand("a[1-]"), "error: '1-': not a number or a range of numbers");
	ck_assert_str_eq(expand("a[b,1]"), "error: 'b': not a number or a range of numbers");
	ck_assert_str_eq(expand("a[1-2]b[1"), "error: 'a[1-2]b[1': a bracket that is not closed");
	ck_assert_str_eq(expand("a1]"), "error: 'a1]': not the name of a host");
	ck_assert_str_eq(expand("a b"), "error: 'a b': not the name of a host");
	ck_assert_str_eq(expand("a[1-1000001]"), "error: '1-1000001': too many hosts");
	ck_assert_str_eq(expand("a[1-2000]b[1-2000]"),
			 "error: 'a[1-2000]b[1-2000]': too many hosts");
	ck_assert_str_eq(expand("a[1-600000],b[1-600000]"), "error: 'b[1-600000]': too many hosts");
	ck_assert_str_eq(expand("a[1][1][1][1][1][1][1][1][1]"),
			 "error: 'a[1][1][1][1][1][1][1][1][1]': too many brackets");
	ck_assert_str_eq(expand("a[1234567890123456789]"),
			 "error: '1234567890123456789': not a number or a range of numbers");
}
