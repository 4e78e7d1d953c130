/* One host's part when hosts meet to tell what their checks found. */
#include "unit.h"

#include "base/clock.h"
#include "core/checks/assembly.h"

static struct assembly assembly;
static struct assembly_actions actions;
static uint64_t now_ns;

static void step(struct assembly_event event)
{
	actions.count = 0;
	assembly_step(&assembly, &event, now_ns, &actions);
}

static void begin(uint32_t hosts)
{
	const struct strv names = STRV_INIT;
	now_ns = 1000 * NS_PER_S;
	assembly_init(&assembly, hosts, &names, now_ns, 60 * NS_PER_S);
}

static void finish(void)
{
	assembly_done(&assembly);
	assembly_actions_done(&actions);
}

static void tell(enum assembly_event_type type, uint64_t peer, const char *name,
		 enum check_state state)
{
	AUTO(check_list_done) struct check_list list = CHECK_LIST_INIT;
	struct check_result limits = { .name = "limits" };
	if (state != CHECK_OK)
		check_find(&limits, state, "raise them", "low");
	check_list_add(&list, &limits);
	step((struct assembly_event){ .type = type, .peer = peer, .name = name, .results = &list });
}

static void lead(uint32_t hosts)
{
	begin(hosts);
	tell(ASSEMBLY_EV_COORDINATE, 0, "node1", CHECK_OK);
}

static void come(uint64_t peer, const char *address)
{
	step((struct assembly_event){ .type = ASSEMBLY_EV_PEER, .peer = peer, .name = address });
}

static void simple(enum assembly_event_type type, uint64_t peer, const char *why)
{
	step((struct assembly_event){ .type = type, .peer = peer, .why = why });
}

static void be_late(const char *tried)
{
	now_ns = assembly_deadline_ns(&assembly);
	simple(ASSEMBLY_EV_TIMER, 0, tried);
}

/* The action of this type about this peer, 0 being none. */
static const struct assembly_action *did(enum assembly_action_type type, uint64_t peer)
{
	for (size_t i = 0; i < actions.count; i++)
		if (actions.items[i].type == type && actions.items[i].peer == peer)
			return &actions.items[i];
	return NULL;
}

static const char *shown(size_t i)
{
	ck_assert_uint_lt(i, assembly.roll.across.count);
	return assembly.roll.across.items[i].name;
}

TEST(the_first_host_waits_for_all_and_leaves_when_they_have_the_verdict)
{
	lead(3);
	ck_assert_str_eq(did(ASSEMBLY_CAME, 0)->name, "node1");
	come(2, "10.0.0.2:4000");
	come(3, "10.0.0.3:4000");
	tell(ASSEMBLY_EV_PEER_TOLD, 2, "node2", CHECK_BAD);
	ck_assert_ptr_nonnull(did(ASSEMBLY_CAME, 2));
	ck_assert_ptr_null(did(ASSEMBLY_VERDICT, 2));
	tell(ASSEMBLY_EV_PEER_TOLD, 3, "node3", CHECK_OK);
	ck_assert_ptr_nonnull(did(ASSEMBLY_VERDICT, 2));
	ck_assert_ptr_nonnull(did(ASSEMBLY_VERDICT, 3));
	ck_assert_int_eq(assembly.worst, CHECK_BAD);
	simple(ASSEMBLY_EV_PEER_DOWN, 2, NULL);
	ck_assert_uint_eq(actions.count, 0);
	simple(ASSEMBLY_EV_PEER_DOWN, 3, NULL);
	ck_assert_ptr_nonnull(did(ASSEMBLY_OVER, 3));
	ck_assert(assembly_shows(&assembly));
	finish();
}

TEST(a_host_that_does_not_take_the_verdict_is_not_waited_for)
{
	lead(2);
	come(2, "10.0.0.2:4000");
	tell(ASSEMBLY_EV_PEER_TOLD, 2, "node2", CHECK_OK);
	ck_assert_uint_eq(assembly_deadline_ns(&assembly), now_ns + ASSEMBLY_LEAVE_NS);
	simple(ASSEMBLY_EV_TIMER, 0, NULL); /* early: it says nothing */
	ck_assert_uint_eq(actions.count, 0);
	be_late(NULL);
	ck_assert_ptr_nonnull(did(ASSEMBLY_OVER, 0));
	ck_assert(!assembly.gave_up);
	finish();
}

TEST(late_hosts_are_missing_and_those_that_told_nothing_are_sent_away)
{
	lead(4);
	come(2, "10.0.0.2:4000");
	come(3, "10.0.0.3:4000");
	tell(ASSEMBLY_EV_PEER_TOLD, 2, "node2", CHECK_OK);
	be_late(NULL);
	ck_assert_ptr_nonnull(did(ASSEMBLY_VERDICT, 2));
	ck_assert_ptr_nonnull(did(ASSEMBLY_HANG_UP, 3));
	ck_assert_ptr_null(did(ASSEMBLY_OVER, 0));
	ck_assert_int_eq(assembly.worst, CHECK_BAD);
	simple(ASSEMBLY_EV_PEER_DOWN, 2, NULL);
	ck_assert_ptr_nonnull(did(ASSEMBLY_OVER, 2));
	finish();
}

TEST(a_host_that_was_seen_once_is_named_by_its_address_and_others_are_counted)
{
	lead(4);
	come(2, "10.0.0.2:4000");
	simple(ASSEMBLY_EV_PEER_DOWN, 2, NULL);
	come(3, "10.0.0.2:4001"); /* the same again */
	simple(ASSEMBLY_EV_PEER_BAD, 3, NULL);
	ck_assert_ptr_nonnull(did(ASSEMBLY_HANG_UP, 3));
	come(4, "10.0.0.4:4000");
	simple(ASSEMBLY_EV_PEER_DOWN, 4, NULL);
	come(5, "10.0.0.4:4001"); /* this one comes again, and tells */
	tell(ASSEMBLY_EV_PEER_TOLD, 5, "node4", CHECK_OK);
	simple(ASSEMBLY_EV_ENOUGH, 0, NULL);
	ck_assert_uint_eq(assembly.roll.across.count, 4);
	ck_assert_str_eq(shown(0), "(missing 1)");
	ck_assert_str_eq(shown(1), "10.0.0.2");
	ck_assert_str_eq(shown(2), "node1");
	ck_assert_str_eq(shown(3), "node4");
	ck_assert_str_eq(assembly.roll.across.items[1].results.items[0].text,
			 "it came, but did not tell what it found");
	finish();
}

TEST(a_host_alone_is_done_at_once)
{
	lead(1);
	ck_assert_ptr_nonnull(did(ASSEMBLY_OVER, 0));
	finish();
}

TEST(a_host_tells_once_and_waits_longer_for_the_verdict_than_the_first_waits_for_hosts)
{
	begin(2);
	now_ns += 50 * NS_PER_S;
	simple(ASSEMBLY_EV_UP, 0, NULL);
	ck_assert_ptr_nonnull(did(ASSEMBLY_TELL, 0));
	ck_assert_uint_gt(assembly_deadline_ns(&assembly), now_ns + 60 * NS_PER_S);
	simple(ASSEMBLY_EV_UP, 0, NULL);
	ck_assert_uint_eq(actions.count, 0);
	step((struct assembly_event){ .type = ASSEMBLY_EV_VERDICT, .worst = CHECK_WARNING });
	ck_assert_ptr_nonnull(did(ASSEMBLY_OVER, 0));
	ck_assert_int_eq(assembly.worst, CHECK_WARNING);
	ck_assert(!assembly.gave_up && !assembly_shows(&assembly));
	simple(ASSEMBLY_EV_DOWN, 0, "it left"); /* as it does after the verdict */
	ck_assert_uint_eq(actions.count, 0);
	finish();
}

TEST(a_host_that_finds_no_table_or_loses_it_gives_up_and_says_why)
{
	static const struct {
		bool up;
		enum assembly_event_type type;
		const char *why, *said;
	} cases[] = {
		{ false, ASSEMBLY_EV_TIMER, "node1 refused",
		  "found no host that shows the table: node1 refused" },
		{ true, ASSEMBLY_EV_TIMER, "", "the host that shows the table does not answer" },
		{ true, ASSEMBLY_EV_DOWN, "reset", "the host that shows the table is gone: reset" },
		{ false, ASSEMBLY_EV_BARRED, "another token", "another token" },
		{ true, ASSEMBLY_EV_SUPERSEDED, NULL, "another host shows the table by now" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		begin(2);
		if (cases[i].up)
			simple(ASSEMBLY_EV_UP, 0, NULL);
		now_ns = assembly_deadline_ns(&assembly);
		simple(cases[i].type, 0, cases[i].why);
		ck_assert_ptr_nonnull(did(ASSEMBLY_GIVE_UP, 0));
		ck_assert_str_eq(did(ASSEMBLY_GIVE_UP, 0)->why, cases[i].said);
		ck_assert_ptr_nonnull(did(ASSEMBLY_OVER, 0));
		ck_assert(assembly.gave_up && !assembly_shows(&assembly));
		finish();
	}
}

TEST(a_first_host_that_is_outranked_shows_nothing_unless_the_verdict_was_sent)
{
	lead(2);
	simple(ASSEMBLY_EV_SUPERSEDED, 0, NULL);
	ck_assert_ptr_nonnull(did(ASSEMBLY_GIVE_UP, 0));
	ck_assert(!assembly_shows(&assembly));
	finish();

	lead(2);
	come(2, "10.0.0.2:4000");
	tell(ASSEMBLY_EV_PEER_TOLD, 2, "node2", CHECK_OK);
	simple(ASSEMBLY_EV_SUPERSEDED, 0, NULL);
	ck_assert_uint_eq(actions.count, 0);
	ck_assert(assembly_shows(&assembly));
	finish();
}

TEST(a_host_that_tells_twice_counts_once)
{
	lead(3);
	come(2, "10.0.0.2:4000");
	tell(ASSEMBLY_EV_PEER_TOLD, 2, "node2", CHECK_OK);
	tell(ASSEMBLY_EV_PEER_TOLD, 2, "node2", CHECK_OK);
	ck_assert_uint_eq(actions.count, 0);
	ck_assert_uint_eq(assembly.roll.across.count, 2);
	finish();
}
