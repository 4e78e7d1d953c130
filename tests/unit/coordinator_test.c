/* The coordinator with a few agents that say what the test wants: every cell of its table, and the
 * rules that need more than one step. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "core/rounds/coordinator.h"

static struct coordinator c;
static struct coordinator_actions actions;
static uint64_t now_ns;
static uint64_t under_way_ns; /* how long a message may have been */
static uint32_t min_nodes, max_nodes, max_restarts;

static struct note notes[32]; /* of the last step, apart from what it does */
static size_t note_count;

static void take_notes(void)
{
	size_t kept = 0;
	note_count = 0;
	for (size_t i = 0; i < actions.count; i++)
		if (actions.items[i].type != COORDINATOR_NOTE)
			actions.items[kept++] = actions.items[i];
		else if (note_count < ARRAY_LEN(notes))
			notes[note_count++] = actions.items[i].note;
	actions.count = kept;
}

static void step(const struct coordinator_event *event)
{
	actions.count = 0;
	now_ns += NS_PER_MS;
	coordinator_step(&c, event, now_ns, &actions);
	take_notes();
}

static void receive(uint64_t link, const struct msg *msg)
{
	step(&(struct coordinator_event){ .type = COORDINATOR_MSG,
					  .link = link,
					  .msg = msg,
					  .greeted_ns = now_ns - under_way_ns });
}

static void begin(const struct coordinator_config *config, uint32_t min, uint32_t max)
{
	now_ns = 1000 * NS_PER_S;
	under_way_ns = 0;
	min_nodes = min;
	max_nodes = max;
	coordinator_init(&c, config);
}

static struct node_info node_of(uint64_t link)
{
	struct node_info node = { .id = { link, 0 },
				  .min_nodes = min_nodes,
				  .max_nodes = max_nodes,
				  .nproc = 2,
				  .node_rank = -1,
				  .max_restarts = max_restarts,
				  .period_ns = NS_PER_S,
				  .lease_periods = 4,
				  .store_port = (uint16_t)link };
	snprintf(node.name, sizeof(node.name), "h%u", (unsigned)link);
	snprintf(node.store_host, sizeof(node.store_host), "h%u", (unsigned)link);
	return node;
}

/* The memory of an agent as this coordinator has made it, or of a new one. */
static struct memory memory_of(uint64_t link)
{
	const struct member *member = roster_by_id(&c.roster, (struct agent_id){ link, 0 });
	return member ? member->memory : (struct memory){ .group_rank = -1 };
}

static void join_with(uint64_t link, const struct memory *memory)
{
	struct node_info node = node_of(link);
	receive(link, &(struct msg){ .type = MSG_JOIN,
				     .ballot = memory->heard.ballot,
				     .join = { .node = &node, .memory = *memory } });
}

static void join(uint64_t link)
{
	struct memory memory = memory_of(link);
	if (c.state == COORDINATOR_CLOSING)
		memory.ruling = c.ruling;
	join_with(link, &memory);
}

static void report(uint64_t link, enum msg_type type)
{
	receive(link, &(struct msg){ .type = type, .ballot = c.roster.heard.ballot });
}

/* In answer to a PONG of the time `stamp_ns`. */
static void ping(uint64_t link, uint64_t stamp_ns)
{
	receive(link, &(struct msg){ .type = MSG_PING,
				     .ballot = c.roster.heard.ballot,
				     .ping = { .stamp = stamp_ns } });
}

static void leave(uint64_t link, enum leave_why why, bool empty)
{
	receive(link, &(struct msg){ .type = MSG_LEAVE,
				     .ballot = c.roster.heard.ballot,
				     .leave = { why, empty } });
}

static void link_down(uint64_t link, bool dead)
{
	step(&(struct coordinator_event){
		.type = COORDINATOR_LINK_DOWN, .link = link, .dead = dead });
}

static void timer(void)
{
	step(&(struct coordinator_event){ .type = COORDINATOR_TIMER });
}

/* Lets time pass as it does: pings every second, timers when they are due. */
static void wait_until(uint64_t until_ns, uint64_t links)
{
	while (now_ns < until_ns) {
		now_ns = MIN(now_ns + NS_PER_S, until_ns) - NS_PER_MS;
		for (uint64_t link = 1; link <= links; link++)
			ping(link, now_ns);
		timer();
	}
}

static uint32_t sent(enum msg_type type)
{
	uint32_t count = 0;
	for (size_t i = 0; i < actions.count; i++)
		count += actions.items[i].type == COORDINATOR_SEND &&
			 actions.items[i].msg.type == type;
	return count;
}

static bool did(enum coordinator_action_type type)
{
	for (size_t i = 0; i < actions.count; i++)
		if (actions.items[i].type == type)
			return true;
	return false;
}

static void enter(enum coordinator_state state)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	max_restarts = 1;
	begin(&config, 1, 2);
	join(1);
	if (state == COORDINATOR_GATHERING)
		return;
	join(2);
	if (state == COORDINATOR_STOPPING) {
		report(1, MSG_FAILED);
	} else if (state == COORDINATOR_CLOSING || state == COORDINATOR_CLOSED) {
		report(1, MSG_DONE);
		report(2, MSG_DONE);
		if (state == COORDINATOR_CLOSED) {
			join(1);
			join(2);
		}
	} else if (state == COORDINATOR_DEPOSED) {
		step(&(struct coordinator_event){ .type = COORDINATOR_SUPERSEDED });
	}
	ck_assert_int_eq(c.state, state);
}

enum stimulus {
	NEW_JOINS,
	MEMBER_JOINS,
	FAILED,
	DONE,
	LEAVES,
	LEAVES_SLOWLY,
	PING,
	RESET,
	UNREACHABLE,
	SILENCE,
	SUPERSEDED,
	HIGHER_BALLOT,
	STIMULUS_COUNT,
};

static void apply(enum stimulus stimulus)
{
	switch (stimulus) {
	case NEW_JOINS:
		join(7);
		break;
	case MEMBER_JOINS:
		join(1);
		break;
	case FAILED:
		report(1, MSG_FAILED);
		break;
	case DONE:
		report(1, MSG_DONE);
		break;
	case LEAVES:
		leave(1, LEAVE_SIGNAL, true);
		break;
	case LEAVES_SLOWLY:
		leave(1, LEAVE_SIGNAL, false);
		break;
	case PING:
		report(1, MSG_PING);
		break;
	case RESET:
		link_down(1, true);
		break;
	case UNREACHABLE:
		link_down(1, false);
		break;
	case SILENCE:
		now_ns += 5 * NS_PER_S;
		timer();
		break;
	case SUPERSEDED:
		step(&(struct coordinator_event){ .type = COORDINATOR_SUPERSEDED });
		break;
	case HIGHER_BALLOT:
		receive(1, &(struct msg){ .type = MSG_LEAVE,
					  .ballot = { UINT64_MAX, 1 },
					  .leave = { LEAVE_SUPERSEDED, true } });
		break;
	case STIMULUS_COUNT:
		break;
	}
}

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

TEST(a_ping_is_answered_in_every_state_that_has_members)
{
	for (enum coordinator_state state = 0; state < COORDINATOR_DEPOSED; state++) {
		enter(state);
		report(1, MSG_PING);
		ck_assert_uint_eq(sent(MSG_PONG), 1);
		coordinator_done(&c);
	}
}

TEST(the_host_of_the_store_hears_the_addresses_of_all_members_before_its_round)
{
	enum { ADDRS = 13, NODES = 5 };
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	begin(&config, NODES, NODES);
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

static void begin_takeover(uint32_t nodes)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	config.quorum = QUORUM_MAJORITY;
	begin(&config, 1, nodes);
}

static struct memory remembering(struct ballot ballot, uint32_t nodes)
{
	return (struct memory){ .heard = { ballot, nodes },
				.base = { ballot, nodes },
				.member_of = { ballot },
				.group_rank = -1,
				.coordinator_index = -1 };
}

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
	for (uint64_t link = 1; link <= 3; link++)
		join(link);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	link_down(1, true);
	ck_assert_int_eq(c.state, COORDINATOR_STOPPING);
	link_down(2, true);
	ck_assert(did(COORDINATOR_HANG_UP));
	ck_assert_int_eq(c.state, COORDINATOR_GATHERING);
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

TEST(half_of_the_members_do_not_close_before_the_others_had_time_to_return)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	config.quorum = QUORUM_MAJORITY;
	begin(&config, 1, 2);
	join(1);
	join(2);
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

TEST(a_host_lost_three_times_is_used_only_when_needed)
{
	enter(COORDINATOR_RUNNING);
	for (int i = 0; i < 3; i++) {
		ck_assert_uint_eq(c.roster.heard.nodes, 2);
		link_down(1, true);
		join(2);
		join(1);
		if (c.scale_up_ns != NS_NEVER)
			wait_until(c.scale_up_ns + NS_PER_S, 2);
		if (c.state == COORDINATOR_STOPPING)
			join(2);
	}
	struct node_info node = node_of(1);
	ck_assert(roster_by_id(&c.roster, node.id)->last_resort);
	ck_assert_uint_eq(c.roster.heard.nodes, 1);
}

TEST(an_old_join_is_ignored)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	begin(&config, 1, 1);
	under_way_ns = 5 * NS_PER_S;
	join(1);
	ck_assert(did(COORDINATOR_HANG_UP));
	ck_assert_uint_eq(c.roster.count, 0);
	under_way_ns = 4 * NS_PER_S;
	join(2);
	ck_assert_uint_eq(sent(MSG_FORMED), 1);
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
	for (uint64_t link = 1; link <= 3; link++)
		join(link);
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

TEST(two_agents_on_one_link_leave_no_member_behind)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	begin(&config, 2, 3);
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
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	begin(&config, 2, 3);
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
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	begin(&config, 2, 3);
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
	begin_takeover(5);
	struct memory memory = remembering((struct ballot){ 5, 4 }, 4);
	join_with(1, &memory);
	ck_assert_uint_eq(told_missing(1), 2);
	join(7); /* a newcomer does not count */
	ck_assert_uint_eq(told_missing(1), 2);
}
