#include "unit.h"

#include "base/clock.h"
#include "core/worker/hang.h"

#define S NS_PER_S
static uint64_t since_ns;

TEST(silence_counts_from_the_last_sign_of_life_and_is_told_once)
{
	struct hang_policy policy = { .silent_ns = 10 * S };
	struct hang hang;
	hang_begin(&hang, 100 * S);
	ck_assert_int_eq(hang_look(&hang, &policy, 0, false, 105 * S, &since_ns), HANG_NONE);
	ck_assert_int_eq(hang_look(&hang, &policy, 7, false, 109 * S, &since_ns), HANG_NONE);
	ck_assert_int_eq(hang_look(&hang, &policy, 7, false, 118 * S, &since_ns), HANG_NONE);
	ck_assert_int_eq(hang_look(&hang, &policy, 7, false, 119 * S, &since_ns), HANG_SILENT);
	ck_assert_uint_eq(since_ns, 109 * S);
	ck_assert_int_eq(hang_look(&hang, &policy, 7, false, 150 * S, &since_ns), HANG_NONE);
	ck_assert_int_eq(hang_look(&hang, &policy, 8, false, 151 * S, &since_ns), HANG_NONE);
	ck_assert_int_eq(hang_look(&hang, &policy, 8, false, 161 * S, &since_ns), HANG_SILENT);
}

TEST(a_start_has_a_time_of_its_own)
{
	struct hang_policy policy = { .silent_ns = 5 * S, .start_ns = 60 * S };
	struct hang slow, mute;
	hang_begin(&slow, 0);
	hang_begin(&mute, 0);
	ck_assert_int_eq(hang_look(&slow, &policy, 0, false, 59 * S, &since_ns), HANG_NONE);
	ck_assert_int_eq(hang_look(&slow, &policy, 1, false, 60 * S, &since_ns), HANG_NONE);
	ck_assert_int_eq(hang_look(&slow, &policy, 1, false, 65 * S, &since_ns), HANG_SILENT);
	ck_assert_int_eq(hang_look(&mute, &policy, 0, false, 60 * S, &since_ns), HANG_START);
}

TEST(a_pause_is_not_silence)
{
	struct hang_policy policy = { .silent_ns = 10 * S, .uninterruptible_ns = 20 * S };
	struct hang hang;
	hang_begin(&hang, 0);
	ck_assert_int_eq(hang_look(&hang, &policy, 1, true, 5 * S, &since_ns), HANG_NONE);
	hang_pause(&hang, 100 * S);
	ck_assert_int_eq(hang_look(&hang, &policy, 1, true, 114 * S, &since_ns), HANG_NONE);
	ck_assert_int_eq(hang_look(&hang, &policy, 1, true, 115 * S, &since_ns), HANG_SILENT);
	ck_assert_uint_eq(since_ns, 105 * S);
}

TEST(uninterruptible_sleep_must_last_without_a_break)
{
	struct hang_policy policy = { .uninterruptible_ns = 10 * S };
	struct hang hang;
	hang_begin(&hang, 0);
	ck_assert_int_eq(hang_look(&hang, &policy, 1, true, 1 * S, &since_ns), HANG_NONE);
	ck_assert_int_eq(hang_look(&hang, &policy, 2, false, 5 * S, &since_ns), HANG_NONE);
	ck_assert_int_eq(hang_look(&hang, &policy, 3, true, 6 * S, &since_ns), HANG_NONE);
	ck_assert_int_eq(hang_look(&hang, &policy, 3, true, 15 * S, &since_ns), HANG_NONE);
	ck_assert_int_eq(hang_look(&hang, &policy, 3, true, 16 * S, &since_ns),
			 HANG_UNINTERRUPTIBLE);
	ck_assert_uint_eq(since_ns, 6 * S);
}

TEST(nothing_asked_for_means_no_looking)
{
	ck_assert_uint_eq(hang_period_ns(&(struct hang_policy){ 0 }), 0);
	ck_assert_uint_eq(
		hang_period_ns(&(struct hang_policy){ .start_ns = 5 * S, .silent_ns = 600 * S }),
		S / 2);
	ck_assert_uint_eq(hang_period_ns(&(struct hang_policy){ .silent_ns = 3600 * S }), S);
}

TEST(a_worker_that_is_not_stuck_is_never_said_to_be)
{
	struct hang_policy policy = { .uninterruptible_ns = 10 * S };
	struct hang hang;
	hang_begin(&hang, 100 * S);
	ck_assert_int_eq(hang_look(&hang, &policy, 1, false, 200 * S, &since_ns), HANG_NONE);
	ck_assert_uint_eq(since_ns, 200 * S);
}
