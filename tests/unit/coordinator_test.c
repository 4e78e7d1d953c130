/* The coordinator: every cell of its table, and how rounds form and end. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "coordinator_rig.h"

/* The state that follows; 0 is GATHERING, so states are counted from 1 here and 0 is "the same". */
#define TO(state) ((int)(state) + 1)
static const int next[COORDINATOR_STATE_COUNT][STIMULUS_COUNT] = {
	[COORDINATOR_GATHERING] = {
		[NEW_JOINS] = TO(COORDINATOR_RUNNING),
		[SUPERSEDED] = TO(COORDINATOR_DEPOSED),
	},
	[COORDINATOR_RUNNING] = {
		[MEMBER_JOINS] = TO(COORDINATOR_STOPPING),
		[FAILED] = TO(COORDINATOR_STOPPING),
		[LEAVES] = TO(COORDINATOR_STOPPING),
		[LEAVES_SLOWLY] = TO(COORDINATOR_STOPPING),
		[RESET] = TO(COORDINATOR_STOPPING),
		[UNREACHABLE] = TO(COORDINATOR_STOPPING),
		[SILENCE] = TO(COORDINATOR_GATHERING),
		[SUPERSEDED] = TO(COORDINATOR_DEPOSED),
		[HIGHER_BALLOT] = TO(COORDINATOR_DEPOSED),
	},
	[COORDINATOR_STOPPING] = {
		[SILENCE] = TO(COORDINATOR_GATHERING),
		[SUPERSEDED] = TO(COORDINATOR_DEPOSED),
		[HIGHER_BALLOT] = TO(COORDINATOR_DEPOSED),
	},
	[COORDINATOR_CLOSING] = {
		[SILENCE] = TO(COORDINATOR_CLOSED),
		[SUPERSEDED] = TO(COORDINATOR_DEPOSED),
		[HIGHER_BALLOT] = TO(COORDINATOR_DEPOSED),
	},
	[COORDINATOR_CLOSED] = { [HIGHER_BALLOT] = TO(COORDINATOR_DEPOSED) },
};

TEST(every_event_in_every_state_leads_where_the_table_says)
{
	for (enum coordinator_state state = 0; state < COORDINATOR_STATE_COUNT; state++) {
		for (enum stimulus stimulus = 0; stimulus < STIMULUS_COUNT; stimulus++) {
			enter(state);
			apply(stimulus);
			enum coordinator_state expected =
				next[state][stimulus]
					? (enum coordinator_state)(next[state][stimulus] - 1)
					: state;
			ck_assert_msg(c.state == expected, "%s, stimulus %d: now %s",
				      coordinator_state_name(state), stimulus,
				      coordinator_state_name(c.state));
			coordinator_done(&c);
		}
	}
}

TEST(messages_of_questions_change_nothing_in_any_state)
{
	for (enum coordinator_state state = 0; state < COORDINATOR_STATE_COUNT; state++) {
		for (enum msg_type type = MSG_ASK; type < MSG_TYPE_COUNT; type++) {
			enter(state);
			receive(1, &(struct msg){ .type = type });
			ck_assert_uint_eq(actions.count, 0);
			ck_assert_int_eq(c.state, state);
			coordinator_done(&c);
		}
	}
}

TEST(a_ping_is_answered_in_every_state_that_has_members)
{
	for (enum coordinator_state state = 0; state < COORDINATOR_DEPOSED; state++) {
		enter(state);
		report(1, MSG_PING);
		ck_assert_uint_eq(sent(MSG_PONG), 1);
		coordinator_done(&c);
	}
}

TEST(a_ping_tells_of_a_clock_and_its_answer_too)
{
	enter(COORDINATOR_RUNNING);
	c.wall_shift_ns = 77;
	receive(1, &(struct msg){ .type = MSG_PING,
				  .ballot = c.roster.heard.ballot,
				  .ping = { .wall = { -5, 3 } } });
	ck_assert_int_eq(actions.items[0].msg.pong.wall_shift_ns, 77);
	ck_assert_int_eq(roster_by_link(&c.roster, 1)->wall.offset_ns, -5);
	ck_assert_uint_eq(roster_by_link(&c.roster, 1)->wall.error_ns, 3);
}

TEST(the_host_of_the_store_hears_the_addresses_of_all_members_before_its_round)
{
	enum { ADDRS = 13, NODES = 5 };
	begin_plain(NODES, NODES);
	for (uint64_t link = 1; link <= NODES; link++) {
		struct node_info node = node_of(link);
		node.addr_count = ADDRS;
		for (size_t i = 0; i < ADDRS; i++)
			node.addrs[i] =
				(struct msg_addr){ 4, { 10, 0, (uint8_t)link, (uint8_t)i } };
		receive(link,
			&(struct msg){ .type = MSG_JOIN,
				       .join = { .node = &node, .memory = { .group_rank = -1 } } });
	}
	ck_assert_uint_eq(sent(MSG_FORMED), NODES);
	size_t addrs = 0, firsts = 0;
	for (size_t i = 0; i < actions.count; i++) {
		const struct coordinator_action *action = &actions.items[i];
		if (action->msg.type == MSG_FORMED && action->msg.formed.hosts_store)
			break;
		if (action->msg.type != MSG_PEERS)
			continue;
		ck_assert_uint_eq(action->link, 1);
		addrs += action->msg.peers.count;
		firsts += action->msg.peers.first;
	}
	ck_assert_uint_eq(addrs, NODES * ADDRS);
	ck_assert_uint_eq(firsts, 1);
	coordinator_done(&c);
}

TEST(the_addresses_of_a_spare_are_no_members)
{
	max_restarts = 1;
	begin_plain(2, 2);
	for (int attempt = 0; attempt < 2; attempt++) {
		for (uint64_t link = 3; link > 0; link--) {
			struct node_info node = node_of(link);
			node.addr_count = 1;
			node.addrs[0] = (struct msg_addr){ 4, { 10, 0, 0, (uint8_t)link } };
			if (attempt == 0 || link != 1)
				receive(link,
					&(struct msg){ .type = MSG_JOIN,
						       .join = { .node = &node,
								 .memory = memory_of(link) } });
		}
		ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
		if (attempt == 0)
			report(3, MSG_FAILED);
	}
	ck_assert_uint_eq(sent(MSG_PEERS), 1);
	for (size_t i = 0; i < actions.count; i++)
		if (actions.items[i].type == COORDINATOR_SEND &&
		    actions.items[i].msg.type == MSG_PEERS)
			ck_assert_uint_eq(actions.items[i].msg.peers.count, 2);
	coordinator_done(&c);
}

TEST(a_failure_stops_all_and_restarts_when_all_are_back)
{
	enter(COORDINATOR_RUNNING);
	report(1, MSG_FAILED);
	ck_assert_uint_eq(sent(MSG_STOP), 1); /* the one that failed stops by itself */
	join(2);
	ck_assert_uint_eq(sent(MSG_FORMED), 0);
	join(1);
	ck_assert_uint_eq(sent(MSG_FORMED), 2);
	ck_assert_uint_eq(c.restarts, 1);
	report(2, MSG_FAILED);
	join(1);
	join(2);
	ck_assert_int_eq(c.ruling, RULING_FAILED);
	ck_assert_uint_eq(sent(MSG_STOP), 2);
	join(1);
	join(2);
	ck_assert_uint_eq(sent(MSG_CLOSED), 2);
	leave(1, LEAVE_CLOSED, true);
	ck_assert(!did(COORDINATOR_FINISHED));
	leave(2, LEAVE_CLOSED, true);
	ck_assert(did(COORDINATOR_FINISHED));
}

TEST(the_earliest_death_is_the_first_cause_whichever_report_comes_first)
{
	enter(COORDINATOR_RUNNING);
	struct msg failed = { .type = MSG_FAILED, .ballot = c.roster.heard.ballot };
	failed.failed.cause = (struct cause){ .pid = 11, .age_ns = 0 };
	receive(1, &failed);
	failed.failed.cause = (struct cause){ .pid = 22, .age_ns = 5 * NS_PER_S };
	receive(2, &failed);
	ck_assert_int_eq(c.cause.pid, 22);
}

/* `link` joins after its worker `pid` has failed, as it says now. */
static void join_failed(uint64_t link, const struct cause *cause)
{
	struct memory memory = memory_of(link);
	memory.work = WORK_FAILED;
	struct node_info node = node_of(link);
	receive(link, &(struct msg){ .type = MSG_JOIN,
				     .join = { .node = &node,
					       .attempt = 1,
					       .memory = memory,
					       .cause = *cause } });
}

TEST(the_ruling_carries_all_that_is_known_of_its_cause)
{
	enter(COORDINATOR_RUNNING);
	struct cause cause = { .pid = 11,
			       .name = "h1",
			       .no_restart = true,
			       .blame = { .text = "rank 1 never came" } };
	receive(1, &(struct msg){ .type = MSG_FAILED,
				  .ballot = c.roster.heard.ballot,
				  .failed = { cause } });
	cause.status = (struct exit_status){ EXIT_SIGNAL, 9, false };
	snprintf(cause.words, sizeof(cause.words), "ValueError: boom");
	join(2);
	join_failed(1, &cause);
	ck_assert_int_eq(c.state, COORDINATOR_CLOSING);
	ck_assert_uint_eq(sent(MSG_STOP), 2);
	for (size_t i = 0; i < actions.count; i++) {
		const struct cause *told = &actions.items[i].msg.stop.cause;
		ck_assert_str_eq(told->words, cause.words);
		ck_assert_str_eq(told->blame.text, cause.blame.text);
		ck_assert_int_eq(told->status.value, 9);
	}
}

TEST(a_report_that_knows_less_takes_nothing_back)
{
	enter(COORDINATOR_RUNNING);
	struct cause cause = { .pid = 11, .name = "h1", .no_restart = true };
	receive(1, &(struct msg){ .type = MSG_FAILED,
				  .ballot = c.roster.heard.ballot,
				  .failed = { cause } });
	snprintf(cause.words, sizeof(cause.words), "ValueError: boom");
	join_failed(1, &cause);
	*cause.words = '\0';
	join_failed(2, &cause);
	ck_assert_str_eq(c.cause.words, "ValueError: boom");
}

/* Of two nodes, both of which are needed. */
static void begin_pair(uint64_t patience_ns)
{
	begin_plain(2, 2);
	lost_timeout_ns = patience_ns;
	join_up_to(2);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
}

TEST(a_lost_host_that_the_job_needs_is_waited_for_and_then_the_job_ends)
{
	begin_pair(60 * NS_PER_S);
	link_down(1, false);
	ck_assert_uint_eq(sent(MSG_STOP), 1);
	ck_assert_int_eq(actions.items[0].msg.stop.cause.reason, FAILURE_LOST);
	ck_assert_str_eq(actions.items[0].msg.stop.cause.name, "h1");
	uint64_t lost_ns = now_ns;
	join(2);
	wait_until(lost_ns + 30 * NS_PER_S, 2);
	ck_assert_int_eq(c.state, COORDINATOR_GATHERING);
	wait_until(lost_ns + 80 * NS_PER_S, 2);
	ck_assert_int_eq(c.state, COORDINATOR_CLOSING);
	ck_assert_int_eq(c.ruling, RULING_FAILED);
	ck_assert_int_eq(c.cause.reason, FAILURE_LOST);
	ck_assert_str_eq(c.cause.name, "h1");
}

TEST(a_host_that_left_is_the_cause_with_its_signal)
{
	begin_pair(NS_PER_S);
	receive(1, &(struct msg){ .type = MSG_LEAVE, .leave = { LEAVE_SIGNAL, true, 15 } });
	join(2);
	wait_until(now_ns + 5 * NS_PER_S, 2);
	ck_assert_int_eq(c.cause.reason, FAILURE_LEFT);
	ck_assert_int_eq(c.cause.status.value, 15);
	ck_assert_str_eq(c.cause.words, "its muster was stopped by SIGTERM");
}

TEST(a_lost_host_that_comes_back_in_time_ends_nothing)
{
	begin_pair(60 * NS_PER_S);
	link_down(1, true);
	join(2);
	ck_assert_uint_ne(c.lost_ns, NS_NEVER);
	wait_until(now_ns + 30 * NS_PER_S, 2);
	join(3);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	ck_assert_uint_eq(c.lost_ns, NS_NEVER);
}

TEST(agents_of_an_earlier_version_are_waited_for_as_they_say)
{
	begin_pair(0);
	link_down(1, true);
	join(2);
	ck_assert_uint_eq(c.lost_ns, NS_NEVER);
}

TEST(a_change_of_members_costs_nothing)
{
	enter(COORDINATOR_RUNNING);
	link_down(1, true);
	join(2);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	ck_assert_uint_eq(c.roster.heard.nodes, 1);
	ck_assert_uint_eq(c.restarts, 0);
}

TEST(a_spare_takes_the_place_of_a_lost_node_at_once)
{
	enter(COORDINATOR_RUNNING);
	join(3);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	link_down(1, true);
	join(2);
	ck_assert_uint_eq(c.roster.heard.nodes, 2);
	ck_assert_uint_eq(sent(MSG_FORMED), 2);
}

TEST(newcomers_are_gathered_and_let_in_together)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	config.last_call_ns = 0;
	begin(&config, 1, 3);
	join(1);
	ck_assert_uint_eq(c.roster.heard.nodes, 1);
	join(2);
	uint64_t due_ns = c.scale_up_ns;
	ck_assert_uint_eq(due_ns, now_ns + config.scale_up_delay_ns);
	join(3);
	ck_assert_uint_eq(c.scale_up_ns, due_ns);
	wait_until(due_ns + NS_PER_S, 3);
	ck_assert_int_eq(c.state, COORDINATOR_STOPPING);
	join(1);
	ck_assert_uint_eq(c.roster.heard.nodes, 3);
}

TEST(the_first_round_waits_for_its_last_call_only)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	config.last_call_ns = 2 * NS_PER_S;
	begin(&config, 1, 3);
	join(1);
	ck_assert_int_eq(c.state, COORDINATOR_GATHERING);
	ck_assert_uint_eq(coordinator_deadline_ns(&c), now_ns + 2 * NS_PER_S);
	now_ns += 2 * NS_PER_S;
	timer();
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
}

TEST(losing_a_done_node_does_not_count_as_a_loss)
{
	enter(COORDINATOR_RUNNING);
	report(1, MSG_DONE);
	link_down(1, true);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	report(2, MSG_DONE);
	join(2);
	ck_assert_int_eq(c.state, COORDINATOR_CLOSED);
	ck_assert_int_eq(c.ruling, RULING_DONE);
}

TEST(another_min_max_and_a_taken_node_rank_are_refused_by_name)
{
	enter(COORDINATOR_GATHERING);
	max_nodes = 9;
	join(2);
	ck_assert_uint_eq(sent(MSG_REFUSED), 1);
	ck_assert_ptr_nonnull(strstr(actions.items[0].msg.refused.text, "1:9"));
	max_nodes = 2;
	struct node_info node = node_of(2);
	struct memory memory = { .group_rank = -1 };
	struct msg msg = { .type = MSG_JOIN, .join = { .node = &node, .memory = memory } };
	node.node_rank = 2;
	receive(2, &msg);
	ck_assert_uint_eq(sent(MSG_REFUSED), 1);
	node.node_rank = 0;
	receive(2, &msg);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	node.id.hi = 3;
	receive(3, &msg);
	ck_assert_uint_eq(sent(MSG_REFUSED), 1);
}

TEST(an_agent_with_wrong_options_that_comes_first_does_not_end_the_job)
{
	struct memory memory = remembering((struct ballot){ 5, 4 }, 2);
	begin_takeover(2);
	max_nodes = 3;
	join(7);
	max_nodes = 2;
	join_with(1, &memory);
	ck_assert_uint_eq(sent(MSG_REFUSED), 1);
	ck_assert_uint_eq(actions.items[0].link, 7);
	ck_assert_ptr_nonnull(
		strstr(actions.items[0].msg.refused.text, "--nnodes=1:2, this agent --nnodes=1:3"));
	join_with(2, &memory);
	ck_assert_uint_eq(sent(MSG_FORMED), 2);
}

TEST(a_coordinator_that_stood_still_decides_nothing_from_old_messages)
{
	enter(COORDINATOR_RUNNING);
	report(1, MSG_FAILED);
	under_way_ns = 60 * NS_PER_S;
	now_ns += under_way_ns;
	join(1);
	ck_assert_uint_eq(roster_linked(&c.roster), 0);
	join(2);
	ck_assert_int_eq(c.state, COORDINATOR_GATHERING);
	under_way_ns = 0;
	join(1);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
}

TEST(pings_that_trickle_in_do_not_keep_a_member)
{
	enter(COORDINATOR_RUNNING);
	uint64_t stamp_ns = now_ns;
	ping(1, stamp_ns);
	for (int i = 0; i < 4; i++) {
		now_ns += NS_PER_S;
		ping(1, stamp_ns);
		ping(2, now_ns);
	}
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	now_ns += NS_PER_S;
	ping(2, now_ns);
	ck_assert(did(COORDINATOR_HANG_UP));
	ck_assert_int_eq(c.state, COORDINATOR_STOPPING);
	/* Its workers live on the last answer: no round before they cannot any more. */
	uint64_t answered_ns = roster_by_id(&c.roster, node_of(1).id)->heard_ns;
	join(2);
	ck_assert_int_eq(c.state, COORDINATOR_STOPPING);
	now_ns = answered_ns + 5 * NS_PER_S - 2 * NS_PER_MS;
	ping(2, now_ns);
	ck_assert_int_eq(c.state, COORDINATOR_STOPPING);
	timer();
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	ck_assert_uint_eq(c.roster.heard.nodes, 1);
}

TEST(an_old_join_is_ignored)
{
	begin_plain(1, 1);
	under_way_ns = 5 * NS_PER_S;
	join(1);
	ck_assert(did(COORDINATOR_HANG_UP));
	ck_assert_uint_eq(c.roster.count, 0);
	under_way_ns = 4 * NS_PER_S;
	join(2);
	ck_assert_uint_eq(sent(MSG_FORMED), 1);
}

TEST(two_agents_on_one_link_leave_no_member_behind)
{
	begin_plain(2, 3);
	join(1);
	struct node_info node = node_of(2);
	receive(1, &(struct msg){ .type = MSG_JOIN,
				  .join = { .node = &node, .memory = { .group_rank = -1 } } });
	ck_assert(did(COORDINATOR_HANG_UP));
	ck_assert_uint_eq(c.roster.count, 0);
	join(2);
	join(3);
	ck_assert_uint_eq(roster_linked(&c.roster), 2);
}

TEST(a_member_that_counts_its_links_down_is_not_left_behind)
{
	begin_plain(2, 3);
	struct node_info node = node_of(1);
	struct msg msg = { .type = MSG_JOIN,
			   .join = {
				   .node = &node, .attempt = 2, .memory = { .group_rank = -1 } } };
	receive(1, &msg);
	msg.join.attempt = 1;
	receive(1, &msg);
	ck_assert(did(COORDINATOR_HANG_UP));
	ck_assert_uint_eq(c.roster.count, 0);
}

TEST(a_join_on_the_link_of_a_member_that_was_silent_does_not_bring_it_back)
{
	begin_plain(2, 3);
	join(1);
	struct node_info node = node_of(1);
	node.period_ns = 0; /* as if its link could not fall silent: it is never old */
	now_ns += 10 * NS_PER_S;
	receive(1, &(struct msg){ .type = MSG_JOIN,
				  .join = { .node = &node, .memory = { .group_rank = -1 } } });
	ck_assert(did(COORDINATOR_HANG_UP));
	ck_assert_uint_eq(c.roster.count, 0);
}

TEST(a_join_with_a_ballot_that_no_job_reaches_is_cut_off)
{
	struct memory memory = remembering((struct ballot){ 5, BALLOT_MAX }, 2);
	begin_takeover(2);
	join_with(1, &memory);
	ck_assert(did(COORDINATOR_HANG_UP));
	memory = remembering((struct ballot){ BALLOT_MAX, 5 }, 2);
	join_with(2, &memory);
	ck_assert(did(COORDINATOR_HANG_UP));
	ck_assert_uint_eq(c.roster.count, 0);
	ck_assert(ballot_is_none(c.roster.heard.ballot));
}

TEST(the_address_a_host_is_seen_under_comes_first_however_many_it_has)
{
	struct node_info node = { .addr_count = 0 };
	for (uint8_t i = 1; i <= MSG_ADDRS_MAX + 1; i++) {
		node_add_addr(&node, &(struct msg_addr){ 4, { 10, 0, 0, i } });
		ck_assert_uint_eq(node.addrs[0].bytes[3], i);
	}
	ck_assert_uint_eq(node.addr_count, MSG_ADDRS_MAX);
	ck_assert_uint_eq(node.addrs[MSG_ADDRS_MAX - 1].bytes[3], 2);
	node_add_addr(&node, &(struct msg_addr){ 4, { 10, 0, 0, 5 } }); /* known: it moves */
	ck_assert_uint_eq(node.addr_count, MSG_ADDRS_MAX);
	ck_assert_uint_eq(node.addrs[0].bytes[3], 5);
	ck_assert_uint_eq(node.addrs[1].bytes[3], MSG_ADDRS_MAX + 1);
	ck_assert_uint_eq(node.addrs[MSG_ADDRS_MAX - 1].bytes[3], 2);
}

/* ---- what is told, word by word ---- */

static const struct msg *told(enum msg_type type)
{
	for (size_t i = 0; i < actions.count; i++)
		if (actions.items[i].type == COORDINATOR_SEND && actions.items[i].msg.type == type)
			return &actions.items[i].msg;
	return NULL;
}

TEST(a_stop_says_why)
{
	enter(COORDINATOR_RUNNING);
	report(1, MSG_FAILED);
	ck_assert_int_eq(told(MSG_STOP)->stop.why, STOP_FAILURE);
	enter(COORDINATOR_RUNNING);
	link_down(1, true);
	ck_assert_int_eq(told(MSG_STOP)->stop.why, STOP_MEMBERS);
	enter(COORDINATOR_RUNNING);
	report(1, MSG_DONE);
	report(2, MSG_DONE);
	ck_assert_int_eq(told(MSG_STOP)->stop.why, STOP_RULING);
}

TEST(the_end_comes_with_the_age_of_its_cause_and_what_else_is_known)
{
	enter(COORDINATOR_RUNNING);
	struct msg failed = { .type = MSG_FAILED, .ballot = c.roster.heard.ballot };
	failed.failed.cause = (struct cause){ .pid = 11, .no_restart = true, .age_ns = 0 };
	receive(1, &failed);
	uint64_t died_ns = now_ns;
	join(2);
	join(1);
	ck_assert_int_eq(c.state, COORDINATOR_CLOSING);
	c.stalled = true;
	join(2);
	now_ns += NS_PER_S / 2;
	join(1);
	ck_assert_int_eq(c.state, COORDINATOR_CLOSED);
	const struct msg *closed = told(MSG_CLOSED);
	ck_assert_int_eq(closed->closed.ruling, RULING_FAILED);
	ck_assert_uint_eq(closed->closed.cause.age_ns, now_ns - died_ns);
	ck_assert(closed->closed.stalled);
	ck_assert(!closed->closed.left);
}

TEST(a_cause_that_died_in_the_same_moment_is_replaced_by_none)
{
	enter(COORDINATOR_RUNNING);
	struct msg failed = { .type = MSG_FAILED, .ballot = c.roster.heard.ballot };
	failed.failed.cause = (struct cause){ .pid = 11, .age_ns = 0 };
	receive(1, &failed);
	failed.failed.cause = (struct cause){ .pid = 22, .age_ns = NS_PER_MS };
	receive(2, &failed);
	ck_assert_int_eq(c.cause.pid, 11);
}

TEST(a_failure_of_nobody_stops_nothing)
{
	enter(COORDINATOR_RUNNING);
	report(9, MSG_FAILED);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	ck_assert(!c.failed);
}

TEST(who_is_told_to_stop_is_stopping)
{
	enter(COORDINATOR_RUNNING);
	report(1, MSG_FAILED);
	for (size_t i = 0; i < c.roster.count; i++)
		ck_assert_int_eq(c.roster.members[i]->status, MEMBER_STOPPING);
}

TEST(every_state_of_a_coordinator_has_a_name)
{
	for (int i = 0; i < COORDINATOR_STATE_COUNT; i++)
		for (int j = 0; j <= i; j++) {
			const char *one = coordinator_state_name((enum coordinator_state)i);
			const char *other = coordinator_state_name((enum coordinator_state)j);
			ck_assert_ptr_nonnull(one);
			ck_assert_int_eq(strcmp(one, other) == 0, i == j);
		}
}

TEST(a_coordinator_is_settled_once_a_round_or_an_end_is_made)
{
	static const bool settled[COORDINATOR_STATE_COUNT] = { [COORDINATOR_RUNNING] = true,
							       [COORDINATOR_STOPPING] = true,
							       [COORDINATOR_CLOSING] = true,
							       [COORDINATOR_CLOSED] = true };
	for (int i = 0; i < COORDINATOR_STATE_COUNT; i++) {
		enter((enum coordinator_state)i);
		ck_assert_int_eq(coordinator_settled(&c), settled[i]);
	}
}

TEST(a_coordinator_that_has_stepped_down_waits_for_nothing)
{
	enter(COORDINATOR_DEPOSED);
	ck_assert_uint_eq(coordinator_deadline_ns(&c), NS_NEVER);
}

TEST(a_round_that_loses_its_majority_is_told_to_be_over)
{
	begin_plain(1, 3);
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	config.last_call_ns = 0;
	begin(&config, 3, 3);
	join_up_to(3);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	link_down(1, false);
	ck_assert_ptr_nonnull(noted(NOTE_STOPPED));
}

TEST(who_left_and_then_hangs_up_is_not_said_to_be_lost)
{
	enter(COORDINATOR_RUNNING);
	leave(1, LEAVE_SIGNAL, false);
	ck_assert_ptr_nonnull(noted(NOTE_LEFT));
	link_down(1, true);
	ck_assert_ptr_null(noted(NOTE_LOST));
	enter(COORDINATOR_RUNNING);
	leave(1, LEAVE_CLOSED, true);
	ck_assert_ptr_null(noted(NOTE_LEFT));
}

TEST(the_last_link_of_a_stopping_round_that_closes_lets_the_next_form)
{
	enter(COORDINATOR_RUNNING);
	report(1, MSG_FAILED);
	join(2);
	ck_assert_int_eq(c.state, COORDINATOR_STOPPING);
	link_down(1, true);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING); /* of node 2 alone */
	ck_assert_uint_eq(c.roster.heard.nodes, 1);
}

TEST(the_first_that_came_are_members_and_the_last_is_the_spare)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	config.last_call_ns = 0;
	begin(&config, 2, 2);
	join(3);
	join(1);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	join(2);
	report(3, MSG_FAILED);
	for (uint64_t link = 1; link <= 3; link++)
		join(link == 1 ? 3 : link == 3 ? 1 : 2);
	if (c.state != COORDINATOR_RUNNING)
		return; /* no restart was left */
	ck_assert(!roster_by_link(&c.roster, 2)->in_round);
}

TEST(newcomers_wait_for_the_next_round_once_a_member_is_done)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	config.last_call_ns = 0;
	begin(&config, 1, 3);
	join(1);
	join(2);
	ck_assert_uint_ne(c.scale_up_ns, NS_NEVER);
	report(1, MSG_DONE);
	ck_assert_int_ne(c.state, COORDINATOR_RUNNING);
	ck_assert_uint_eq(c.scale_up_ns, NS_NEVER);
}

TEST(messages_say_who_sends_them)
{
	for (int i = 0; i < MSG_TYPE_COUNT; i++)
		ck_assert_ptr_nonnull(msg_type_name((enum msg_type)i));
	static const enum msg_type up[] = { MSG_JOIN,  MSG_PING, MSG_FAILED, MSG_DONE,
					    MSG_LEAVE, MSG_ASK,	 MSG_ANSWER };
	static const enum msg_type down[] = { MSG_FORMED, MSG_STOP,  MSG_CLOSED,   MSG_REFUSED,
					      MSG_PONG,	  MSG_PEERS, MSG_QUESTION, MSG_REPLY };
	for (size_t i = 0; i < ARRAY_LEN(up); i++)
		ck_assert_msg(msg_from_agent(up[i]), "%s", msg_type_name(up[i]));
	for (size_t i = 0; i < ARRAY_LEN(down); i++)
		ck_assert_msg(!msg_from_agent(down[i]), "%s", msg_type_name(down[i]));
}

/* ---- what an agent remembers ---- */

TEST(a_memory_forgets_the_round_before_when_it_hears_of_the_next)
{
	const struct round_ref heard = { { 5, 9 }, 4 };
	struct memory memory = { .reached = 7,
				 .work = WORK_FAILED,
				 .ruling = RULING_DONE,
				 .left = true,
				 .heard = { { 5, 8 }, 4 } };
	memory_hear(&memory, &heard);
	ck_assert(ballot_eq(memory.heard.ballot, heard.ballot));
	ck_assert_uint_eq(memory.reached, 0);
	ck_assert_int_eq(memory.work, WORK_IDLE);
	ck_assert_int_eq(memory.ruling, RULING_NONE);
	ck_assert(!memory.left);
}

TEST(a_memory_has_its_last_rounds_and_that_of_the_base_for_as_long_as_it_counts)
{
	const struct round_ref base = { { 5, 1 }, 4 };
	struct memory memory = { .group_rank = -1 };
	for (uint64_t round = 1; round <= MEMORY_ROUNDS + 3; round++) {
		memory.ruling = RULING_FAILED;
		memory.coordinator_died = true;
		memory.reached = 3;
		memory_enter(&memory, &(struct round_ref){ { 5, round }, 4 }, &base);
		ck_assert_int_eq(memory.ruling, RULING_NONE);
		ck_assert(!memory.coordinator_died);
		ck_assert_uint_eq(memory.reached, 0);
		ck_assert(memory_was_in(&memory, (struct ballot){ 5, round }));
		ck_assert(memory_was_in(&memory, base.ballot));
	}
	uint64_t last = MEMORY_ROUNDS + 3;
	for (uint64_t i = 0; i + 1 < MEMORY_ROUNDS; i++)
		ck_assert(ballot_eq(memory.member_of[i], ((struct ballot){ 5, last - i })));
	ck_assert(ballot_eq(memory.member_of[MEMORY_ROUNDS - 1], base.ballot));
	const struct round_ref later = { { 5, last }, 4 };
	memory_enter(&memory, &(struct round_ref){ { 5, last + 1 }, 4 }, &later);
	ck_assert(!memory_was_in(&memory, base.ballot));
}
