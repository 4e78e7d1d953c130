/* The coordinator: whether the job hangs, and who is told to find out why. */
#include "unit.h"

#include "coordinator_rig.h"

static void begin_round(void)
{
	enter(COORDINATOR_RUNNING);
	for (size_t i = 0; i < c.roster.count; i++)
		c.roster.members[i]->can = CAN_ALL;
}

static void tell(uint64_t link, struct hang_signs signs, bool looked)
{
	receive(link, &(struct msg){ .type = MSG_SIGNS,
				     .ballot = c.roster.heard.ballot,
				     .signs = { .signs = signs, .looked = looked } });
}

static const struct hang_signs silent = { .silence = HANG_SILENT }, fine,
			       broken = { .broken = HANG_SILENT };

TEST(the_host_that_makes_the_silence_complete_is_told_once)
{
	begin_round();
	tell(1, silent, false);
	ck_assert_uint_eq(sent(MSG_LOOK), 0);
	tell(2, silent, false);
	ck_assert_uint_eq(sent(MSG_LOOK), 1);
	ck_assert_uint_eq(actions.items[0].link, 2);
	ck_assert_int_eq(actions.items[0].msg.look.kind, HANG_GROUP);
	ck_assert(!actions.items[0].msg.look.blame.named);
	tell(1, (struct hang_signs){ .silence = HANG_LONG }, false);
	ck_assert_uint_eq(sent(MSG_LOOK), 0);
}

TEST(a_host_whose_workers_go_on_again_ends_the_silence)
{
	begin_round();
	tell(1, silent, false);
	tell(1, fine, false);
	tell(2, silent, false);
	ck_assert_uint_eq(sent(MSG_LOOK), 0);
	tell(1, silent, false);
	ck_assert_uint_eq(sent(MSG_LOOK), 1);
	tell(2, fine, false);
	tell(2, silent, false); /* a second one */
	ck_assert_uint_eq(sent(MSG_LOOK), 1);
}

TEST(a_look_that_found_nothing_is_repeated_when_the_host_asks)
{
	struct hang_signs stalled = { .stalled = HANG_SILENT };
	begin_round();
	tell(1, stalled, false);
	tell(2, stalled, false);
	ck_assert_int_eq(actions.items[0].msg.look.kind, HANG_RECORDS);
	tell(2, stalled, true);
	ck_assert_uint_eq(sent(MSG_LOOK), 1);
	tell(2, fine, true);
	ck_assert_uint_eq(sent(MSG_LOOK), 0);
}

TEST(a_broken_promise_is_looked_into_where_it_is)
{
	struct hang_signs excuse = { .excuse = true };
	begin_round();
	tell(2, excuse, false);
	tell(1, broken, false);
	ck_assert_uint_eq(sent(MSG_LOOK), 0);
	tell(2, fine, false); /* the excuse is gone */
	ck_assert_uint_eq(sent(MSG_LOOK), 1);
	ck_assert_uint_eq(actions.items[0].link, 1);
	ck_assert_int_eq(actions.items[0].msg.look.kind, HANG_PROMISE);
}

TEST(a_host_that_is_done_keeps_no_job_alive)
{
	begin_round();
	tell(1, silent, false);
	report(2, MSG_DONE);
	ck_assert_uint_eq(sent(MSG_LOOK), 1);
	ck_assert_uint_eq(actions.items[0].link, 1);
}

TEST(the_host_of_the_culprit_is_told_to_end_it)
{
	begin_round();
	tell(1, silent, false);
	tell(2, silent, false);
	receive(2,
		&(struct msg){ .type = MSG_FOUND,
			       .ballot = c.roster.heard.ballot,
			       .found = { .kind = HANG_GROUP,
					  .blame = { .rank = 1, .text = "rank 1 is stopped" } } });
	ck_assert_uint_eq(sent(MSG_LOOK), 1);
	ck_assert_uint_eq(actions.items[0].link, 1);
	ck_assert(actions.items[0].msg.look.blame.named);
	ck_assert_str_eq(actions.items[0].msg.look.blame.text, "rank 1 is stopped");
}

TEST(a_rank_of_nobody_is_ended_where_it_was_found)
{
	begin_round();
	receive(2, &(struct msg){ .type = MSG_FOUND,
				  .ballot = c.roster.heard.ballot,
				  .found = { .kind = HANG_GROUP, .blame = { .rank = 77 } } });
	ck_assert_uint_eq(sent(MSG_LOOK), 1);
	ck_assert_uint_eq(actions.items[0].link, 2);
}

TEST(signs_of_another_round_or_of_an_old_host_count_for_nothing)
{
	begin_round();
	tell(1, silent, false);
	struct ballot old = c.roster.heard.ballot;
	old.round += 5;
	receive(2, &(struct msg){ .type = MSG_SIGNS, .ballot = old, .signs = { .signs = silent } });
	ck_assert_uint_eq(sent(MSG_LOOK), 0);
	c.roster.members[0]->can = c.roster.members[1]->can = CAN_ASK;
	tell(2, silent, false);
	ck_assert_uint_eq(sent(MSG_LOOK), 0);
}
