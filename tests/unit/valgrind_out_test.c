#include "unit.h"

#include <errno.h>
#include <string.h>

#include "proto/valgrind_out.h"

static int parse(const char *text, uint64_t *ret_count)
{
	return valgrind_out_instructions(text, strlen(text), ret_count, NULL);
}

TEST(totals_of_both_tools_are_read)
{
	uint64_t count = 0;
	ck_assert_int_eq(parse("cmd: a\nevents: Ir\nfl=x\nfn=y\n1 2\nsummary: 300130739\n", &count),
			 0);
	ck_assert_uint_eq(count, 300130739);
	ck_assert_int_eq(
		parse("events: Ir Dr\nsummary: 1 2\nfn=y\n1 2 3\ntotals: 126469 7\n", &count), 0);
	ck_assert_uint_eq(count, 126469);
	ck_assert_int_eq(parse("events: Dr Ir\nsummary: 1 22", &count), 0);
	ck_assert_uint_eq(count, 22);
}

TEST(a_file_cut_short_has_no_total_and_garbage_no_counts)
{
	uint64_t count = 1;
	ck_assert_int_eq(parse("events: Ir\nfl=x\n1 2\n", &count), -ENODATA);
	ck_assert_int_eq(parse("events: Ir\nsummary: \n", &count), -ENODATA);
	ck_assert_int_eq(parse("events: Ir\nsummary: 99999999999999999999999999999\n", &count),
			 -ENODATA);
	ck_assert_int_eq(parse("summary: 5\n", &count), -EINVAL);
	ck_assert_int_eq(parse("events: Dr\nsummary: 5\n", &count), -EINVAL);
	ck_assert_int_eq(parse("", &count), -EINVAL);
	ck_assert_uint_eq(count, 1);
}
