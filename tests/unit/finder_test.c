/* Who coordinates, with three endpoints: every row of the finder's table. */
#include "unit.h"

#include "core/rounds/finder.h"

static struct finder finder;
static struct finder_actions actions;
static uint64_t now_ns;

static void step(const struct finder_event *event)
{
	actions.count = 0;
	finder_step(&finder, event, now_ns, &actions);
}

static void start(int32_t own)
{
	now_ns = 1000 * NS_PER_S;
	finder_init(&finder, &(struct finder_config){
				     .count = 3, .own = own, .failover_after_ns = 10 * NS_PER_S });
	step(&(struct finder_event){ .type = FINDER_START });
}

static void answer(uint32_t index, enum finder_answer answer, struct ballot ballot)
{
	step(&(struct finder_event){ .type = FINDER_ANSWER,
				     .index = index,
				     .probe = finder.probe,
				     .answer = answer,
				     .ballot = ballot });
}

static bool did(enum finder_action_type type)
{
	for (size_t i = 0; i < actions.count; i++)
		if (actions.items[i].type == type)
			return true;
	return false;
}

TEST(a_search_asks_all_others_and_joins_a_coordinator_whatever_its_place)
{
	start(0);
	ck_assert_uint_eq(actions.count, 2);
	answer(1, FINDER_REFUSED, BALLOT_NONE);
	ck_assert_int_eq(finder.state, FINDER_LOOKING);
	answer(2, FINDER_COORDINATES, BALLOT_NONE);
	ck_assert(did(FINDER_CONNECT));
	ck_assert_int_eq(finder.state, FINDER_LINKED);
}

/* Two that misread each other: one ends each link as soon as it stands. */
TEST(links_that_end_at_once_are_not_made_again_and_again_at_once)
{
	unsigned links = 0;
	start(0);
	for (uint64_t end_ns = now_ns + 10 * NS_PER_S; now_ns < end_ns; now_ns += NS_PER_MS) {
		if (now_ns >= finder_deadline_ns(&finder))
			step(&(struct finder_event){ .type = FINDER_TIMER });
		if (finder.state == FINDER_LOOKING) {
			answer(1, FINDER_REFUSED, BALLOT_NONE);
			answer(2, FINDER_COORDINATES, BALLOT_NONE);
		}
		if (finder.state != FINDER_LINKED)
			continue;
		links++;
		step(&(struct finder_event){ .type = FINDER_LOST, .linked = true });
		ck_assert(did(FINDER_PROBE));
	}
	ck_assert_uint_ge(links, 8);
	ck_assert_uint_le(links, 13);
}

TEST(a_link_that_lasted_is_made_again_at_once)
{
	start(0);
	for (int i = 0; i < 10; i++) {
		answer(1, FINDER_REFUSED, BALLOT_NONE);
		answer(2, FINDER_COORDINATES, BALLOT_NONE);
		ck_assert_int_eq(finder.state, FINDER_LINKED);
		now_ns += FINDER_BRIEF_NS;
		step(&(struct finder_event){ .type = FINDER_LOST, .linked = true });
	}
}

TEST(the_first_endpoint_coordinates_when_no_other_does)
{
	start(0);
	answer(1, FINDER_STANDBY, BALLOT_NONE);
	answer(2, FINDER_REFUSED, BALLOT_NONE);
	ck_assert(did(FINDER_COORDINATE));
	ck_assert_uint_eq(actions.items[0].dead_indexes, 4);
}

TEST(a_later_endpoint_waits_for_an_earlier_one_that_lives_or_has_just_gone_silent)
{
	start(1);
	answer(2, FINDER_REFUSED, BALLOT_NONE);
	answer(0, FINDER_STANDBY, BALLOT_NONE);
	ck_assert_int_eq(finder.state, FINDER_LOOKING);
	answer(0, FINDER_SILENT, BALLOT_NONE);
	ck_assert_int_eq(finder.state, FINDER_LOOKING);
	for (int i = 0; i < 10; i++) {
		now_ns += FINDER_INTERVAL_NS;
		step(&(struct finder_event){ .type = FINDER_TIMER });
		if (finder.state == FINDER_COORDINATING)
			break;
		answer(0, FINDER_SILENT, BALLOT_NONE);
		answer(2, FINDER_REFUSED, BALLOT_NONE);
	}
	ck_assert_int_eq(finder.state, FINDER_COORDINATING);
	ck_assert_uint_ge(now_ns, 1000 * NS_PER_S + 10 * NS_PER_S);
}

TEST(an_endpoint_that_was_silent_before_it_refused_is_not_known_to_have_died_with_us)
{
	start(1);
	answer(0, FINDER_SILENT, BALLOT_NONE);
	answer(0, FINDER_REFUSED, BALLOT_NONE);
	answer(2, FINDER_REFUSED, BALLOT_NONE);
	ck_assert(did(FINDER_COORDINATE));
	ck_assert_uint_eq(actions.items[0].dead_indexes, 4);
}

TEST(what_was_silent_in_one_search_is_not_dead_in_the_next_unless_there_was_a_link_between)
{
	for (int linked = 0; linked < 2; linked++) {
		start(-1);
		answer(0, FINDER_SILENT, BALLOT_NONE);
		answer(1, FINDER_COORDINATES, BALLOT_NONE);
		ck_assert_uint_eq(actions.items[0].dead_indexes, 0);
		step(&(struct finder_event){ .type = FINDER_LOST, .linked = linked });
		answer(0, FINDER_REFUSED, BALLOT_NONE);
		answer(1, FINDER_STANDBY, BALLOT_NONE);
		answer(2, FINDER_COORDINATES, BALLOT_NONE);
		ck_assert(did(FINDER_CONNECT));
		ck_assert_uint_eq(actions.items[0].dead_indexes, linked ? 1 : 0);
	}
}

TEST(an_agent_that_lost_its_coordinator_looks_at_all_endpoints_before_it_links_to_one)
{
	start(-1);
	answer(0, FINDER_COORDINATES, BALLOT_NONE);
	ck_assert(did(FINDER_CONNECT)); /* the first time there is nothing to witness */
	step(&(struct finder_event){ .type = FINDER_LOST, .linked = true });
	answer(1, FINDER_COORDINATES, BALLOT_NONE);
	answer(2, FINDER_STANDBY, BALLOT_NONE);
	ck_assert(!did(FINDER_CONNECT));
	answer(0, FINDER_REFUSED, BALLOT_NONE);
	ck_assert(did(FINDER_CONNECT));
	ck_assert_uint_eq(actions.items[0].index, 1);
	ck_assert_uint_eq(actions.items[0].dead_indexes, 1);
}

TEST(an_endpoint_that_does_not_answer_delays_a_link_by_one_probe_at_most)
{
	start(-1);
	answer(0, FINDER_COORDINATES, BALLOT_NONE);
	step(&(struct finder_event){ .type = FINDER_LOST, .linked = true });
	answer(1, FINDER_COORDINATES, BALLOT_NONE);
	now_ns = finder.next_probe_ns;
	step(&(struct finder_event){ .type = FINDER_TIMER });
	ck_assert(did(FINDER_CONNECT));
	ck_assert_uint_eq(actions.items[0].dead_indexes, 0);
}

TEST(an_agent_without_an_endpoint_never_coordinates)
{
	start(-1);
	ck_assert_uint_eq(actions.count, 3);
	for (uint32_t i = 0; i < 3; i++)
		answer(i, FINDER_REFUSED, BALLOT_NONE);
	ck_assert_int_eq(finder.state, FINDER_LOOKING);
}

TEST(late_answers_are_ignored)
{
	start(0);
	answer(1, FINDER_REFUSED, BALLOT_NONE);
	now_ns += 60 * NS_PER_S;
	answer(2, FINDER_REFUSED, BALLOT_NONE);
	ck_assert_int_eq(finder.state, FINDER_LOOKING);
}

TEST(a_lost_link_starts_the_search_again)
{
	start(0);
	answer(2, FINDER_COORDINATES, BALLOT_NONE);
	step(&(struct finder_event){ .type = FINDER_LOST });
	ck_assert_int_eq(finder.state, FINDER_LOOKING);
	ck_assert(did(FINDER_PROBE));
}

TEST(a_coordinator_without_a_round_gives_way_to_a_better_claim_only)
{
	start(1);
	answer(0, FINDER_REFUSED, BALLOT_NONE);
	answer(2, FINDER_REFUSED, BALLOT_NONE);
	now_ns += FINDER_INTERVAL_NS;
	step(&(struct finder_event){ .type = FINDER_TIMER });
	ck_assert(did(FINDER_PROBE));
	answer(2, FINDER_COORDINATES, BALLOT_NONE);
	ck_assert(!did(FINDER_STEP_DOWN)); /* same ballot, later endpoint */
	answer(0, FINDER_COORDINATES, BALLOT_NONE);
	ck_assert(did(FINDER_STEP_DOWN));
	answer(2, FINDER_COORDINATES, (struct ballot){ 1, 1 });
	ck_assert(did(FINDER_STEP_DOWN));
	step(&(struct finder_event){ .type = FINDER_LOST });
	ck_assert_int_eq(finder.state, FINDER_LOOKING);
}

/* Probes again, and says what the finder does then. */
static void meet(enum finder_answer said, bool settled)
{
	now_ns += FINDER_INTERVAL_NS;
	step(&(struct finder_event){ .type = FINDER_TIMER });
	step(&(struct finder_event){ .type = FINDER_ANSWER,
				     .index = 2,
				     .probe = finder.probe,
				     .answer = said,
				     .settled = settled,
				     .own_ballot = { 1, 1 } });
}

TEST(a_better_claim_gives_way_to_a_coordinator_that_stays)
{
	start(1);
	answer(0, FINDER_REFUSED, BALLOT_NONE);
	answer(2, FINDER_REFUSED, BALLOT_NONE);
	uint64_t first_ns = now_ns + FINDER_INTERVAL_NS;
	for (meet(FINDER_COORDINATES, false); !did(FINDER_STEP_DOWN);
	     meet(FINDER_COORDINATES, false))
		ck_assert_uint_lt(now_ns, first_ns + 10 * NS_PER_S);
	ck_assert_uint_ge(now_ns, first_ns + 10 * NS_PER_S);
}

TEST(a_better_claim_does_not_give_way_to_one_that_comes_and_goes)
{
	start(1);
	answer(0, FINDER_REFUSED, BALLOT_NONE);
	answer(2, FINDER_REFUSED, BALLOT_NONE);
	for (unsigned i = 0; i < 30; i++) {
		meet(i % 5 == 4 ? FINDER_STANDBY : FINDER_COORDINATES, false);
		ck_assert(!did(FINDER_STEP_DOWN));
	}
	for (unsigned i = 0; i < 30; i++) {
		meet(FINDER_COORDINATES, i % 5 == 4); /* meanwhile we had a round */
		ck_assert(!did(FINDER_STEP_DOWN));
	}
}

TEST(a_coordinator_with_a_round_probes_no_endpoint)
{
	start(0);
	answer(1, FINDER_REFUSED, BALLOT_NONE);
	answer(2, FINDER_REFUSED, BALLOT_NONE);
	now_ns += FINDER_INTERVAL_NS;
	step(&(struct finder_event){ .type = FINDER_TIMER, .settled = true });
	ck_assert_uint_eq(actions.count, 0);
	ck_assert_uint_gt(finder_deadline_ns(&finder), now_ns);
}

TEST(a_search_goes_on_soon_when_all_have_answered)
{
	start(-1);
	answer(0, FINDER_REFUSED, BALLOT_NONE);
	answer(1, FINDER_REFUSED, BALLOT_NONE);
	ck_assert_uint_eq(finder_deadline_ns(&finder), now_ns + FINDER_INTERVAL_NS);
	answer(2, FINDER_STANDBY, BALLOT_NONE);
	ck_assert_uint_eq(finder_deadline_ns(&finder), now_ns + FINDER_PACE_FIRST_NS);
}

TEST(a_search_that_takes_long_slows_down)
{
	start(-1);
	for (uint64_t pace_ns = FINDER_PACE_FIRST_NS; pace_ns < 4 * FINDER_PACE_NS; pace_ns *= 2) {
		for (uint32_t i = 0; i < 3; i++)
			answer(i, FINDER_STANDBY, BALLOT_NONE);
		ck_assert_uint_eq(finder_deadline_ns(&finder),
				  now_ns + MIN(pace_ns, FINDER_PACE_NS));
		now_ns = finder_deadline_ns(&finder);
		step(&(struct finder_event){ .type = FINDER_TIMER });
	}
}

TEST(a_new_owner_of_an_endpoint_probes_the_others_again_before_it_takes_over)
{
	start(-1);
	for (uint32_t i = 0; i < 3; i++)
		answer(i, i ? FINDER_STANDBY : FINDER_REFUSED, BALLOT_NONE);
	step(&(struct finder_event){ .type = FINDER_OWN, .index = 0 });
	ck_assert(!did(FINDER_COORDINATE));
	ck_assert_uint_eq(actions.count, 2);
	answer(1, FINDER_STANDBY, BALLOT_NONE);
	answer(2, FINDER_STANDBY, BALLOT_NONE);
	ck_assert(did(FINDER_COORDINATE));
}
