/* How ranks keep pace: clocks of other hosts. */
#include "unit.h"

#include "base/clock.h"
#include "core/pace/clock_offset.h"

#define APART ((int64_t)(20 * NS_PER_S))

/* A message that took `there_ns` to a peer whose clock is APART ahead, and `back_ns` back. */
static void sample(struct clock_offset *offset, uint64_t sent_ns, uint64_t there_ns,
		   uint64_t back_ns)
{
	clock_offset_add(offset, &(struct clock_sample){
					 .sent_ns = sent_ns,
					 .received_ns = sent_ns + there_ns + back_ns,
					 .peer_ns = sent_ns + there_ns + (uint64_t)APART,
				 });
}

static uint64_t distance(const struct clock_offset *offset)
{
	int64_t off = offset->shift_ns - APART;
	return (uint64_t)(off < 0 ? -off : off);
}

TEST(an_offset_is_unknown_before_the_first_sample)
{
	struct clock_offset offset = { .known = false };
	ck_assert_uint_eq(clock_offset_error_ns(&offset, 5), UINT64_MAX);
	ck_assert_uint_eq(clock_offset_wall(&offset, 1, 5).error_ns, 0);
}

TEST(an_offset_is_exact_when_both_ways_take_as_long)
{
	struct clock_offset offset = { .known = false };
	sample(&offset, 1000 * NS_PER_S, 100 * NS_PER_US, 100 * NS_PER_US);
	ck_assert_int_eq(offset.shift_ns, APART);
	ck_assert_uint_eq(clock_offset_error_ns(&offset, offset.when_ns), 100 * NS_PER_US);
	ck_assert_uint_eq(clock_offset_there(&offset, 7), 7 + (uint64_t)APART);
}

TEST(an_offset_is_wrong_by_less_than_its_error_however_uneven_the_ways)
{
	struct clock_offset offset = { .known = false };
	sample(&offset, NS_PER_S, 0, 30 * NS_PER_MS);
	ck_assert_uint_eq(distance(&offset), 15 * NS_PER_MS);
	ck_assert_uint_le(distance(&offset), clock_offset_error_ns(&offset, offset.when_ns));
}

TEST(a_sample_that_was_held_up_changes_nothing)
{
	struct clock_offset offset = { .known = false };
	sample(&offset, 10 * NS_PER_S, 100 * NS_PER_US, 100 * NS_PER_US);
	sample(&offset, 11 * NS_PER_S, 90 * NS_PER_MS, 100 * NS_PER_US);
	ck_assert_uint_eq(distance(&offset), 0);
	ck_assert_uint_eq(offset.half_ns, 100 * NS_PER_US);
}

TEST(an_old_sample_gives_way_when_clocks_may_have_drifted)
{
	struct clock_offset offset = { .known = false };
	sample(&offset, 10 * NS_PER_S, 100 * NS_PER_US, 100 * NS_PER_US);
	uint64_t error_ns = clock_offset_error_ns(&offset, offset.when_ns + 100 * NS_PER_S);
	ck_assert_uint_eq(error_ns, 100 * NS_PER_US + 10 * NS_PER_MS);
	sample(&offset, 110 * NS_PER_S, 4 * NS_PER_MS, 5 * NS_PER_MS);
	ck_assert_uint_ge(offset.when_ns, 110 * NS_PER_S);
}

TEST(a_sample_received_before_it_was_sent_is_ignored)
{
	struct clock_offset offset = { .known = false };
	clock_offset_add(&offset, &(struct clock_sample){ .sent_ns = 2, .received_ns = 1 });
	ck_assert(!offset.known);
}

TEST(a_peer_may_be_behind_and_claim_any_time)
{
	struct clock_offset offset = { .known = false };
	clock_offset_add(&offset, &(struct clock_sample){ .sent_ns = 50 * NS_PER_S,
							  .received_ns = 50 * NS_PER_S,
							  .peer_ns = 30 * NS_PER_S });
	ck_assert_int_eq(offset.shift_ns, -APART);
	clock_offset_add(&offset, &(struct clock_sample){ .sent_ns = 50 * NS_PER_S,
							  .received_ns = 50 * NS_PER_S,
							  .peer_ns = UINT64_MAX,
							  .peer_wall_shift_ns = INT64_MAX });
	ck_assert_uint_gt(clock_offset_wall(&offset, INT64_MIN, UINT64_MAX).error_ns, 0);
}

TEST(the_wall_clock_is_known_as_it_is_now)
{
	struct clock_offset offset = { .known = false };
	struct clock_sample at = { .sent_ns = NS_PER_S,
				   .received_ns = NS_PER_S + 2,
				   .peer_ns = 21 * NS_PER_S + 1,
				   .peer_wall_shift_ns = 100 };
	clock_offset_add(&offset, &at);
	ck_assert_int_eq(clock_offset_wall(&offset, 40, at.received_ns).offset_ns, APART + 60);
	/* Somebody sets the peer's clock: a slow answer tells of it as well. */
	at.received_ns += NS_PER_S;
	at.peer_wall_shift_ns = 100 + APART;
	clock_offset_add(&offset, &at);
	ck_assert_int_eq(clock_offset_wall(&offset, 40, at.received_ns).offset_ns, 2 * APART + 60);
	at.peer_wall_shift_ns = 0;
	clock_offset_add(&offset, &at);
	ck_assert_uint_eq(clock_offset_wall(&offset, 40, at.received_ns).error_ns, 0);
}
