#include "unit.h"

#include "core/batch/turns.h"

TEST(those_that_end_early_wait_for_their_turn)
{
	AUTO(turns_done) struct turns turns = TURNS_INIT;
	ck_assert_uint_eq(turns_end(&turns, 1), 0);
	ck_assert_uint_eq(turns_end(&turns, 3), 0);
	ck_assert_uint_eq(turns_end(&turns, 0), 2);
	ck_assert_uint_eq(turns.next, 2);
	ck_assert_uint_eq(turns_end(&turns, 2), 2);
	ck_assert_uint_eq(turns_end(&turns, 2), 0);
}

TEST(memory_is_for_those_that_wait)
{
	AUTO(turns_done) struct turns turns = TURNS_INIT;
	for (size_t i = 0; i < 100000; i++)
		ck_assert_uint_eq(turns_end(&turns, i ^ 1), i & 1 ? 2 : 0);
	ck_assert_uint_eq(turns.next, 100000);
	ck_assert_uint_le(turns.cap, 64);
	for (size_t i = 100001; i < 101001; i++)
		ck_assert_uint_eq(turns_end(&turns, i), 0);
	ck_assert_uint_eq(turns_end(&turns, 100000), 1001);
}
