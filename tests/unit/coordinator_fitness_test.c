/* The coordinator: nodes that are not fit, and wires between pairs. */
#include "unit.h"

#include <stdio.h>

#include "coordinator_rig.h"

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

TEST(a_clock_that_is_behind_is_said_to_be)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	config.local = (struct agent_id){ 1, 0 };
	begin(&config, 4, 4);
	for (uint64_t link = 1; link <= 4; link++)
		join_checked(link, 100, "2.13.0");
	for (uint64_t link = 2; link <= 3; link++)
		ping_wall(link, 0);
	ping_wall(4, 5 * (int64_t)NS_PER_S);
	ck_assert_str_eq(noted(NOTE_CLOCK)->refused, "5.000 s behind the middle of 4 nodes");
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
