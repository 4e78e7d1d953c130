/* How a process finds the coordinator: the finder, an arbiter's word, and when it seeks again. */
#include "unit.h"

#include "core/node/search.h"

static struct search search;
static struct search_actions actions;
static uint64_t now_ns;

static void step(struct search_event event)
{
	actions.count = 0;
	event.settled = true;
	search_step(&search, &event, now_ns, &actions);
}

static void step_type(enum search_event_type type)
{
	step((struct search_event){ .type = type });
}

static void start(enum search_by by)
{
	now_ns = 1000 * NS_PER_S;
	search_init(&search, by,
		    &(struct finder_config){ .count = by == SEARCH_ENDPOINTS ? 2 : 0,
					     .own = -1,
					     .failover_after_ns = 10 * NS_PER_S });
}

static void listening(int32_t index)
{
	step((struct search_event){ .type = SEARCH_EV_LISTENING, .index = index });
}

static void answer(int32_t index, enum finder_answer answer)
{
	step((struct search_event){ .type = SEARCH_EV_ANSWER,
				    .index = index,
				    .probe = search.finder.probe,
				    .answer = answer });
}

static void term(uint64_t epoch, bool here, uint64_t until_ns)
{
	const struct search_term said = { .epoch = epoch, .here = here, .until_ns = until_ns };
	step((struct search_event){ .type = SEARCH_EV_TERM, .term = &said });
}

static const struct search_action *did(enum search_action_type type)
{
	for (size_t i = 0; i < actions.count; i++)
		if (actions.items[i].type == type)
			return &actions.items[i];
	return NULL;
}

TEST(a_process_without_an_endpoint_probes_and_connects_to_the_one_that_coordinates)
{
	start(SEARCH_ENDPOINTS);
	ck_assert_uint_eq(search_deadline_ns(&search), NS_NEVER);
	listening(-1);
	ck_assert_uint_eq(actions.count, 2);
	ck_assert_ptr_nonnull(did(SEARCH_PROBE));
	answer(1, FINDER_COORDINATES);
	ck_assert_int_eq(did(SEARCH_CONNECT)->index, 1);
}

TEST(the_owner_of_the_first_endpoint_coordinates_under_its_index)
{
	start(SEARCH_ENDPOINTS);
	listening(0);
	answer(1, FINDER_STANDBY);
	ck_assert_int_eq(did(SEARCH_COORDINATE)->index, 0);
	ck_assert_uint_eq(did(SEARCH_COORDINATE)->epoch, 0);
	answer(1, FINDER_COORDINATES); /* it is settled: it does not step down */
	ck_assert_uint_eq(actions.count, 0);
}

TEST(an_endpoint_that_is_had_later_counts)
{
	start(SEARCH_ENDPOINTS);
	listening(-1);
	listening(0);
	ck_assert_ptr_nonnull(did(SEARCH_PROBE));
	answer(1, FINDER_REFUSED);
	ck_assert_ptr_nonnull(did(SEARCH_COORDINATE));
}

TEST(a_search_that_lasts_tries_to_listen_again)
{
	start(SEARCH_ENDPOINTS);
	listening(-1);
	now_ns = search_deadline_ns(&search);
	step_type(SEARCH_EV_TIMER);
	ck_assert_ptr_null(did(SEARCH_LISTEN));
	now_ns += SEARCH_LISTEN_AFTER_NS;
	step_type(SEARCH_EV_TIMER);
	ck_assert_ptr_nonnull(did(SEARCH_LISTEN));
}

TEST(a_lost_link_is_a_lost_coordinator_once)
{
	start(SEARCH_ENDPOINTS);
	listening(-1);
	answer(0, FINDER_COORDINATES);
	search_linked(&search);
	step_type(SEARCH_EV_SEEK);
	ck_assert_ptr_nonnull(did(SEARCH_PROBE));
	ck_assert(search.finder.bereft);
	ck_assert(!search.was_linked);
}

TEST(where_it_is_here_it_coordinates)
{
	start(SEARCH_HERE);
	step_type(SEARCH_EV_SEEK);
	ck_assert_uint_eq(actions.count, 1);
	ck_assert_int_eq(did(SEARCH_COORDINATE)->index, -1);
}

TEST(an_arbiter_names_another_and_later_this_process)
{
	start(SEARCH_ARBITER);
	step_type(SEARCH_EV_SEEK);
	ck_assert_uint_eq(actions.count, 0); /* it has not spoken */
	term(5, false, 0);
	ck_assert(!did(SEARCH_SUPERSEDED)->here);
	ck_assert_ptr_null(did(SEARCH_COORDINATE));
	step_type(SEARCH_EV_SEEK);
	ck_assert_int_eq(did(SEARCH_CONNECT)->index, -1);
	term(6, true, 0);
	ck_assert(did(SEARCH_SUPERSEDED)->here);
	ck_assert_uint_eq(did(SEARCH_COORDINATE)->epoch, 6);
	ck_assert_int_eq(actions.items[0].type, SEARCH_SUPERSEDED); /* what led before gives way */
	term(5, false, 0);
	ck_assert_uint_eq(actions.count, 0); /* late */
}

TEST(a_term_begins_one_coordinator_unless_that_may_begin_again)
{
	start(SEARCH_ARBITER);
	term(5, true, 0);
	step_type(SEARCH_EV_SEEK);
	ck_assert_uint_eq(actions.count, 0);
	search_again(&search);
	step_type(SEARCH_EV_SEEK);
	ck_assert_uint_eq(did(SEARCH_COORDINATE)->epoch, 5);
}

TEST(a_lease_is_renewed_but_never_shortened)
{
	start(SEARCH_ARBITER);
	term(5, true, now_ns + 10);
	term(5, true, now_ns + 20);
	ck_assert_ptr_nonnull(did(SEARCH_RENEWED));
	ck_assert_uint_eq(search.term.until_ns, now_ns + 20);
	term(5, true, now_ns + 15);
	ck_assert_uint_eq(actions.count, 0);
	term(6, false, 0);
	term(6, false, now_ns + 30);
	ck_assert_ptr_null(did(SEARCH_RENEWED)); /* it is not ours */
}
