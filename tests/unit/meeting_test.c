/* How a host of a batch finds the coordinator: the finder, an arbiter's word, and the link. */
#include "unit.h"

#include "core/deal/meeting.h"

static struct meeting meeting;
static struct meeting_actions actions;
static uint64_t now_ns;

static void step(struct meeting_event event)
{
	actions.count = 0;
	meeting_step(&meeting, &event, now_ns, &actions);
}

static void start(bool arbiter)
{
	now_ns = 1000 * NS_PER_S;
	meeting_init(&meeting,
		     &(struct meeting_config){ .arbiter = arbiter,
					       .finder = { .count = arbiter ? 0 : 2,
							   .own = -1,
							   .failover_after_ns = 10 * NS_PER_S } });
}

static void answer(int32_t index, enum finder_answer answer)
{
	step((struct meeting_event){ .type = MEETING_EV_ANSWER,
				     .index = index,
				     .probe = meeting.finder.probe,
				     .answer = answer });
}

static bool did(enum meeting_action_type type)
{
	for (size_t i = 0; i < actions.count; i++)
		if (actions.items[i].type == type)
			return true;
	return false;
}

TEST(a_host_without_an_endpoint_probes_and_connects_to_the_one_that_coordinates)
{
	start(false);
	ck_assert_uint_eq(meeting_deadline_ns(&meeting), NS_NEVER);
	step((struct meeting_event){ .type = MEETING_EV_LISTENING, .index = -1 });
	ck_assert_uint_eq(actions.count, 2);
	ck_assert(did(MEETING_DO_PROBE));
	answer(1, FINDER_COORDINATES);
	ck_assert(did(MEETING_DO_CONNECT));
	ck_assert_int_eq(actions.items[0].index, 1);
	ck_assert(!meeting_coordinates(&meeting));
}

TEST(the_owner_of_the_first_endpoint_coordinates_once)
{
	start(false);
	step((struct meeting_event){ .type = MEETING_EV_LISTENING, .index = 0 });
	answer(1, FINDER_STANDBY);
	ck_assert(did(MEETING_DO_COORDINATE));
	ck_assert(meeting_coordinates(&meeting));
	answer(1, FINDER_COORDINATES); /* it has the result file: it does not step down */
	ck_assert_uint_eq(actions.count, 0);
}

TEST(who_withdraws_searches_again_and_may_coordinate_later)
{
	start(false);
	step((struct meeting_event){ .type = MEETING_EV_LISTENING, .index = 0 });
	answer(1, FINDER_SILENT);
	ck_assert(did(MEETING_DO_COORDINATE));
	step((struct meeting_event){ .type = MEETING_EV_WITHDRAW });
	ck_assert(!meeting_coordinates(&meeting));
	now_ns += MEETING_RETRY_NS;
	step((struct meeting_event){ .type = MEETING_EV_TIMER });
	ck_assert(did(MEETING_DO_PROBE));
	answer(1, FINDER_COORDINATES);
	ck_assert(did(MEETING_DO_CONNECT));
	step((struct meeting_event){ .type = MEETING_EV_LINK_UP });
	step((struct meeting_event){ .type = MEETING_EV_LINK_DOWN });
	now_ns += MEETING_RETRY_NS;
	step((struct meeting_event){ .type = MEETING_EV_TIMER });
	answer(1, FINDER_REFUSED);
	ck_assert(did(MEETING_DO_COORDINATE));
}

TEST(who_withdraws_tries_again_while_the_arbiter_names_it)
{
	start(true);
	step((struct meeting_event){ .type = MEETING_EV_TERM, .here = true });
	step((struct meeting_event){ .type = MEETING_EV_WITHDRAW });
	now_ns += MEETING_RETRY_NS;
	step((struct meeting_event){ .type = MEETING_EV_TIMER });
	ck_assert(did(MEETING_DO_COORDINATE));
	step((struct meeting_event){ .type = MEETING_EV_WITHDRAW });
	step((struct meeting_event){ .type = MEETING_EV_TERM, .here = false });
	ck_assert(did(MEETING_DO_CONNECT));
	step((struct meeting_event){ .type = MEETING_EV_LINK_DOWN });
	now_ns += MEETING_RETRY_NS;
	step((struct meeting_event){ .type = MEETING_EV_TIMER });
	ck_assert(did(MEETING_DO_CONNECT));
}

TEST(an_endpoint_that_is_had_later_counts)
{
	start(false);
	step((struct meeting_event){ .type = MEETING_EV_LISTENING, .index = -1 });
	step((struct meeting_event){ .type = MEETING_EV_LISTENING, .index = 0 });
	ck_assert(did(MEETING_DO_PROBE));
	answer(1, FINDER_REFUSED);
	ck_assert(did(MEETING_DO_COORDINATE));
}

TEST(after_a_lost_link_the_search_begins_again_after_a_pause)
{
	start(false);
	step((struct meeting_event){ .type = MEETING_EV_LISTENING, .index = -1 });
	answer(0, FINDER_COORDINATES);
	step((struct meeting_event){ .type = MEETING_EV_LINK_UP });
	step((struct meeting_event){ .type = MEETING_EV_LINK_DOWN });
	ck_assert_uint_eq(actions.count, 0);
	ck_assert_uint_eq(meeting_deadline_ns(&meeting), now_ns + MEETING_RETRY_NS);
	now_ns += MEETING_RETRY_NS;
	step((struct meeting_event){ .type = MEETING_EV_TIMER });
	ck_assert(did(MEETING_DO_PROBE));
}

TEST(an_arbiter_names_another_and_later_this_host)
{
	start(true);
	step((struct meeting_event){ .type = MEETING_EV_TERM, .here = false });
	ck_assert(did(MEETING_DO_CONNECT));
	ck_assert_int_eq(actions.items[0].index, -1);
	step((struct meeting_event){ .type = MEETING_EV_LINK_UP });
	step((struct meeting_event){ .type = MEETING_EV_TERM, .here = false });
	ck_assert_uint_eq(actions.count, 0); /* it is linked */
	step((struct meeting_event){ .type = MEETING_EV_LINK_DOWN });
	now_ns += MEETING_RETRY_NS;
	step((struct meeting_event){ .type = MEETING_EV_TIMER });
	ck_assert(did(MEETING_DO_CONNECT));
	step((struct meeting_event){ .type = MEETING_EV_TERM, .here = true });
	ck_assert(did(MEETING_DO_COORDINATE));
	step((struct meeting_event){ .type = MEETING_EV_TERM, .here = true });
	ck_assert_uint_eq(actions.count, 0);
	step((struct meeting_event){ .type = MEETING_EV_TERM, .here = false });
	ck_assert(did(MEETING_DO_SUPERSEDED));
}
