/* The coordinator: a coordinator after another, what it inherits, and rounds that reached too few.
 */
#include "unit.h"

#include <string.h>

#include "coordinator_rig.h"

TEST(a_takeover_needs_more_than_half_and_patience)
{
	struct memory memory = remembering((struct ballot){ 5, 4 }, 4);
	begin_takeover(4);
	join_with(1, &memory);
	join_with(2, &memory);
	wait_until(now_ns + 7 * NS_PER_S, 2);
	ck_assert_int_eq(c.state, COORDINATOR_GATHERING); /* half is not enough */
	join_with(3, &memory);
	ck_assert_int_eq(c.state, COORDINATOR_GATHERING); /* enough, but the old one may not know */
	wait_until(c.regather_ns + NS_PER_S, 3);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	ck_assert_int_gt(ballot_compare(c.roster.heard.ballot, (struct ballot){ 5, 4 }), 0);
}

TEST(a_takeover_forms_at_once_when_all_are_back)
{
	struct memory memory = remembering((struct ballot){ 5, 4 }, 2);
	begin_takeover(2);
	join_with(1, &memory);
	join_with(2, &memory);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
}

TEST(a_takeover_waits_for_a_coordinator_that_may_not_know_that_all_have_left)
{
	struct memory memory = remembering((struct ballot){ 5, 4 }, 2);
	begin_takeover(2);
	join_with(1, &memory);
	memory.joined_id = 77;
	join_with(2, &memory);
	ck_assert_int_eq(c.state, COORDINATOR_GATHERING);
	wait_until(c.moved_ns + NS_PER_MS, 2);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
}

TEST(what_a_spare_says_of_the_old_coordinator_does_not_count)
{
	struct memory member = remembering((struct ballot){ 5, 4 }, 2), spare = member;
	member.coordinator_in_heard = member.coordinator_died = true;
	memset(spare.member_of, 0, sizeof(spare.member_of)); /* it only heard of the round */
	begin_takeover(2);
	join_with(2, &spare);
	join_with(1, &member);
	wait_until(c.regather_ns + NS_PER_MS, 1);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
}

TEST(a_takeover_counts_the_old_coordinator_out_only_if_all_who_are_here_saw_it_die)
{
	struct memory memory = remembering((struct ballot){ 5, 4 }, 2);
	memory.coordinator_in_heard = true;
	begin_takeover(2);
	join_with(1, &memory);
	wait_until(c.regather_ns + NS_PER_MS, 1);
	ck_assert_int_eq(c.state, COORDINATOR_GATHERING);
	memory.coordinator_died = true;
	join_with(1, &memory);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
}

TEST(a_coordinator_declared_dead_when_a_round_formed_stays_dead_to_the_end)
{
	struct memory memory = remembering((struct ballot){ 5, 4 }, 2);
	memory.coordinator_in_heard = true;
	memory.coordinator_died = true;
	begin_takeover(2);
	join_with(1, &memory);
	ping(1, now_ns);
	report(1, MSG_DONE);
	join(1);
	ck_assert_int_eq(c.state, COORDINATOR_CLOSED);
	ck_assert_uint_eq(sent(MSG_CLOSED), 1);
}

TEST(a_ruling_is_inherited_from_a_coordinator_that_is_gone)
{
	struct memory memory = remembering((struct ballot){ 5, 4 }, 2);
	begin_takeover(2);
	join_with(1, &memory);
	memory.ruling = RULING_FAILED;
	join_with(2, &memory);
	ck_assert_int_eq(c.state, COORDINATOR_CLOSING);
	ck_assert_uint_eq(sent(MSG_STOP), 1);
	join_with(1, &memory);
	ck_assert_uint_eq(sent(MSG_CLOSED), 2);
}

TEST(a_member_that_comes_back_while_the_job_closes_gets_the_ruling)
{
	enter(COORDINATOR_CLOSING);
	struct memory memory = memory_of(2);
	link_down(2, true);
	join_with(2, &memory);
	ck_assert_uint_eq(sent(MSG_STOP), 1);
	ck_assert_int_eq(actions.items[0].msg.stop.ruling, RULING_DONE);
	join(1);
	ck_assert_int_eq(c.state, COORDINATOR_CLOSING);
	join(2);
	ck_assert_int_eq(c.state, COORDINATOR_CLOSED);
}

TEST(a_refusal_is_not_below_what_the_agent_has_heard_of)
{
	struct memory memory = remembering((struct ballot){ 5, 4 }, 2);
	begin_takeover(3);
	for (uint64_t link = 1; link <= 2; link++) {
		struct node_info node = node_of(link);
		node.node_rank = 0;
		receive(link, &(struct msg){ .type = MSG_JOIN,
					     .join = { .node = &node, .memory = memory } });
		memory.heard.ballot.round = 9;
	}
	ck_assert_uint_eq(sent(MSG_REFUSED), 1);
	ck_assert_uint_eq(actions.items[0].msg.ballot.round, 9);
}

TEST(a_closed_coordinator_stays_for_members_that_do_not_know_the_end)
{
	enter(COORDINATOR_CLOSED);
	leave(1, LEAVE_CLOSED, true);
	link_down(2, true);
	ck_assert(!did(COORDINATOR_FINISHED));
	join(2);
	ck_assert_uint_eq(sent(MSG_CLOSED), 1);
	leave(2, LEAVE_CLOSED, true);
	ck_assert(did(COORDINATOR_FINISHED));
}

TEST(a_minority_disconnects_its_members)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	config.quorum = QUORUM_MAJORITY;
	begin(&config, 1, 3);
	join_up_to(3);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	link_down(1, true);
	ck_assert_int_eq(c.state, COORDINATOR_STOPPING);
	link_down(2, true);
	ck_assert(did(COORDINATOR_HANG_UP));
	ck_assert_int_eq(c.state, COORDINATOR_GATHERING);
}

TEST(half_of_the_members_do_not_close_before_the_others_had_time_to_return)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	config.quorum = QUORUM_MAJORITY;
	begin(&config, 1, 2);
	join_up_to(2);
	for (uint64_t link = 1; link <= 2; link++) {
		ping(link, now_ns);
		report(link, MSG_DONE);
	}
	ck_assert_int_eq(c.state, COORDINATOR_CLOSING);
	link_down(2, true);
	join(1);
	ck_assert_int_eq(c.state, COORDINATOR_CLOSING);
	wait_until(c.tie_ns + NS_PER_MS, 1);
	ck_assert_int_eq(c.state, COORDINATOR_CLOSED);
}

/* A round {6, 5} that only agent 1 was told to start; all five were in its predecessor {5, 4}. */
static void join_after_lost_formed(uint64_t link, bool knows)
{
	struct ballot base = { 5, 4 }, heard = { 6, 5 };
	struct memory memory = remembering(base, 5);
	if (knows)
		memory_enter(&memory, &(struct round_ref){ heard, 5 },
			     &(struct round_ref){ base, 5 });
	join_with(link, &memory);
}

TEST(a_round_that_reached_too_few_members_does_not_stop_the_job)
{
	begin_takeover(5);
	for (uint64_t link = 1; link <= 5; link++)
		join_after_lost_formed(link, link == 1);
	ck_assert_int_eq(c.state, COORDINATOR_GATHERING); /* its workers may still run somewhere */
	wait_until(c.moved_ns + NS_PER_S, 5);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	ck_assert_uint_eq(c.roster.heard.ballot.round, 6);
	ck_assert_uint_eq(c.roster.heard.nodes, 5);
}

TEST(a_round_that_may_have_replaced_its_predecessor_is_not_void)
{
	begin_takeover(5);
	join_after_lost_formed(1, true);
	join_after_lost_formed(4, false);
	join_after_lost_formed(5, false);
	wait_until(c.moved_ns + NS_PER_S, 5);
	ck_assert_int_eq(c.state, COORDINATOR_GATHERING); /* 2 and 3 may run it */
	join_after_lost_formed(2, false);
	wait_until(c.moved_ns + NS_PER_S, 5);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
}

/* Of three members of the last round, agent 3 is a spare of the next one and agent 2 is lost. */
static void lose_one_and_run_with_a_spare(void)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	config.quorum = QUORUM_MAJORITY;
	begin(&config, 1, 3);
	join_up_to(3);
	wait_until(now_ns + 2 * NS_PER_S, 3);
	link_down(2, true);
	link_down(3, true);
	ck_assert_int_eq(c.state, COORDINATOR_GATHERING);
	join(1);
	c.min_nodes = c.max_nodes = 1; /* the next round has room for one */
	min_nodes = max_nodes = 1;
	join(3);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	ck_assert_uint_eq(c.roster.heard.nodes, 1);
	ck_assert_uint_eq(c.roster.base.nodes, 3);
}

TEST(a_job_closes_when_a_quorum_of_both_rounds_knows_its_end)
{
	lose_one_and_run_with_a_spare();
	struct memory spare = memory_of(3);
	report(1, MSG_DONE);
	join(1);
	ck_assert_int_eq(c.state, COORDINATOR_CLOSING); /* 2 and 3 could go on without 1 */
	ping(3, now_ns);
	ck_assert_uint_eq(sent(MSG_STOP), 1);
	spare.heard = c.roster.heard;
	spare.ruling = RULING_DONE;
	join_with(3, &spare);
	ck_assert_int_eq(c.state, COORDINATOR_CLOSED);
	ck_assert_uint_eq(sent(MSG_CLOSED), 2);
}

TEST(a_member_of_the_last_round_is_not_told_of_a_later_one_by_another_coordinator)
{
	begin_takeover(5);
	join_after_lost_formed(1, true);
	join_after_lost_formed(2, false);
	receive(2, &(struct msg){ .type = MSG_PING, .ballot = { 5, 4 } });
	ck_assert_uint_eq(actions.items[0].msg.pong.heard.ballot.epoch, 5);
}

TEST(the_ruling_on_a_round_that_reached_too_few_is_kept)
{
	struct round_ref base = { { 5, 4 }, 2 }, heard = { { 6, 5 }, 2 };
	struct memory aware = remembering(base.ballot, 2), unaware = aware;
	begin_takeover(2);
	memory_enter(&aware, &heard, &base);
	aware.ruling = RULING_FAILED;
	join_with(1, &aware);
	join_with(2, &unaware);
	wait_until(c.moved_ns + NS_PER_S, 2);
	ck_assert_int_eq(c.state, COORDINATOR_CLOSING);
	ck_assert_int_eq(c.ruling, RULING_FAILED);
	unaware.heard = heard;
	unaware.ruling = RULING_FAILED;
	join_with(2, &unaware);
	ck_assert_int_eq(c.state, COORDINATOR_CLOSED);
}

TEST(only_members_of_a_round_confirm_it)
{
	begin_takeover(3);
	struct memory memory = remembering((struct ballot){ 5, 4 }, 3);
	join_with(1, &memory);
	memory_enter(&memory, &(struct round_ref){ { 6, 5 }, 3 }, &memory.base);
	join_with(2, &memory);
	struct memory spare = remembering((struct ballot){ 5, 4 }, 3);
	spare.heard = memory.heard;
	join_with(3, &spare);
	ck_assert_uint_eq(c.roster.base.ballot.epoch, 5);
	join_with(1, &memory);
	ck_assert_uint_eq(c.roster.base.ballot.epoch, 6);
}

TEST(a_first_round_that_reached_too_few_forms_again)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	config.quorum = QUORUM_MAJORITY;
	begin(&config, 1, 3);
	join_up_to(3);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	for (uint64_t link = 2; link <= 3; link++)
		link_down(link, true);
	ck_assert_int_eq(c.state, COORDINATOR_GATHERING);
	join(1);
	struct memory none = { .group_rank = -1 };
	join_with(2, &none);
	ping(2, now_ns);
	ck_assert(ballot_is_none(actions.items[0].msg.pong.heard.ballot)); /* it is not told */
	ck_assert_int_eq(c.state, COORDINATOR_GATHERING);
	join_with(3, &none);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	ck_assert_uint_eq(c.roster.heard.ballot.round, 2);
}

/* Of three members one falls silent while the others wait for it with their workers gone: as soon
 * as its lease has expired, they form the next round. */
static void enter_just_before_a_round_forms(void)
{
	max_restarts = 1;
	begin_plain(2, 3);
	join_up_to(3);
	uint64_t since_ns = now_ns;
	report(1, MSG_FAILED);
	join(1);
	join(2);
	wait_until(since_ns + 5 * NS_PER_S - 10 * NS_PER_MS, 2);
	ck_assert_int_eq(c.state, COORDINATOR_STOPPING);
	now_ns += 20 * NS_PER_MS;
}

TEST(a_round_that_is_due_does_not_form_when_the_event_names_another_coordinator)
{
	enter_just_before_a_round_forms();
	timer();
	ck_assert_uint_eq(sent(MSG_FORMED), 2);
	coordinator_done(&c);
	enter_just_before_a_round_forms();
	apply(SUPERSEDED);
	ck_assert_uint_eq(sent(MSG_FORMED), 0);
	ck_assert_int_eq(c.state, COORDINATOR_DEPOSED);
	coordinator_done(&c);
	enter_just_before_a_round_forms();
	apply(HIGHER_BALLOT);
	ck_assert_uint_eq(sent(MSG_FORMED), 0);
	ck_assert_int_eq(c.state, COORDINATOR_DEPOSED);
	coordinator_done(&c);
	enter_just_before_a_round_forms();
	struct memory memory = remembering((struct ballot){ UINT32_MAX, 1 }, 2);
	join_with(4, &memory);
	ck_assert_uint_eq(sent(MSG_FORMED), 0);
	ck_assert_int_eq(c.state, COORDINATOR_DEPOSED);
}

/* FORMED of the first round came, and the coordinator died before it heard so. */
TEST(the_coordinator_of_two_may_die_right_after_the_first_round_has_formed)
{
	struct ballot first = { 5, 1 };
	struct memory memory = remembering(first, 2);
	memory.base = (struct round_ref){ .nodes = 0 };
	memory.coordinator_in_heard = true;
	begin_takeover(2);
	join_with(1, &memory);
	wait_until(c.regather_ns + NS_PER_MS, 1);
	ck_assert_int_eq(c.state, COORDINATOR_GATHERING);
	memory.coordinator_died = true;
	join_with(1, &memory);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	ping(1, now_ns);
	ck_assert(ballot_eq(c.roster.base.ballot, c.roster.heard.ballot));
	report(1, MSG_DONE);
	join(1);
	wait_until(c.tie_ns + NS_PER_MS, 1);
	ck_assert_int_eq(c.state, COORDINATOR_CLOSED);
}

static uint32_t told_missing(uint64_t link)
{
	ping(link, now_ns);
	return actions.items[0].msg.pong.missing;
}

TEST(agents_are_told_how_many_are_missing_for_a_majority)
{
	begin_takeover(5);
	join(1);
	ck_assert_uint_eq(told_missing(1), 2);
	join(2);
	ck_assert_uint_eq(told_missing(1), 1);
	join(3);
	ck_assert_uint_eq(told_missing(1), 0);
	coordinator_done(&c);
	begin_takeover(5);
	struct memory memory = remembering((struct ballot){ 5, 4 }, 4);
	join_with(1, &memory);
	ck_assert_uint_eq(told_missing(1), 2);
	join(7); /* a newcomer does not count */
	ck_assert_uint_eq(told_missing(1), 2);
}
