/* Leaving and saving together: the coordinator, with members that vote as the test wants. */
#include "unit.h"

#include "coordinator_rig.h"

/* Members 1 and 2; the second may be of a version that does not know of plans. */
static void run_round_with(bool second_plans)
{
	coordinator_done(&c);
	begin_plain(2, 2);
	for (uint64_t link = 1; link <= 2; link++) {
		struct node_info node = node_of(link);
		node.can = link == 1 || second_plans ? CAN_PLAN : 0;
		receive(link,
			&(struct msg){ .type = MSG_JOIN,
				       .join = { .node = &node, .memory = memory_of(link) } });
	}
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
}

static void run_round(void)
{
	run_round_with(true);
}

static void notice(uint64_t link, enum plan_kind kind)
{
	receive(link, &(struct msg){ .type = MSG_NOTICE,
				     .ballot = c.roster.heard.ballot,
				     .notice = { kind, 30 * NS_PER_S } });
}

static void vote(uint64_t link, uint64_t at)
{
	const struct stop_plan *plan = &c.accord.plan;
	receive(link, &(struct msg){ .type = MSG_VOTE,
				     .ballot = c.roster.heard.ballot,
				     .vote = { plan->serial, plan->phase, plan->step, at } });
}

/* What all members were told in the last step; NULL: nothing, or not all the same. */
static const struct stop_plan *told(void)
{
	const struct stop_plan *plan = NULL;
	uint32_t count = 0;
	for (size_t i = 0; i < actions.count; i++) {
		const struct msg *msg = &actions.items[i].msg;
		if (actions.items[i].type != COORDINATOR_SEND || msg->type != MSG_PLAN)
			continue;
		if (plan && !plan_eq(plan, &msg->plan.plan))
			return NULL;
		plan = &msg->plan.plan;
		count++;
	}
	return count == 2 ? plan : NULL;
}

static void expect(enum plan_phase phase, uint64_t step)
{
	const struct stop_plan *plan = told();
	ck_assert_ptr_nonnull(plan);
	ck_assert_int_eq(plan->phase, phase);
	ck_assert_uint_eq(plan->step, step);
}

TEST(members_agree_on_a_step_that_none_is_past)
{
	run_round();
	notice(2, PLAN_LEAVE);
	expect(PLAN_ASKED, 0);
	vote(1, 10);
	ck_assert_ptr_null(told());
	vote(2, 12);
	expect(PLAN_PROPOSED, 12);
	vote(1, 11);
	vote(2, 12);
	expect(PLAN_COMMITTED, 12);
}

TEST(a_worker_past_the_step_makes_the_next_proposal_later_and_later)
{
	run_round();
	notice(1, PLAN_LEAVE);
	vote(1, 10);
	vote(2, 10);
	expect(PLAN_PROPOSED, 10);
	vote(1, 11);
	vote(2, 10);
	expect(PLAN_PROPOSED, 12);
	vote(1, 13);
	vote(2, 13);
	expect(PLAN_PROPOSED, 16);
	vote(1, 16);
	vote(2, 15);
	expect(PLAN_COMMITTED, 16);
}

TEST(a_vote_on_an_earlier_proposal_does_not_count)
{
	run_round();
	notice(1, PLAN_LEAVE);
	vote(1, 10);
	vote(2, 10);
	struct stop_plan first = c.accord.plan;
	vote(1, 12);
	vote(2, 10);
	ck_assert_uint_eq(c.accord.plan.step, 13);
	vote(1, 12);
	receive(2, &(struct msg){ .type = MSG_VOTE,
				  .ballot = c.roster.heard.ballot,
				  .vote = { first.serial, first.phase, first.step, 10 } });
	ck_assert_int_eq(c.accord.plan.phase, PLAN_PROPOSED);
}

TEST(a_notice_to_leave_waits_for_a_save_that_is_agreed_on_and_overtakes_one_that_is_not)
{
	run_round();
	notice(1, PLAN_SAVE);
	vote(1, 1);
	notice(2, PLAN_LEAVE);
	expect(PLAN_ASKED, 0);
	ck_assert_int_eq(c.accord.plan.kind, PLAN_LEAVE);

	run_round();
	notice(1, PLAN_SAVE);
	for (int i = 0; i < 4; i++)
		vote(1 + (uint64_t)i % 2, 1);
	expect(PLAN_COMMITTED, 1);
	notice(2, PLAN_LEAVE);
	ck_assert_ptr_null(told());
	vote(1, 2);
	vote(2, 2);
	expect(PLAN_ASKED, 0);
	ck_assert_int_eq(c.accord.plan.kind, PLAN_LEAVE);
}

TEST(a_save_that_is_not_agreed_on_in_time_is_given_up)
{
	run_round();
	notice(1, PLAN_SAVE);
	vote(1, 1);
	uint64_t deadline_ns = c.accord.deadline_ns;
	while (now_ns < deadline_ns) {
		now_ns += NS_PER_S;
		for (uint64_t link = 1; link <= 2; link++)
			receive(link, &(struct msg){ .type = MSG_PING,
						     .ballot = c.roster.heard.ballot,
						     .ping = { .stamp = now_ns } });
	}
	actions.count = 0;
	coordinator_step(&c, &(struct coordinator_event){ .type = COORDINATOR_TIMER }, now_ns,
			 &actions);
	expect(PLAN_NONE, 0);
	notice(1, PLAN_SAVE);
	expect(PLAN_ASKED, 0);
	ck_assert_uint_eq(c.accord.plan.serial, 2);
}

TEST(a_member_of_an_older_version_makes_a_notice_impossible)
{
	run_round_with(false);
	notice(1, PLAN_LEAVE);
	ck_assert_uint_eq(actions.count, 1);
	ck_assert_int_eq(actions.items[0].msg.type, MSG_PLAN);
	ck_assert_uint_eq(actions.items[0].msg.plan.plan.serial, 0);
	ck_assert_int_eq(c.accord.plan.phase, PLAN_NONE);
}

TEST(all_members_hear_that_workers_left)
{
	run_round();
	receive(1, &(struct msg){ .type = MSG_DONE,
				  .ballot = c.roster.heard.ballot,
				  .done = { .left = true } });
	receive(2, &(struct msg){ .type = MSG_DONE, .ballot = c.roster.heard.ballot });
	ck_assert_int_eq(c.state, COORDINATOR_CLOSING);
	uint32_t stops = 0;
	for (size_t i = 0; i < actions.count; i++)
		if (actions.items[i].type == COORDINATOR_SEND &&
		    actions.items[i].msg.type == MSG_STOP) {
			ck_assert(actions.items[i].msg.stop.left);
			stops++;
		}
	ck_assert_uint_eq(stops, 2);
}

TEST(what_was_voted_on_an_earlier_plan_moves_no_later_one)
{
	run_round();
	notice(1, PLAN_SAVE);
	vote(1, 50);
	struct msg_vote old = c.roster.members[0]->vote;
	notice(2, PLAN_LEAVE); /* another plan, in place of it */
	vote(1, 3);
	c.roster.members[0]->vote = old; /* as if it had come late */
	c.roster.members[0]->vote.at = 50;
	vote(2, 4);
	ck_assert_uint_lt(c.accord.plan.step, 50);
}

TEST(nothing_more_is_voted_on_when_all_are_to_leave)
{
	run_round();
	notice(1, PLAN_LEAVE);
	for (int i = 0; i < 4; i++)
		vote(1 + (uint64_t)i % 2, 1);
	expect(PLAN_COMMITTED, 1);
	for (int i = 0; i < 4; i++) {
		vote(1 + (uint64_t)i % 2, 2);
		ck_assert_uint_eq(actions.count, 0);
	}
	ck_assert_int_eq(c.accord.plan.phase, PLAN_COMMITTED);
	notice(2, PLAN_SAVE); /* it is too late to save */
	ck_assert_uint_eq(actions.count, 0);
	ck_assert(!c.accord.leave_wanted);
}

TEST(a_second_save_while_one_is_agreed_on_is_that_one)
{
	run_round();
	notice(1, PLAN_SAVE);
	for (int i = 0; i < 4; i++)
		vote(1 + (uint64_t)i % 2, 1);
	notice(2, PLAN_SAVE);
	ck_assert_uint_eq(actions.count, 0);
	ck_assert(!c.accord.leave_wanted);
	vote(1, 2);
	vote(2, 2);
	expect(PLAN_NONE, 1);
}

TEST(who_takes_no_part_in_the_round_is_not_heard)
{
	run_round();
	receive(9, &(struct msg){ .type = MSG_NOTICE,
				  .ballot = c.roster.heard.ballot,
				  .notice = { PLAN_LEAVE, NS_PER_S } });
	ck_assert_int_eq(c.accord.plan.phase, PLAN_NONE);
	report(1, MSG_DONE);
	notice(1, PLAN_LEAVE); /* its workers are done */
	ck_assert_int_eq(c.accord.plan.phase, PLAN_NONE);
	notice(2, PLAN_LEAVE);
	ck_assert_int_eq(c.accord.plan.phase, PLAN_ASKED);
}

TEST(a_refused_notice_has_no_phase)
{
	run_round_with(false);
	notice(1, PLAN_LEAVE);
	ck_assert_int_eq(actions.items[0].msg.plan.plan.phase, PLAN_NONE);
}
