#include "unit.h"

#include "core/batch/reorder.h"

TEST(those_that_end_early_wait_for_their_turn)
{
	AUTO(reorder_done) struct reorder order = REORDER_INIT;
	ck_assert_uint_eq(reorder_end(&order, 1), 0);
	ck_assert_uint_eq(reorder_end(&order, 3), 0);
	ck_assert_uint_eq(reorder_end(&order, 0), 2);
	ck_assert_uint_eq(order.next, 2);
	ck_assert_uint_eq(reorder_end(&order, 2), 2);
	ck_assert_uint_eq(reorder_end(&order, 2), 0);
}

TEST(memory_is_for_those_that_wait)
{
	AUTO(reorder_done) struct reorder order = REORDER_INIT;
	for (size_t i = 0; i < 100000; i++)
		ck_assert_uint_eq(reorder_end(&order, i ^ 1), i & 1 ? 2 : 0);
	ck_assert_uint_eq(order.next, 100000);
	ck_assert_uint_le(order.cap, 64);
	for (size_t i = 100001; i < 101001; i++)
		ck_assert_uint_eq(reorder_end(&order, i), 0);
	ck_assert_uint_eq(reorder_end(&order, 100000), 1001);
}

TEST(room_is_made_for_a_number_far_ahead_of_a_window_that_has_moved)
{
	AUTO(reorder_done) struct reorder order = REORDER_INIT;
	for (size_t i = 0; i < 64; i++)
		reorder_end(&order, i);
	ck_assert_uint_eq(reorder_end(&order, 126), 0); /* 63 behind the next one */
	ck_assert_uint_eq(order.cap, 64);
	ck_assert_uint_eq(order.base, 64);
	ck_assert_uint_eq(reorder_end(&order, 127), 0);
	ck_assert_uint_eq(order.cap, 64);
	ck_assert_uint_eq(reorder_end(&order, 128), 0);
	ck_assert_uint_eq(order.cap, 128);
}
