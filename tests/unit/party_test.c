/* How a host of a batch finds the coordinator: the finder, an arbiter's word, and the link. */
#include "unit.h"

#include "core/dispatch/party.h"

static struct party party;
static struct party_actions actions;
static uint64_t now_ns;

static void step(struct party_event event)
{
	actions.count = 0;
	party_step(&party, &event, now_ns, &actions);
}

static void start(bool arbiter)
{
	now_ns = 1000 * NS_PER_S;
	party_init(&party, arbiter ? SEARCH_ARBITER : SEARCH_ENDPOINTS,
		   &(struct finder_config){ .count = arbiter ? 0 : 2,
					    .own = -1,
					    .failover_after_ns = 10 * NS_PER_S });
}

static void answer(int32_t index, enum finder_answer answer)
{
	step((struct party_event){ .type = PARTY_EV_ANSWER,
				   .index = index,
				   .probe = party.search.finder.probe,
				   .answer = answer });
}

/* The next one. */
static void term(bool here)
{
	const struct search_term said = { .epoch = party.search.term.epoch + 1, .here = here };
	step((struct party_event){ .type = PARTY_EV_TERM, .term = &said });
}

static bool did(enum party_action_type type)
{
	for (size_t i = 0; i < actions.count; i++)
		if (actions.items[i].type == type)
			return true;
	return false;
}

TEST(a_host_without_an_endpoint_probes_and_connects_to_the_one_that_coordinates)
{
	start(false);
	ck_assert_uint_eq(party_deadline_ns(&party), NS_NEVER);
	step((struct party_event){ .type = PARTY_EV_LISTENING, .index = -1 });
	ck_assert_uint_eq(actions.count, 2);
	ck_assert_int_eq(actions.items[0].type, PARTY_DO_PROBE);
	ck_assert_int_eq(actions.items[0].index, 0);
	ck_assert_int_eq(actions.items[1].index, 1);
	answer(1, FINDER_COORDINATES);
	ck_assert(did(PARTY_DO_CONNECT));
	ck_assert_int_eq(actions.items[0].index, 1);
	ck_assert(!party_coordinates(&party));
}

TEST(the_owner_of_the_first_endpoint_coordinates_once)
{
	start(false);
	step((struct party_event){ .type = PARTY_EV_LISTENING, .index = 0 });
	answer(1, FINDER_STANDBY);
	ck_assert(did(PARTY_DO_COORDINATE));
	ck_assert(party_coordinates(&party));
	answer(1, FINDER_COORDINATES); /* it has the result file: it does not step down */
	ck_assert_uint_eq(actions.count, 0);
}

TEST(who_withdraws_searches_again_and_may_coordinate_later)
{
	start(false);
	step((struct party_event){ .type = PARTY_EV_LISTENING, .index = 0 });
	answer(1, FINDER_SILENT);
	ck_assert(did(PARTY_DO_COORDINATE));
	step((struct party_event){ .type = PARTY_EV_WITHDRAW });
	ck_assert(!party_coordinates(&party));
	now_ns += SEARCH_RETRY_NS;
	step((struct party_event){ .type = PARTY_EV_TIMER });
	ck_assert(did(PARTY_DO_PROBE));
	answer(1, FINDER_COORDINATES);
	ck_assert(did(PARTY_DO_CONNECT));
	step((struct party_event){ .type = PARTY_EV_LINK_UP });
	step((struct party_event){ .type = PARTY_EV_LINK_DOWN });
	now_ns += SEARCH_RETRY_NS;
	step((struct party_event){ .type = PARTY_EV_TIMER });
	answer(1, FINDER_REFUSED);
	ck_assert(did(PARTY_DO_COORDINATE));
}

TEST(who_withdraws_tries_again_while_the_arbiter_names_it)
{
	start(true);
	term(true);
	step((struct party_event){ .type = PARTY_EV_WITHDRAW });
	now_ns += SEARCH_RETRY_NS;
	step((struct party_event){ .type = PARTY_EV_TIMER });
	ck_assert(did(PARTY_DO_COORDINATE));
	step((struct party_event){ .type = PARTY_EV_WITHDRAW });
	term(false);
	ck_assert(did(PARTY_DO_CONNECT));
	step((struct party_event){ .type = PARTY_EV_LINK_DOWN });
	now_ns += SEARCH_RETRY_NS;
	step((struct party_event){ .type = PARTY_EV_TIMER });
	ck_assert(did(PARTY_DO_CONNECT));
}

TEST(an_endpoint_that_is_had_later_counts)
{
	start(false);
	step((struct party_event){ .type = PARTY_EV_LISTENING, .index = -1 });
	step((struct party_event){ .type = PARTY_EV_LISTENING, .index = 0 });
	ck_assert(did(PARTY_DO_PROBE));
	answer(1, FINDER_REFUSED);
	ck_assert(did(PARTY_DO_COORDINATE));
}

TEST(after_a_lost_link_the_search_begins_again_after_a_pause)
{
	start(false);
	step((struct party_event){ .type = PARTY_EV_LISTENING, .index = -1 });
	answer(0, FINDER_COORDINATES);
	step((struct party_event){ .type = PARTY_EV_LINK_UP });
	step((struct party_event){ .type = PARTY_EV_LINK_DOWN });
	ck_assert_uint_eq(actions.count, 0);
	ck_assert_uint_eq(party_deadline_ns(&party), now_ns + SEARCH_RETRY_NS);
	now_ns += SEARCH_RETRY_NS;
	step((struct party_event){ .type = PARTY_EV_TIMER });
	ck_assert(did(PARTY_DO_PROBE));
}

TEST(an_arbiter_names_another_and_later_this_host)
{
	start(true);
	term(false);
	ck_assert(did(PARTY_DO_CONNECT));
	ck_assert_int_eq(actions.items[0].index, -1);
	step((struct party_event){ .type = PARTY_EV_LINK_UP });
	term(false);
	ck_assert_uint_eq(actions.count, 0); /* it is linked */
	step((struct party_event){ .type = PARTY_EV_LINK_DOWN });
	now_ns += SEARCH_RETRY_NS;
	step((struct party_event){ .type = PARTY_EV_TIMER });
	ck_assert(did(PARTY_DO_CONNECT));
	term(true);
	ck_assert(did(PARTY_DO_COORDINATE));
	term(true);
	ck_assert_uint_eq(actions.count, 0);
	term(false);
	ck_assert(did(PARTY_DO_SUPERSEDED));
}

TEST(a_link_is_hung_up_when_this_host_is_named)
{
	start(true);
	term(false);
	term(true); /* while it is being made */
	ck_assert_uint_eq(actions.count, 2);
	ck_assert(actions.items[0].type == PARTY_DO_HANG_UP && did(PARTY_DO_COORDINATE));
	start(true);
	term(false);
	step((struct party_event){ .type = PARTY_EV_LINK_UP });
	term(true);
	ck_assert(actions.items[0].type == PARTY_DO_HANG_UP && did(PARTY_DO_COORDINATE));
}

static bool ended_by_peer(bool by_peer)
{
	step((struct party_event){ .type = PARTY_EV_BARRED, .by_peer = by_peer, .why = "no" });
	return did(PARTY_DO_END);
}

TEST(a_peer_that_refuses_a_host_ends_it_when_it_does_so_again_and_never_after_a_link)
{
	start(false);
	ck_assert(!ended_by_peer(true));
	ck_assert(ended_by_peer(true));
	ck_assert_str_eq(actions.items[0].why, "no");
	start(false);
	step((struct party_event){ .type = PARTY_EV_LINK_UP });
	step((struct party_event){ .type = PARTY_EV_LINK_DOWN });
	ck_assert(!ended_by_peer(true) && !ended_by_peer(true));
	ck_assert(ended_by_peer(false));
}

TEST(who_has_a_link_or_coordinates_seeks_nobody)
{
	start(false);
	step((struct party_event){ .type = PARTY_EV_LISTENING, .index = 0 });
	answer(1, FINDER_REFUSED);
	step((struct party_event){ .type = PARTY_EV_LINK_DOWN }); /* an older one has ended now */
	now_ns += SEARCH_RETRY_NS;
	step((struct party_event){ .type = PARTY_EV_TIMER });
	ck_assert(!did(PARTY_DO_CONNECT) && !did(PARTY_DO_COORDINATE));
	ck_assert(party_coordinates(&party));
	start(true);
	term(false);
	now_ns += SEARCH_RETRY_NS;
	step((struct party_event){ .type = PARTY_EV_TIMER });
	ck_assert_uint_eq(actions.count, 0);
}
