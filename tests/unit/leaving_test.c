/* Leaving and saving together: an agent votes, and remembers that its workers left. */
#include "unit.h"

#include <signal.h>

#include "base/clock.h"
#include "core/rounds/agent.h"

static struct agent agent;
static struct agent_actions done;
static uint64_t now_ns;
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
	step(&(struct agent_event){ .type = AGENT_LINK_UP, .can = CAN_PLAN });
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

static const struct outcome *outcome(void)
{
	for (size_t i = 0; i < done.count; i++)
		if (done.items[i].type == AGENT_EXIT)
			return &done.items[i].outcome;
	return NULL;
}

/* As agreed, after step 5. */
static void all_leave(void)
{
	agent_runs();
	hear_plan(1, PLAN_COMMITTED, PLAN_LEAVE, 5);
	step(&(struct agent_event){ .type = AGENT_GROUP_DONE, .left = true });
	step(&(struct agent_event){ .type = AGENT_GROUP_GONE, .left = true });
}

static void hear_ruling(void)
{
	hear(&(struct msg){ .type = MSG_STOP,
			    .ballot = round_1,
			    .stop = { .why = STOP_RULING, .ruling = RULING_DONE, .left = true } });
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
	all_leave();
	hear(&(struct msg){ .type = MSG_STOP, .ballot = round_1, .stop = { .why = STOP_MEMBERS } });
	ck_assert_ptr_nonnull(outcome());
	ck_assert_int_eq(outcome()->kind, OUTCOME_SIGNAL);
	ck_assert(outcome()->left);
}

/* The ruling reached it and was lost with the coordinator; the others made another round. */
TEST(that_workers_left_outlives_the_news_of_a_later_round)
{
	all_leave();
	hear_ruling();
	step(&(struct agent_event){ .type = AGENT_LINK_DOWN, .dead = true });
	step(&(struct agent_event){ .type = AGENT_LINK_UP, .can = CAN_PLAN });
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
	all_leave();
	hear_ruling();
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

TEST(a_save_is_asked_for_also_by_a_host_that_is_to_leave)
{
	agent_runs();
	give_notice();
	step(&(struct agent_event){ .type = AGENT_NOTICE, .kind = PLAN_SAVE });
	ck_assert(sends(MSG_NOTICE));
	ck_assert_int_eq(agent.state, AGENT_RUNNING);
	agent_runs();
	agent.can = 0;
	step(&(struct agent_event){ .type = AGENT_NOTICE, .kind = PLAN_SAVE });
	ck_assert_uint_eq(done.count, 0);
	ck_assert_int_eq(agent.state, AGENT_RUNNING);
}

TEST(workers_that_do_not_leave_in_time_get_the_signal_that_it_came_from)
{
	agent_runs();
	step(&(struct agent_event){
		.type = AGENT_NOTICE, .kind = PLAN_LEAVE, .signal = SIGUSR1, .left_ns = NS_PER_S });
	now_ns += NS_PER_S;
	agent.answered_ns = now_ns;
	step(&(struct agent_event){ .type = AGENT_TIMER });
	ck_assert_int_eq(agent.state, AGENT_LEAVING);
	bool stopped = false;
	for (size_t i = 0; i < done.count; i++)
		stopped |= done.items[i].type == AGENT_GROUP_STOP &&
			   done.items[i].why == GROUP_STOP_SIGNAL &&
			   done.items[i].signal == SIGUSR1;
	ck_assert(stopped);
}

TEST(a_plan_of_another_round_is_not_ours)
{
	agent_runs();
	hear(&(struct msg){ .type = MSG_PLAN,
			    .ballot = { 5, 2 },
			    .plan = { { 1, PLAN_ASKED, PLAN_LEAVE, 0 }, 9 * NS_PER_S } });
	ck_assert_uint_eq(done.count, 0);
	ck_assert(!agent.noticed);
}

TEST(what_is_agreed_on_is_voted_on_only_when_all_have_saved)
{
	static const struct {
		enum plan_phase phase;
		enum plan_kind kind;
		uint32_t pending;
		bool votes;
	} cases[] = { { PLAN_COMMITTED, PLAN_SAVE, 1, false },
		      { PLAN_COMMITTED, PLAN_SAVE, 0, true },
		      { PLAN_COMMITTED, PLAN_LEAVE, 0, false },
		      { PLAN_NONE, PLAN_SAVE, 0, false } };
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		agent_runs();
		hear_plan(1, cases[i].phase, cases[i].kind, 7);
		step(&(struct agent_event){ .type = AGENT_POSITIONS,
					    .positions = { .pending = cases[i].pending },
					    .of = { 1, cases[i].phase, cases[i].kind, 7 } });
		ck_assert_msg(sends(MSG_VOTE) == cases[i].votes, "case %zu", i);
	}
}
