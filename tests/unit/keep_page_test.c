/* What a worker keeps over a restart: after any death, a slot with a number is whole. */
#include "core/worker/keep_page.h"

#include <errno.h>
#include <string.h>

#include "core/rounds/kept.h"
#include "unit.h"

static struct keep_head head;

static void enter(uint64_t round, const struct keep_mark *mark)
{
	static const struct keep_mark none = { .committed = false };
	keep_enter(&head, 1, round, mark ? mark : &none);
}

static void save(uint64_t step)
{
	ck_assert_int_eq(keep_commit(&head, keep_begin(&head), step), 0);
}

static uint64_t newest_step(void)
{
	int slot = keep_newest(&head);
	ck_assert_int_ge(slot, 0);
	return keep_mark(&head, (size_t)slot).step;
}

TEST(the_last_two_commits_are_there)
{
	memset(&head, 0, sizeof(head));
	enter(1, NULL);
	ck_assert_int_eq(keep_newest(&head), -1);
	save(0);
	ck_assert_uint_eq(newest_step(), 0);
	for (uint64_t step = 1; step < 9; step++) {
		save(step);
		ck_assert_uint_eq(newest_step(), step);
		ck_assert_uint_eq(keep_mark(&head, 1 - (size_t)keep_newest(&head)).step, step - 1);
	}
}

TEST(what_is_being_written_does_not_count_and_the_newest_stays)
{
	memset(&head, 0, sizeof(head));
	enter(1, NULL);
	save(4);
	save(5);
	size_t slot = keep_begin(&head);
	ck_assert(!keep_mark(&head, slot).committed);
	ck_assert_uint_eq(newest_step(), 5);
	ck_assert_uint_eq(keep_begin(&head), slot);
	ck_assert_int_eq(keep_commit(&head, slot, 6), 0);
	ck_assert_uint_eq(newest_step(), 6);
}

TEST(a_round_begins_with_the_state_that_it_names_alone)
{
	memset(&head, 0, sizeof(head));
	enter(1, NULL);
	save(4);
	save(5);
	enter(2, &(struct keep_mark){ true, .step = 4, .epoch = 1, .round = 1 });
	ck_assert_uint_eq(newest_step(), 4);
	save(5);
	ck_assert_uint_eq(keep_mark(&head, (size_t)keep_newest(&head)).round, 2);
	enter(3, &(struct keep_mark){ true, .step = 5, .epoch = 1, .round = 1 });
	ck_assert_int_eq(keep_newest(&head), -1);
	save(1);
	enter(4, NULL);
	ck_assert_int_eq(keep_newest(&head), -1);
}

TEST(a_later_round_may_go_back_but_a_round_may_not)
{
	memset(&head, 0, sizeof(head));
	enter(1, NULL);
	save(7);
	ck_assert_int_eq(keep_commit(&head, keep_begin(&head), 7), -EINVAL);
	ck_assert_int_eq(keep_commit(&head, keep_begin(&head), 6), -EINVAL);
	ck_assert_int_eq(keep_commit(&head, keep_begin(&head), UINT64_MAX), -EINVAL);
	ck_assert_uint_eq(newest_step(), 7);
	enter(2, &(struct keep_mark){ true, .step = 7, .epoch = 1, .round = 1 });
	save(3);
	ck_assert_uint_eq(newest_step(), 3);
}

TEST(slots_begin_on_pages)
{
	ck_assert_uint_eq(keep_stride(1), 4096);
	ck_assert_uint_eq(keep_stride(4096), 4096);
	ck_assert_uint_eq(keep_stride(4097), 8192);
	ck_assert_uint_eq(keep_bytes(1), 3 * 4096);
	ck_assert_uint_lt(keep_bytes(KEEP_SIZE_MAX), UINT64_MAX / KEEP_NAMES_MAX);
}

#define NONE \
	{ \
		{ 0, 0 }, 0 \
	}

TEST(what_two_have_in_common_is_what_both_have)
{
	struct kept_state a[] = { { { 1, 2 }, 8 }, { { 1, 2 }, 7 } };
	const struct kept_state b[] = { { { 1, 2 }, 7 }, { { 1, 2 }, 6 } };
	kept_meet(a, b);
	ck_assert_uint_eq(a[0].step, 7);
	ck_assert(kept_is_none(&a[1]));
	const struct kept_state none[] = { NONE, NONE };
	kept_meet(a, none);
	ck_assert(kept_is_none(&a[0]) && kept_is_none(&a[1]));
}

TEST(a_later_round_is_newer_than_a_later_step)
{
	struct kept_state a[] = { { { 1, 2 }, 8 }, { { 1, 3 }, 2 } };
	const struct kept_state b[] = { { { 1, 3 }, 2 }, { { 1, 2 }, 8 } };
	kept_meet(a, b);
	ck_assert_uint_eq(a[0].step, 2);
	ck_assert_uint_eq(a[1].step, 8);
}
