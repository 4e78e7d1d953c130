/* Leaving and saving together: a worker's questions, a host's votes, the coordinator's decisions,
 * and all of them as one. */
#include "unit.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "core/rounds/agent.h"
#include "core/rounds/coordinator.h"

/* ---- a worker and its page ---- */

static struct worker_page page;
static uint64_t seen;

static void show(enum plan_phase phase, enum plan_kind kind, uint64_t step)
{
	atomic_store(&page.plan, plan_word(&(struct stop_plan){ 1, phase, kind, step }));
}

static struct plan_positions look_at(enum plan_phase phase, enum plan_kind kind, uint64_t step)
{
	struct plan_positions positions = { .pending = 0 };
	plan_look(&page, &(struct stop_plan){ 1, phase, kind, step }, true, &positions);
	return positions;
}

static void fresh_page(void)
{
	memset(&page, 0, sizeof(page));
	atomic_store(&page.asks, 1u << PLAN_LEAVE | 1u << PLAN_SAVE);
}

TEST(a_worker_that_nobody_asks_goes_on_and_writes_nothing)
{
	fresh_page();
	for (uint64_t step = 0; step < 10; step++)
		ck_assert_int_eq(plan_ask(&page, step, false, &seen), PLAN_GO_ON);
	ck_assert_uint_eq(page.at, 0);
	ck_assert_uint_eq(page.acted, 0);
}

TEST(a_worker_tells_where_it_is_once_somebody_asks)
{
	fresh_page();
	show(PLAN_ASKED, PLAN_LEAVE, 0);
	ck_assert_uint_eq(look_at(PLAN_ASKED, PLAN_LEAVE, 0).unknown, 1);
	ck_assert_int_eq(plan_ask(&page, 41, false, &seen), PLAN_GO_ON);
	ck_assert_uint_eq(look_at(PLAN_ASKED, PLAN_LEAVE, 0).unknown, 0);
	ck_assert_uint_eq(look_at(PLAN_ASKED, PLAN_LEAVE, 0).at, 42);
}

TEST(a_worker_waits_after_the_proposed_step_and_acts_when_it_is_agreed_on)
{
	fresh_page();
	show(PLAN_PROPOSED, PLAN_LEAVE, 7);
	ck_assert_int_eq(plan_ask(&page, 6, false, &seen), PLAN_GO_ON);
	ck_assert_int_eq(plan_ask(&page, 7, false, &seen), PLAN_WAIT);
	ck_assert_uint_eq(seen, page.plan);
	ck_assert_uint_eq(look_at(PLAN_PROPOSED, PLAN_LEAVE, 7).at, 7);
	uint64_t left_after;
	ck_assert(!plan_has_left(&page, &left_after));
	show(PLAN_COMMITTED, PLAN_LEAVE, 7);
	ck_assert_int_eq(plan_ask(&page, 7, true, &seen), PLAN_ACT); /* it saves first */
	ck_assert(!plan_has_left(&page, &left_after));
	ck_assert_int_eq(plan_ask(&page, 7, false, &seen), PLAN_ACT);
	ck_assert(plan_has_left(&page, &left_after));
	ck_assert_uint_eq(left_after, 7);
}

TEST(a_worker_that_asks_first_after_the_proposed_step_is_known_to_be_there)
{
	fresh_page();
	show(PLAN_PROPOSED, PLAN_LEAVE, 7);
	ck_assert_int_eq(plan_ask(&page, 9, false, &seen), PLAN_WAIT);
	ck_assert_uint_eq(look_at(PLAN_PROPOSED, PLAN_LEAVE, 7).unknown, 0);
	ck_assert_uint_eq(look_at(PLAN_PROPOSED, PLAN_LEAVE, 7).at, 9);
}

TEST(a_worker_saves_once_and_goes_on)
{
	fresh_page();
	show(PLAN_COMMITTED, PLAN_SAVE, 3);
	ck_assert_int_eq(plan_ask(&page, 2, true, &seen), PLAN_GO_ON);
	ck_assert_int_eq(plan_ask(&page, 3, true, &seen), PLAN_ACT);
	ck_assert_int_eq(plan_ask(&page, 3, false, &seen), PLAN_GO_ON);
	ck_assert_int_eq(plan_ask(&page, 4, true, &seen), PLAN_GO_ON);
	ck_assert_uint_eq(look_at(PLAN_COMMITTED, PLAN_SAVE, 3).pending, 0);
}

TEST(who_does_not_ask_keeps_a_save_but_nobody_who_leaves)
{
	fresh_page();
	atomic_store(&page.asks, 0);
	ck_assert_uint_eq(look_at(PLAN_ASKED, PLAN_SAVE, 0).unknown, 1);
	ck_assert_uint_eq(look_at(PLAN_ASKED, PLAN_LEAVE, 0).unknown, 0);
	struct plan_positions positions = { .pending = 0 };
	plan_look(NULL, &(struct stop_plan){ 1, PLAN_ASKED, PLAN_SAVE, 0 }, true, &positions);
	ck_assert_uint_eq(positions.unknown, 1);
}

TEST(any_bytes_in_a_page_are_only_wrong_numbers)
{
	uint64_t state = 1;
	for (int i = 0; i < 10000; i++) {
		for (size_t at = 0; at < sizeof(page) / 8; at++) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			((uint64_t *)&page)[at] = state >> (state & 63);
		}
		struct plan_positions positions =
			look_at((enum plan_phase)(i & 3), (enum plan_kind)(i & 1), state);
		ck_assert_uint_le(positions.at, PLAN_STEP_MAX + 1);
		plan_ask(&page, state, i & 1, &seen);
	}
}

/* ---- the coordinator with members that vote as the test wants ---- */

static struct coordinator c;
static struct coordinator_actions actions;
static uint64_t now_ns;
static bool old_member;

static void receive(uint64_t link, const struct msg *msg)
{
	actions.count = 0;
	now_ns += NS_PER_MS;
	coordinator_step(
		&c,
		&(struct coordinator_event){
			.type = COORDINATOR_MSG, .link = link, .msg = msg, .greeted_ns = now_ns },
		now_ns, &actions);
}

static void join(uint64_t link)
{
	struct node_info node = { .id = { link, 0 },
				  .min_nodes = 2,
				  .max_nodes = 2,
				  .nproc = 1,
				  .node_rank = -1,
				  .period_ns = NS_PER_S,
				  .lease_periods = 4,
				  .plans = !(old_member && link == 2) };
	struct memory memory = { .group_rank = -1 };
	receive(link,
		&(struct msg){ .type = MSG_JOIN, .join = { .node = &node, .memory = memory } });
}

static void run_round(void)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	coordinator_done(&c);
	now_ns = 1000 * NS_PER_S;
	coordinator_init(&c, &config);
	join(1);
	join(2);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
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
	old_member = true;
	run_round();
	old_member = false;
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

/* ---- an agent ---- */

static struct agent agent;
static struct agent_actions done;
static const struct ballot round_1 = { 5, 1 };

static void step(const struct agent_event *event)
{
	done.count = 0;
	now_ns += NS_PER_MS;
	agent_step(&agent, event, now_ns, &done);
}

static void hear(const struct msg *msg)
{
	step(&(struct agent_event){ .type = AGENT_MSG, .msg = msg });
}

static void hear_plan(uint32_t serial, enum plan_phase phase, enum plan_kind kind, uint64_t at)
{
	hear(&(struct msg){ .type = MSG_PLAN,
			    .ballot = round_1,
			    .plan = { { serial, phase, kind, at }, 9 * NS_PER_S } });
}

static void agent_runs(void)
{
	struct agent_config config = { .node = { .min_nodes = 1,
						 .max_nodes = 2,
						 .nproc = 1,
						 .period_ns = NS_PER_S,
						 .lease_periods = 4 },
				       .join_timeout_ns = 60 * NS_PER_S };
	now_ns = 1000 * NS_PER_S;
	agent_init(&agent, &config);
	step(&(struct agent_event){ .type = AGENT_START });
	step(&(struct agent_event){ .type = AGENT_LINK_UP, .plans = true });
	hear(&(struct msg){
		.type = MSG_FORMED, .ballot = round_1, .formed = { .nodes = 2, .world_size = 2 } });
	ck_assert_int_eq(agent.state, AGENT_RUNNING);
}

static void give_notice(void)
{
	step(&(struct agent_event){ .type = AGENT_NOTICE,
				    .kind = PLAN_LEAVE,
				    .signal = SIGTERM,
				    .left_ns = 3 * NS_PER_S });
}

static bool sends(enum msg_type type)
{
	for (size_t i = 0; i < done.count; i++)
		if (done.items[i].type == AGENT_SEND && done.items[i].msg.type == type)
			return true;
	return false;
}

TEST(an_agent_votes_once_on_each_plan_when_all_who_ask_are_known)
{
	agent_runs();
	hear_plan(1, PLAN_ASKED, PLAN_LEAVE, 0);
	ck_assert_int_eq(done.items[0].type, AGENT_PLAN);
	struct agent_event positions = { .type = AGENT_POSITIONS,
					 .positions = { .pending = 2, .unknown = 1, .at = 4 },
					 .of = { 1, PLAN_ASKED, PLAN_LEAVE, 0 } };
	step(&positions);
	ck_assert(!sends(MSG_VOTE));
	positions.positions.unknown = 0;
	step(&positions);
	ck_assert(sends(MSG_VOTE));
	ck_assert_uint_eq(done.items[0].msg.vote.at, 4);
	step(&positions);
	ck_assert(!sends(MSG_VOTE));
	hear_plan(1, PLAN_PROPOSED, PLAN_LEAVE, 4);
	step(&positions); /* of the last plan */
	ck_assert(!sends(MSG_VOTE));
}

TEST(a_second_notice_and_the_deadline_stop_the_workers_as_usual)
{
	agent_runs();
	give_notice();
	ck_assert(sends(MSG_NOTICE));
	ck_assert_int_eq(agent.state, AGENT_RUNNING);
	give_notice();
	ck_assert_int_eq(agent.state, AGENT_LEAVING);

	agent_runs();
	give_notice();
	now_ns += 4 * NS_PER_S - 2 * NS_PER_MS;
	agent.answered_ns = now_ns;
	step(&(struct agent_event){ .type = AGENT_TIMER });
	ck_assert_int_eq(agent.state, AGENT_LEAVING);
}

TEST(an_agent_that_is_to_leave_takes_part_in_no_further_round)
{
	static const struct agent_event ends[] = {
		{ .type = AGENT_LINK_DOWN },
		{ .type = AGENT_GROUP_FAILED, .cause = { .local_rank = 0 } },
	};
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		agent_runs();
		hear_plan(1, PLAN_ASKED, PLAN_LEAVE, 0);
		step(&ends[i]);
		ck_assert_int_eq(agent.state, AGENT_LEAVING);
		step(&(struct agent_event){ .type = AGENT_GROUP_GONE });
		ck_assert_int_eq(agent.state, AGENT_ENDED);
		ck_assert_int_eq(done.items[done.count - 1].outcome.kind, OUTCOME_SIGNAL);
		ck_assert_int_eq(done.items[done.count - 1].outcome.signal, SIGTERM);
	}
}

TEST(a_refused_notice_is_the_signal_that_it_came_from)
{
	agent_runs();
	give_notice();
	hear_plan(0, PLAN_NONE, PLAN_LEAVE, 0);
	ck_assert_int_eq(agent.state, AGENT_LEAVING);
}

TEST(a_notice_where_no_round_runs_is_the_signal_that_it_came_from)
{
	agent_runs();
	step(&(struct agent_event){ .type = AGENT_GROUP_DONE });
	give_notice();
	ck_assert_int_eq(agent.state, AGENT_LEAVING);
}

TEST(workers_have_left_if_all_saved_or_ended_well)
{
	struct worker_page other;
	memset(&other, 0, sizeof(other));
	fresh_page();
	struct plan_leavers leavers = { .left = 0 };
	plan_count(&page, true, &leavers);
	ck_assert(!plan_all_left(&leavers)); /* it is done, and nobody asked it to leave */

	show(PLAN_COMMITTED, PLAN_LEAVE, 7);
	ck_assert_int_eq(plan_ask(&page, 7, false, &seen), PLAN_ACT);
	plan_count(&page, true, &leavers);
	plan_count(&other, true, &leavers);
	ck_assert(plan_all_left(&leavers));
	atomic_store(&page.saved, 7); /* up to step 6 */
	struct plan_leavers lost = leavers;
	plan_count(&page, false, &lost);
	ck_assert(!plan_all_left(&lost));
	atomic_store(&page.saved, 8);
	plan_count(&page, false, &leavers);
	ck_assert(plan_all_left(&leavers));
	plan_count(NULL, false, &leavers);
	ck_assert(!plan_all_left(&leavers));
}

static const struct outcome *outcome(void)
{
	for (size_t i = 0; i < done.count; i++)
		if (done.items[i].type == AGENT_EXIT)
			return &done.items[i].outcome;
	return NULL;
}

/* They have saved, but not ended, when the round is lost. */
TEST(that_workers_left_outlives_the_lease)
{
	for (int saved = 0; saved < 2; saved++) {
		agent_runs();
		hear_plan(1, PLAN_COMMITTED, PLAN_LEAVE, 5);
		now_ns += 4 * NS_PER_S;
		step(&(struct agent_event){ .type = AGENT_TIMER });
		ck_assert_int_eq(agent.state, AGENT_LEAVING);
		step(&(struct agent_event){ .type = AGENT_GROUP_GONE, .left = saved });
		ck_assert_ptr_nonnull(outcome());
		ck_assert_int_eq(outcome()->kind, OUTCOME_SIGNAL);
		ck_assert_int_eq(outcome()->left, saved);
	}
}

TEST(that_workers_left_outlives_the_round_while_the_agent_waits_for_the_others)
{
	agent_runs();
	hear_plan(1, PLAN_COMMITTED, PLAN_LEAVE, 5);
	step(&(struct agent_event){ .type = AGENT_GROUP_DONE, .left = true });
	step(&(struct agent_event){ .type = AGENT_GROUP_GONE, .left = true });
	hear(&(struct msg){ .type = MSG_STOP, .ballot = round_1, .stop = { .why = STOP_MEMBERS } });
	ck_assert_ptr_nonnull(outcome());
	ck_assert_int_eq(outcome()->kind, OUTCOME_SIGNAL);
	ck_assert(outcome()->left);
}

/* The ruling reached it and was lost with the coordinator; the others made another round. */
TEST(that_workers_left_outlives_the_news_of_a_later_round)
{
	agent_runs();
	hear_plan(1, PLAN_COMMITTED, PLAN_LEAVE, 5);
	step(&(struct agent_event){ .type = AGENT_GROUP_DONE, .left = true });
	step(&(struct agent_event){ .type = AGENT_GROUP_GONE, .left = true });
	hear(&(struct msg){ .type = MSG_STOP,
			    .ballot = round_1,
			    .stop = { .why = STOP_RULING, .ruling = RULING_DONE, .left = true } });
	step(&(struct agent_event){ .type = AGENT_LINK_DOWN, .dead = true });
	step(&(struct agent_event){ .type = AGENT_LINK_UP, .plans = true });
	struct ballot later = { round_1.epoch + 1, round_1.round + 1 };
	hear(&(struct msg){ .type = MSG_PONG, .ballot = later, .pong = { .heard = { later, 1 } } });
	ck_assert(!agent.memory.left); /* of that round it is not true */
	if (!outcome())
		step(&(struct agent_event){ .type = AGENT_TIMER });
	ck_assert_ptr_nonnull(outcome());
	ck_assert_int_eq(outcome()->kind, OUTCOME_SIGNAL);
	ck_assert(outcome()->left);
}

TEST(that_workers_left_outlives_the_deadline_of_the_notice)
{
	agent_runs();
	give_notice();
	hear_plan(1, PLAN_COMMITTED, PLAN_LEAVE, 5);
	now_ns += 3 * NS_PER_S;
	step(&(struct agent_event){ .type = AGENT_TIMER });
	ck_assert_int_eq(agent.state, AGENT_LEAVING);
	step(&(struct agent_event){ .type = AGENT_GROUP_GONE, .left = true });
	ck_assert_ptr_nonnull(outcome());
	ck_assert(outcome()->left);
}

TEST(that_workers_left_is_known_where_the_end_is_not)
{
	agent_runs();
	hear_plan(1, PLAN_COMMITTED, PLAN_LEAVE, 5);
	step(&(struct agent_event){ .type = AGENT_GROUP_DONE, .left = true });
	step(&(struct agent_event){ .type = AGENT_GROUP_GONE, .left = true });
	hear(&(struct msg){ .type = MSG_STOP,
			    .ballot = round_1,
			    .stop = { .why = STOP_RULING, .ruling = RULING_DONE, .left = true } });
	step(&(struct agent_event){ .type = AGENT_LINK_DOWN, .dead = true });
	ck_assert_int_eq(agent.state, AGENT_SEEKING);
	now_ns += 60 * NS_PER_S;
	step(&(struct agent_event){ .type = AGENT_TIMER });
	ck_assert_ptr_nonnull(outcome());
	ck_assert_int_eq(outcome()->kind, OUTCOME_UNKNOWN);
	ck_assert(outcome()->left);
}

TEST(an_agent_whose_workers_left_waits_for_the_end_and_hears_it)
{
	agent_runs();
	hear_plan(1, PLAN_COMMITTED, PLAN_LEAVE, 5);
	step(&(struct agent_event){ .type = AGENT_GROUP_DONE, .left = true });
	ck_assert(sends(MSG_DONE));
	ck_assert(done.items[0].msg.done.left);
	step(&(struct agent_event){ .type = AGENT_GROUP_GONE });
	ck_assert_int_eq(agent.state, AGENT_WAITING);
	hear(&(struct msg){ .type = MSG_CLOSED,
			    .ballot = round_1,
			    .closed = { .ruling = RULING_DONE, .left = true } });
	ck_assert_int_eq(done.items[done.count - 1].type, AGENT_EXIT);
	ck_assert(done.items[done.count - 1].outcome.left);
}
