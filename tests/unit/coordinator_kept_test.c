/* The coordinator: what restarts cost, and from which kept state a round goes on. */
#include "unit.h"

#include "coordinator_rig.h"

/* The round fails, and its two members come back; the first one's workers had reached a step. */
static void fail_at(uint64_t reached)
{
	report(1, MSG_FAILED);
	struct memory memory = memory_of(1);
	memory.heard = c.roster.heard;
	memory.member_of[0] = c.roster.heard.ballot;
	memory.reached = reached;
	join_with(1, &memory);
	memory = memory_of(2);
	memory.heard = c.roster.heard;
	memory.member_of[0] = c.roster.heard.ballot;
	memory.reached = reached / 2;
	join_with(2, &memory);
}

TEST(attempts_that_get_further_use_no_restart_up)
{
	max_restarts = 1;
	by_progress = true;
	begin_plain(2, 2);
	join_up_to(2);
	for (uint64_t step = 10; step < 60; step += 10) {
		fail_at(step);
		ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
		ck_assert_uint_eq(c.stall.attempts, 0);
	}
	ck_assert_uint_eq(c.restarts, 5);
	fail_at(50);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	ck_assert_uint_eq(c.stall.attempts, 1);
	fail_at(20);
	ck_assert_int_eq(c.ruling, RULING_FAILED);
	ck_assert(c.stalled);
	by_progress = false;
}

TEST(without_steps_a_budget_by_progress_is_a_plain_one)
{
	max_restarts = 2;
	by_progress = true;
	begin_plain(2, 2);
	join_up_to(2);
	fail_at(0);
	fail_at(0);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	ck_assert_uint_eq(c.restarts, 2);
	fail_at(0);
	ck_assert_int_eq(c.ruling, RULING_FAILED);
	by_progress = false;
}

TEST(a_new_coordinator_learns_how_far_the_attempts_got)
{
	struct memory memory = { .group_rank = -1, .restarts = 3, .stall = { 40, 2 } };
	max_restarts = 2;
	by_progress = true;
	begin_plain(2, 2);
	join_with(1, &memory);
	memory.restarts = 2;
	memory.stall = (struct stall){ 30, 1 };
	join_with(2, &memory);
	ck_assert_uint_eq(c.stall.reached, 40);
	ck_assert_uint_eq(c.stall.attempts, 2);
	by_progress = false;
}

/* The two members of the round come back, each with what its two workers have kept. */
static void fail_with(const struct kept *first, const struct kept *second)
{
	report(1, MSG_FAILED);
	const struct kept *kept[] = { first, second };
	for (uint64_t link = 1; link <= 2; link++) {
		struct memory memory = memory_of(link);
		memory.heard = c.roster.heard;
		memory.member_of[0] = c.roster.heard.ballot;
		memory.kept = *kept[link - 1];
		join_with(link, &memory);
	}
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
}

/* What the host with group rank `rank` of two has committed in round `of`. */
static struct kept keep(uint32_t rank, struct ballot of, uint64_t newer, uint64_t older)
{
	return (struct kept){ .states = { { of, newer }, { of, older } },
			      .rank_base = 2 * rank,
			      .world_size = 4 };
}

static void begin_keeping(void)
{
	max_restarts = 9;
	begin_plain(2, 2);
	join_up_to(2);
	ck_assert(kept_is_none(&c.kept));
}

TEST(a_round_goes_on_from_the_newest_state_that_all_ranks_have)
{
	begin_keeping();
	struct ballot first = c.roster.heard.ballot;
	struct kept ahead = keep(0, first, 8, 7), behind = keep(1, first, 7, 6);
	fail_with(&ahead, &behind);
	ck_assert_uint_eq(c.kept.step, 7);
	ck_assert(ballot_eq(c.kept.ballot, first));
	/* Neither has committed anything since. */
	ahead.states[0] = behind.states[0] = c.kept;
	ahead.states[1] = behind.states[1] = KEPT_STATE_NONE;
	fail_with(&ahead, &behind);
	ck_assert_uint_eq(c.kept.step, 7);
	ck_assert(ballot_eq(c.kept.ballot, first));
}

TEST(a_round_goes_on_from_nothing_if_one_rank_has_nothing)
{
	begin_keeping();
	struct kept one = keep(0, c.roster.heard.ballot, 8, 7), none = keep(1, BALLOT_NONE, 0, 0);
	fail_with(&one, &none);
	ck_assert(kept_is_none(&c.kept));
}

TEST(the_same_step_of_different_rounds_is_not_the_same_state)
{
	begin_keeping();
	struct ballot first = c.roster.heard.ballot;
	struct kept a = keep(0, first, 8, 7), b = keep(1, first, 8, 7);
	b.states[0].ballot.round++;
	fail_with(&a, &b);
	ck_assert_uint_eq(c.kept.step, 7);
	a = keep(0, first, 8, 6);
	b.states[1].step = 5;
	fail_with(&a, &b);
	ck_assert(kept_is_none(&c.kept));
}

TEST(state_of_other_ranks_does_not_count)
{
	begin_keeping();
	struct ballot first = c.roster.heard.ballot;
	struct kept a = keep(1, first, 8, 7), b = keep(0, first, 8, 7);
	fail_with(&a, &b);
	ck_assert(kept_is_none(&c.kept));
	a = keep(0, first, 8, 7);
	b = keep(1, first, 8, 7);
	a.world_size = b.world_size = 6;
	fail_with(&a, &b);
	ck_assert(kept_is_none(&c.kept));
}
