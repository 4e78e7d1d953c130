/* The coordinator: an arbiter's lease. */
#include "unit.h"

#include <stdio.h>

#include <string.h>

#include "coordinator_rig.h"

#define LEASE (15 * NS_PER_S)
#define FENCE (5 * NS_PER_S) /* how long workers live without answers */

static void begin_leased(uint32_t nodes)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	config.quorum = QUORUM_LEASE;
	config.epoch = 7;
	config.last_call_ns = 0;
	config.until_ns = 1000 * NS_PER_S + LEASE;
	config.past = (struct recorded_end){ 5, RULING_DONE };
	begin(&config, 1, nodes);
}

static void renew_lease(void)
{
	step(&(struct coordinator_event){ .type = COORDINATOR_LEASE, .until_ns = now_ns + LEASE });
}

TEST(with_a_lease_a_round_forms_from_min_nodes)
{
	begin_leased(4);
	struct memory memory = remembering((struct ballot){ 6, 4 }, 4);
	join_with(1, &memory);
	wait_until(c.regather_ns + NS_PER_S, 1);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	ck_assert_uint_eq(c.roster.heard.nodes, 1);
}

TEST(a_coordinator_that_may_get_a_lease_but_has_none_needs_a_majority)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	config.quorum = QUORUM_LEASE;
	config.last_call_ns = 0;
	begin(&config, 1, 2);
	join(1);
	ck_assert_int_eq(c.state, COORDINATOR_GATHERING);
	join(2);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
}

static const struct stepped_down *stepped_down(void)
{
	for (size_t i = 0; i < actions.count; i++)
		if (actions.items[i].type == COORDINATOR_STEP_DOWN)
			return &actions.items[i].down;
	return NULL;
}

/* One of two members is back, with a failure that the other has not heard of: it made the round
 * after that. */
static void close_without_the_next_round(void)
{
	max_restarts = 0;
	begin_leased(2);
	struct memory failed = remembering((struct ballot){ 6, 2 }, 2);
	failed.work = WORK_FAILED;
	join_with(1, &failed);
	wait_until(c.regather_ns + NS_PER_S, 1);
	ck_assert_int_eq(c.state, COORDINATOR_CLOSING);
	struct memory later = remembering((struct ballot){ 6, 3 }, 1);
	join_with(2, &later);
}

TEST(with_a_lease_a_ruling_outlives_what_was_formed_under_an_earlier_one)
{
	close_without_the_next_round();
	ck_assert_ptr_null(stepped_down());
	ck_assert_int_eq(c.state, COORDINATOR_CLOSING);
	receive(2, &(struct msg){ .type = MSG_PING, .ballot = { 6, 3 } });
	ck_assert_uint_eq(actions.count, 1);
	ck_assert_int_eq(actions.items[0].msg.type, MSG_PONG);
	ck_assert_uint_eq(actions.items[0].msg.ballot.round, 3); /* a lower one would part us */
	join(1);
	ck_assert(did(COORDINATOR_RECORD));
	step(&(struct coordinator_event){ .type = COORDINATOR_RECORDED });
	ck_assert_uint_eq(sent(MSG_CLOSED), 2);
}

TEST(with_a_lease_a_ruling_gives_way_to_a_later_epoch)
{
	close_without_the_next_round();
	struct memory later = remembering((struct ballot){ 8, 4 }, 1);
	join_with(3, &later);
	ck_assert_ptr_nonnull(stepped_down());
	ck_assert(!stepped_down()->again);
}

TEST(who_steps_down_says_how_long_its_workers_may_live)
{
	enter(COORDINATOR_RUNNING);
	apply(HIGHER_BALLOT);
	ck_assert_uint_eq(stepped_down()->workers_until_ns, now_ns + 5 * NS_PER_S);
	coordinator_done(&c);
	enter(COORDINATOR_GATHERING);
	apply(SUPERSEDED);
	ck_assert_uint_eq(stepped_down()->workers_until_ns, 0);
}

TEST(workers_are_dead_when_the_lease_ends)
{
	begin_leased(2);
	join(1);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	wait_until(c.until_ns - FENCE - NS_PER_S / 10, 1);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	ck_assert_uint_eq(coordinator_deadline_ns(&c), c.until_ns - FENCE);
	now_ns = coordinator_deadline_ns(&c);
	timer();
	ck_assert_int_eq(c.state, COORDINATOR_GATHERING);
	ck_assert(did(COORDINATOR_HANG_UP));
	join(1);
	ck_assert_int_eq(c.state, COORDINATOR_GATHERING); /* another may lead soon */
	ping(1, now_ns);
	ck_assert_uint_eq(sent(MSG_PONG), 1); /* it has no workers, and may stay */
	renew_lease();
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
}

TEST(a_node_that_leaves_gets_no_answers_when_the_lease_is_about_to_end)
{
	begin_leased(2);
	join_up_to(2);
	leave(2, LEAVE_SIGNAL, false); /* its workers take their time */
	ping(2, now_ns);
	ck_assert_uint_eq(sent(MSG_PONG), 1);
	now_ns = c.until_ns - FENCE;
	ping(2, now_ns);
	ck_assert_uint_eq(sent(MSG_PONG), 0);
}

TEST(the_arbiter_records_the_end_before_an_agent_acts_on_it)
{
	begin_leased(2);
	join(1);
	report(1, MSG_DONE);
	join(1);
	ck_assert_int_eq(c.state, COORDINATOR_CLOSING);
	ck_assert(did(COORDINATOR_RECORD));
	ck_assert_uint_eq(actions.items[0].end.epoch, 7);
	ck_assert_int_eq(actions.items[0].end.ruling, RULING_DONE);
	join(1);
	ck_assert(!did(COORDINATOR_RECORD)); /* one is under way */
	renew_lease();
	ck_assert(did(COORDINATOR_RECORD)); /* it may be lost */
	step(&(struct coordinator_event){ .type = COORDINATOR_RECORDED });
	ck_assert_int_eq(c.state, COORDINATOR_CLOSED);
	ck_assert_uint_eq(sent(MSG_CLOSED), 1);
}

TEST(an_agent_of_a_job_whose_end_is_on_record_is_told_so)
{
	begin_leased(2);
	struct memory memory = remembering((struct ballot){ 5, 3 }, 2);
	join_with(1, &memory);
	ck_assert_uint_eq(sent(MSG_CLOSED), 1);
	ck_assert_int_eq(actions.items[0].msg.closed.ruling, RULING_DONE);
	ck_assert_uint_eq(c.roster.count, 0);
	join(2); /* it knows nothing of that job, and begins another */
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
}

static void join_with_period(uint64_t link, uint64_t period_ns)
{
	struct node_info node = node_of(link);
	node.period_ns = period_ns;
	receive(link, &(struct msg){ .type = MSG_JOIN,
				     .join = { .node = &node, .memory = { .group_rank = -1 } } });
}

static uint64_t join_death_ns(uint64_t period_s)
{
	struct node_info node = node_of(2);
	node.period_ns = period_s * NS_PER_S;
	return node_death_ns(&node);
}

TEST(an_agent_whose_workers_may_outlive_the_lease_is_refused_and_the_round_goes_on)
{
	begin_leased(4);
	join(1);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	join_with_period(2, 10 * NS_PER_S);
	ck_assert_uint_eq(sent(MSG_REFUSED), 1);
	char says[64]; /* 4 periods of 10 s and a fourth of one */
	snprintf(says, sizeof(says), "may live %.1f s without", (double)join_death_ns(10) / 1e9);
	ck_assert_ptr_nonnull(strstr(actions.items[0].msg.refused.text, "keep_alive_interval"));
	ck_assert_ptr_nonnull(strstr(actions.items[0].msg.refused.text, says));
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	ck_assert_uint_eq(c.fence_ns, FENCE);
	join_with_period(3, 7 * NS_PER_S / 5); /* half of the lease covers it */
	ck_assert_uint_eq(sent(MSG_REFUSED), 0);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
}

TEST(an_agent_that_was_let_in_before_is_not_refused_for_its_keep_alive)
{
	begin_leased(4);
	struct memory memory = remembering((struct ballot){ 6, 4 }, 2);
	struct node_info node = node_of(1);
	node.period_ns = 10 * NS_PER_S;
	receive(1, &(struct msg){ .type = MSG_JOIN,
				  .ballot = memory.heard.ballot,
				  .join = { .node = &node, .memory = memory } });
	ck_assert_uint_eq(sent(MSG_REFUSED), 0);
	ck_assert_uint_eq(c.roster.count, 1);
}

/* A lease that this process's own settings make too short. */
TEST(a_lease_that_holds_a_round_back_is_noted_once)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	config.quorum = QUORUM_LEASE;
	config.epoch = 7;
	config.last_call_ns = 0;
	config.until_ns = 1000 * NS_PER_S + 4 * NS_PER_S;
	config.fence_ns = FENCE;
	begin(&config, 1, 2);
	join(1);
	ck_assert_int_eq(c.state, COORDINATOR_GATHERING);
	ck_assert_ptr_nonnull(noted(NOTE_LEASE));
	ck_assert_ptr_nonnull(strstr(noted(NOTE_LEASE)->refused, "too short"));
	char says[64];
	snprintf(says, sizeof(says), "may live %.1f s without", (double)FENCE / 1e9);
	ck_assert_ptr_nonnull(strstr(noted(NOTE_LEASE)->refused, "the lease of 4.0 s"));
	ck_assert_ptr_nonnull(strstr(noted(NOTE_LEASE)->refused, says));
	timer();
	ck_assert_ptr_null(noted(NOTE_LEASE));
	renew_lease();
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	wait_until(c.until_ns - FENCE, 1);
	join(1);
	ck_assert_ptr_nonnull(strstr(noted(NOTE_LEASE)->refused, "not renewed"));
}

TEST(a_lease_holds_nothing_back_while_nodes_are_missing_or_where_none_decides)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	config.quorum = QUORUM_LEASE;
	config.epoch = 7;
	config.last_call_ns = 0;
	config.until_ns = 1000 * NS_PER_S + 4 * NS_PER_S;
	config.fence_ns = FENCE;
	begin(&config, 2, 2);
	join(1);
	ck_assert_ptr_null(noted(NOTE_LEASE)); /* one more is needed first */
	join(2);
	ck_assert_ptr_nonnull(noted(NOTE_LEASE));
	begin_takeover(3);
	for (uint64_t link = 1; link <= 1; link++)
		join_with(link, &(struct memory){ .group_rank = -1 });
	ck_assert_ptr_null(noted(NOTE_LEASE));
}
