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
static bool by_progress;

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

static void begin_plain(uint32_t min, uint32_t max)
{
	const struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	begin(&config, min, max);
}

static struct node_info node_of(uint64_t link)
{
	struct node_info node = { .id = { link, 0 },
				  .min_nodes = min_nodes,
				  .max_nodes = max_nodes,
				  .nproc = 2,
				  .node_rank = -1,
				  .max_restarts = max_restarts,
				  .by_progress = by_progress,
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

static void join_up_to(uint64_t last)
{
	for (uint64_t link = 1; link <= last; link++)
		join(link);
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
	max_restarts = 1;
	begin_plain(1, 2);
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

/* A host of two ranks tells of a step; the last of them did so at that time. */
static void pace(uint64_t link, uint64_t number, uint32_t rank, uint64_t at_ns, uint64_t error_ns)
{
	receive(link, &(struct msg){ .type = MSG_PACE,
				     .ballot = c.roster.heard.ballot,
				     .pace = { .error_ns = error_ns,
					       .count = 1,
					       .marks = { { .step = number,
							    .last_ns = at_ns,
							    .mean_ns = at_ns,
							    .rank = rank,
							    .ranks = 2 } } } });
}

/* Steps of two hosts, the second of which is always late; returns the number of the one after which
 * it is told so. The clock of the first may be wrong by so much in its first steps, and later. */
static uint64_t told_after(uint64_t first_error_ns, uint64_t error_ns)
{
	enter(COORDINATOR_RUNNING);
	for (size_t i = 0; i < c.roster.count; i++)
		c.roster.members[i]->paces = true;
	ck_assert_uint_eq(c.world_size, 4);
	for (uint64_t i = 0; i < 100; i++) {
		uint64_t at_ns = i * 20 * NS_PER_MS;
		pace(1, i, 1, at_ns, i < 5 ? first_error_ns : error_ns);
		pace(2, i, 3, at_ns + 6 * NS_PER_MS, 0);
		if (sent(MSG_LATE))
			return i;
	}
	return UINT64_MAX;
}

TEST(the_host_of_a_rank_that_holds_the_others_up_is_told)
{
	ck_assert_uint_lt(told_after(NS_PER_MS, NS_PER_MS), 100);
	ck_assert_uint_eq(actions.items[0].link, 2);
	ck_assert_uint_eq(actions.items[0].msg.late.news.rank, 3);
	ck_assert(actions.items[0].msg.late.news.begins);
	ck_assert_uint_eq(notes[0].kind, NOTE_LATE);
	ck_assert_str_eq(notes[0].name, "h2");
}

TEST(times_that_clocks_may_have_made_name_nobody)
{
	ck_assert_uint_eq(told_after(5 * NS_PER_MS, 5 * NS_PER_MS), UINT64_MAX);
}

TEST(a_clock_that_was_hardly_known_at_first_hides_no_later_steps)
{
	ck_assert_uint_lt(told_after(NS_PER_S, NS_PER_MS), 30);
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
	join_up_to(3);
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

/* The first member's report of a hang that a worker of the second one causes. */
static void report_hang(bool exclude)
{
	struct msg failed = { .type = MSG_FAILED, .ballot = c.roster.heard.ballot };
	struct node_info culprit = node_of(2);
	const struct member *member = roster_by_id(&c.roster, culprit.id);
	failed.failed.blame = (struct blame){ .named = true,
					      .rank = member->rank_base + 1,
					      .exclude = exclude,
					      .text = "rank 3 never came" };
	receive(1, &failed);
}

TEST(all_members_are_told_who_held_the_others_up)
{
	enter(COORDINATOR_RUNNING);
	report_hang(false);
	ck_assert_uint_eq(sent(MSG_STOP), 1);
	ck_assert_str_eq(actions.items[0].msg.stop.blame.text, "rank 3 never came");
	join(1);
	join(2);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	ck_assert_str_eq(c.blame.text, "");
}

TEST(a_spare_replaces_the_host_of_the_culprit_if_that_is_asked_for)
{
	for (int exclude = 0; exclude < 2; exclude++) {
		enter(COORDINATOR_RUNNING);
		join(3);
		report_hang(exclude);
		join(1);
		join(2);
		ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
		ck_assert_uint_eq(c.roster.heard.nodes, 2);
		ck_assert(roster_by_link(&c.roster, 1)->in_round);
		ck_assert_int_eq(roster_by_link(&c.roster, 2)->in_round, !exclude);
		ck_assert_int_eq(roster_by_link(&c.roster, 3)->in_round, exclude);
		coordinator_done(&c);
	}
}

TEST(without_a_spare_the_host_of_the_culprit_stays)
{
	max_restarts = 1;
	begin_plain(2, 2);
	join_up_to(2);
	report_hang(true);
	join(1);
	join(2);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	ck_assert_uint_eq(c.roster.heard.nodes, 2);
}

/* ---- nodes that are not fit ---- */

static void join_checked(uint64_t link, double speed, const char *torch)
{
	struct node_info node = node_of(link);
	struct memory memory = memory_of(link);
	node.checks.figure_count = 1;
	node.checks.figures[0] = (struct digest_figure){ "cpu_speed", speed };
	node.checks.fact_count = 1;
	node.checks.facts[0] = (struct digest_fact){ .name = "torch" };
	snprintf(node.checks.facts[0].value, DIGEST_FACT_MAX, "%s", torch);
	receive(link, &(struct msg){ .type = MSG_JOIN,
				     .ballot = memory.heard.ballot,
				     .join = { .node = &node, .memory = memory } });
}

static const struct note *noted(enum note_kind kind)
{
	for (size_t i = 0; i < note_count; i++)
		if (notes[i].kind == kind)
			return &notes[i];
	return NULL;
}

TEST(a_slow_node_is_named_and_the_spare_takes_its_place)
{
	begin_plain(3, 3);
	join_checked(1, 100, "2.13.0");
	join_checked(2, 20, "2.13.0");
	join_checked(3, 101, "2.13.0");
	/* For the spare it is worth waiting. */
	ck_assert_int_eq(c.state, COORDINATOR_GATHERING);
	ck_assert_ptr_nonnull(noted(NOTE_UNFIT));
	ck_assert_str_eq(noted(NOTE_UNFIT)->name, "h2");
	ck_assert_str_eq(noted(NOTE_UNFIT)->refused, "cpu_speed 20 GFLOP/s, median of 3 nodes 100");
	join_checked(4, 99, "2.13.0");
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	ck_assert(!roster_by_link(&c.roster, 2)->in_round);
	ck_assert(!noted(NOTE_UNFIT) && !noted(NOTE_NEEDED));
}

static void ping_wall(uint64_t link, int64_t offset_ns)
{
	receive(link, &(struct msg){ .type = MSG_PING,
				     .ballot = c.roster.heard.ballot,
				     .ping = { .wall = { offset_ns, NS_PER_MS } } });
}

TEST(a_wrong_clock_is_named_once_whether_it_is_a_nodes_or_the_coordinators)
{
	const int64_t far_ns = 5 * (int64_t)NS_PER_S;
	for (int own = 0; own < 2; own++) {
		struct coordinator_config config = COORDINATOR_CONFIG_INIT;
		config.local = (struct agent_id){ 1, 0 };
		begin(&config, 4, 4);
		for (uint64_t link = 1; link <= 4; link++)
			join_checked(link, 100, "2.13.0");
		for (uint64_t link = 2; link <= 3; link++) {
			ping_wall(link, own ? far_ns : 0);
			ck_assert_ptr_null(own && link == 3 ? NULL : noted(NOTE_CLOCK));
		}
		if (!own)
			ping_wall(4, -far_ns);
		ck_assert_ptr_nonnull(noted(NOTE_CLOCK));
		ck_assert_str_eq(noted(NOTE_CLOCK)->name, own ? "h1" : "h4");
		ck_assert_str_eq(noted(NOTE_CLOCK)->refused,
				 own ? "5.000 s ahead of the middle of 3 nodes"
				     : "5.000 s ahead of the middle of 4 nodes");
		ping_wall(4, own ? far_ns : -far_ns);
		ck_assert_ptr_null(noted(NOTE_CLOCK));
		coordinator_done(&c);
	}
}

/* ---- pairs ---- */

static void join_paired(uint64_t link)
{
	struct node_info node = node_of(link);
	struct memory memory = memory_of(link);
	node.pair_port = (uint16_t)(1000 + link);
	node.pair_ms = 100;
	receive(link, &(struct msg){ .type = MSG_JOIN,
				     .ballot = memory.heard.ballot,
				     .join = { .node = &node, .memory = memory } });
}

static void tell_paired(uint64_t link, uint32_t serial, bool thin)
{
	receive(link, &(struct msg){ .type = MSG_PAIRED,
				     .ballot = c.roster.heard.ballot,
				     .paired = { .serial = serial,
						 .known = true,
						 .bandwidth = thin ? 1000000 : 900000000,
						 .latency_ns = 50000 } });
}

/* The nodes that were told to call answer, unless they hang; the wire of node `slow` is. */
static void measure_round(uint64_t slow, uint64_t hangs)
{
	struct msg_pair calls[8];
	uint64_t links[8];
	size_t count = 0;
	for (size_t i = 0; i < actions.count; i++) {
		const struct coordinator_action *action = &actions.items[i];
		if (action->type != COORDINATOR_SEND || action->msg.type != MSG_PAIR ||
		    !action->msg.pair.calls)
			continue;
		links[count] = action->link;
		calls[count++] = action->msg.pair;
	}
	ck_assert_uint_gt(count, 0);
	for (size_t i = 0; i < count; i++) {
		bool thin = links[i] == slow || calls[i].port == 1000 + slow;
		if (links[i] != hangs)
			tell_paired(links[i], calls[i].serial, thin);
	}
}

TEST(a_node_with_a_slow_wire_is_told_from_its_partner_and_left_out)
{
	for (uint64_t slow = 1; slow <= 4; slow++) {
		struct coordinator_config config = COORDINATOR_CONFIG_INIT;
		const char name[] = { 'h', (char)('0' + slow), '\0' };
		begin(&config, 3, 4);
		for (uint64_t link = 1; link <= 4; link++)
			join_paired(link);
		measure_round(slow, 0);
		ck_assert_int_eq(c.state, COORDINATOR_GATHERING);
		measure_round(slow, 0);
		ck_assert_ptr_nonnull(noted(NOTE_UNFIT));
		ck_assert_str_eq(noted(NOTE_UNFIT)->name, name);
		ck_assert_str_eq(noted(NOTE_UNFIT)->refused,
				 "pair_bandwidth 1 MB/s, median of 4 nodes 900");
		/* It says nothing of its wire itself, and stays out when all join again. */
		wait_until(now_ns + config.last_call_ns, 4);
		ck_assert_uint_eq(c.roster.heard.nodes, 3);
		step(&(struct coordinator_event){
			.type = COORDINATOR_LINK_DOWN, .link = slow == 1 ? 2 : 1, .dead = true });
		for (uint64_t link = 1; link <= 4; link++)
			if (link != (slow == 1 ? 2 : 1))
				join_paired(link);
		ck_assert(roster_by_link(&c.roster, slow)->bad);
		coordinator_done(&c);
	}
}

TEST(wires_are_measured_once_and_again_after_a_failure)
{
	max_restarts = 3;
	begin_plain(4, 4);
	for (uint64_t link = 1; link <= 4; link++)
		join_paired(link);
	measure_round(0, 0);
	measure_round(0, 0);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	ck_assert_ptr_null(noted(NOTE_UNFIT));
	report(1, MSG_FAILED);
	for (uint64_t link = 1; link <= 4; link++)
		join_paired(link);
	ck_assert_int_eq(c.state, COORDINATOR_GATHERING);
	measure_round(0, 0);
	measure_round(0, 0);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
}

TEST(a_measurement_that_hangs_keeps_no_round_from_forming)
{
	begin_plain(4, 4);
	for (uint64_t link = 1; link <= 4; link++)
		join_paired(link);
	measure_round(2, 1);
	ck_assert_int_eq(c.state, COORDINATOR_GATHERING);
	ck_assert_uint_le(coordinator_deadline_ns(&c), c.pairing.deadline_ns);
	wait_until(now_ns + 10 * NS_PER_S, 4);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	ck_assert_ptr_null(noted(NOTE_UNFIT));
}

TEST(an_answer_about_earlier_pairs_does_not_count_for_the_pairs_of_now)
{
	begin_plain(4, 4);
	for (uint64_t link = 1; link <= 4; link++)
		join_paired(link);
	measure_round(0, 0);
	const uint32_t serial = c.pairing.serial;
	for (uint64_t link = 1; link <= 4; link++) {
		tell_paired(link, serial - 1, true);
		ck_assert_int_eq(c.state, COORDINATOR_GATHERING);
	}
	for (uint64_t link = 1; link <= 4; link++) {
		tell_paired(link, serial, false);
		ck_assert_ptr_null(noted(NOTE_UNFIT));
	}
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
}

TEST(a_node_that_answers_twice_does_not_end_the_measurement_of_others)
{
	begin_plain(4, 4);
	for (uint64_t link = 1; link <= 4; link++)
		join_paired(link);
	const uint32_t serial = c.pairing.serial;
	ck_assert_uint_eq(c.pairing.waiting, 2);
	tell_paired(1, serial, false);
	tell_paired(1, serial, false);
	ck_assert_uint_eq(c.pairing.serial, serial);
	tell_paired(3, serial, false);
	ck_assert_uint_eq(c.pairing.serial, serial + 1);
}

TEST(a_node_that_is_not_fit_takes_part_where_min_needs_it)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	begin(&config, 3, 3);
	join_checked(1, 100, "2.13.0");
	join_checked(2, 20, "2.13.0");
	join_checked(3, 101, "2.13.0");
	wait_until(now_ns + config.last_call_ns + NS_PER_S, 3);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	ck_assert_uint_eq(c.roster.heard.nodes, 3);
}

TEST(a_node_whose_new_checks_are_well_is_fit_again)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	config.last_call_ns = 0;
	begin(&config, 2, 3);
	max_restarts = 5;
	join_checked(1, 100, "2.13.0");
	join_checked(2, 100, "2.13.0");
	join_checked(3, 20, "2.13.0");
	wait_until(now_ns + 20 * NS_PER_S, 3);
	ck_assert(roster_by_link(&c.roster, 3)->bad);
	ck_assert_uint_eq(c.roster.heard.nodes, 2);
	join_checked(3, 100, "2.13.0");
	wait_until(now_ns + 20 * NS_PER_S, 3);
	join_checked(1, 100, "2.13.0");
	join_checked(2, 100, "2.13.0");
	ck_assert_uint_eq(c.roster.heard.nodes, 3);
	ck_assert(!roster_by_link(&c.roster, 3)->bad);
}

TEST(a_slow_newcomer_does_not_end_a_round)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	config.last_call_ns = 0;
	begin(&config, 1, 4);
	join_checked(1, 100, "2.13.0");
	wait_until(now_ns + NS_PER_S, 1);
	join_checked(2, 100, "2.13.0");
	join_checked(3, 102, "2.13.0");
	wait_until(now_ns + 6 * NS_PER_S, 3);
	join_checked(1, 100, "2.13.0");
	ck_assert_uint_eq(c.roster.heard.nodes, 3);
	join_checked(4, 20, "2.13.0");
	wait_until(now_ns + 60 * NS_PER_S, 4);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	ck_assert_uint_eq(c.roster.heard.nodes, 3);
	ck_assert(roster_by_link(&c.roster, 4)->bad);
}

TEST(nodes_that_differ_without_a_majority_are_told_of_and_all_take_part)
{
	begin_plain(2, 2);
	join_checked(1, 100, "2.13.0");
	join_checked(2, 100, "2.12.0");
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	ck_assert_ptr_nonnull(noted(NOTE_DIFFERENT));
	ck_assert_str_eq(noted(NOTE_DIFFERENT)->refused,
			 "torch: 2.13.0 on 1 of 2 nodes, 2.12.0 on another");
	ck_assert(!noted(NOTE_UNFIT));
}

TEST(an_excluded_host_waits_and_never_gets_workers)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	config.last_call_ns = 0;
	begin(&config, 1, 2);
	struct node_info node = node_of(1);
	struct memory memory = memory_of(1);
	node.excluded = true;
	receive(1, &(struct msg){ .type = MSG_JOIN, .join = { .node = &node, .memory = memory } });
	wait_until(now_ns + 60 * NS_PER_S, 1);
	ck_assert_int_eq(c.state, COORDINATOR_GATHERING);
	join(2);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	wait_until(now_ns + 60 * NS_PER_S, 2);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	ck_assert_uint_eq(c.roster.heard.nodes, 1);
	ck_assert(!roster_by_link(&c.roster, 1)->in_round);
}

/* The first member's worker of `rank` has failed; both join again. */
static void strike(const char *host, int32_t rank)
{
	struct msg failed = { .type = MSG_FAILED, .ballot = c.roster.heard.ballot };
	failed.failed.cause.rank = rank;
	snprintf(failed.failed.cause.name, MSG_NAME_MAX, "%s", host);
	receive(host[1] - '0', &failed);
	bool was_in[4];
	for (uint64_t link = 1; link <= 3; link++)
		was_in[link] = roster_by_link(&c.roster, link)->in_round;
	for (uint64_t link = 1; link <= 3; link++) {
		struct node_info node = node_of(link);
		struct memory memory = memory_of(link);
		if (!was_in[link])
			continue;
		node.strikes = 2;
		node.cool_down_ns = 600 * NS_PER_S;
		receive(link, &(struct msg){ .type = MSG_JOIN,
					     .ballot = memory.heard.ballot,
					     .join = { .node = &node, .memory = memory } });
	}
}

TEST(a_host_whose_workers_keep_dying_gives_way_to_a_spare)
{
	max_restarts = 9;
	begin_plain(2, 2);
	join_up_to(3);
	strike("h2", 2);
	ck_assert(roster_by_link(&c.roster, 2)->in_round);
	strike("h2", 3);
	ck_assert_ptr_nonnull(noted(NOTE_UNFIT));
	ck_assert(!roster_by_link(&c.roster, 2)->in_round);
	ck_assert(roster_by_link(&c.roster, 3)->in_round);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
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

/* ---- an arbiter's lease ---- */

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
	coordinator_done(&c);
	begin_takeover(5);
	struct memory memory = remembering((struct ballot){ 5, 4 }, 4);
	join_with(1, &memory);
	ck_assert_uint_eq(told_missing(1), 2);
	join(7); /* a newcomer does not count */
	ck_assert_uint_eq(told_missing(1), 2);
}
