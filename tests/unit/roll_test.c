#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "core/checks/roll.h"

static bool come(struct roll *roll, const char *name, enum check_state state)
{
	struct check_list list = CHECK_LIST_INIT;
	struct check_result limits = { .name = "limits" };
	if (state != CHECK_OK)
		check_find(&limits, state, "raise them", "low");
	check_list_add(&list, &limits);
	return roll_add(roll, name, &list);
}

static const char *table(struct roll *roll, struct buf *text)
{
	roll_close(roll, 60 * NS_PER_S, "start it there");
	across_print(&roll->across, text);
	return buf_str(text);
}

TEST(a_roll_is_complete_when_as_many_hosts_as_expected_have_told)
{
	AUTO(roll_done) struct roll roll = ROLL_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	roll.expected = 3;
	ck_assert(come(&roll, "node10", CHECK_OK));
	ck_assert(come(&roll, "node2", CHECK_WARNING));
	ck_assert(!roll_is_complete(&roll));
	ck_assert(come(&roll, "node2", CHECK_OK)); /* two hosts may have one name */
	ck_assert(roll_is_complete(&roll));
	ck_assert(!come(&roll, "node4", CHECK_BAD));
	const char *shown = table(&roll, &text);
	ck_assert_ptr_nonnull(strstr(shown, "reached   3 of 3 ok\n"));
	ck_assert_ptr_nonnull(strstr(shown, "3 hosts: 0 bad, 1 with warnings, 0 unknown, 2 ok\n"));
	ck_assert_str_eq(roll.across.items[0].name, "node2");
	ck_assert_str_eq(roll.across.items[2].name, "node10");
}

TEST(hosts_that_did_not_come_are_named_where_their_names_are_known)
{
	AUTO(roll_done) struct roll roll = ROLL_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	roll.expected = 4;
	for (int i = 1; i <= 4; i++) {
		char name[16];
		snprintf(name, sizeof(name), "node%d", i);
		strv_add(&roll.names, name);
	}
	come(&roll, "node3", CHECK_OK);
	come(&roll, "node1", CHECK_OK);
	const char *shown = table(&roll, &text);
	ck_assert_ptr_nonnull(strstr(shown, "reached   2 of 4 ok; bad: node2,node4\n"));
	ck_assert_ptr_nonnull(strstr(shown, "bad      node2,node4: reached: it did not come within "
					    "60 s; node1,node3 did\n"
					    "         remedy: start it there\n"));
	ck_assert_int_eq(across_worst(&roll.across), CHECK_BAD);
}

TEST(hosts_without_a_known_name_are_counted_as_missing)
{
	AUTO(roll_done) struct roll roll = ROLL_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	roll.expected = 3;
	come(&roll, "a", CHECK_OK);
	const char *shown = table(&roll, &text);
	ck_assert_ptr_nonnull(strstr(
		shown, "bad      (missing 1),(missing 2): reached: it did not come within 60 s; "
		       "a did\n"));
	ck_assert_ptr_nonnull(strstr(shown, "3 hosts: 2 bad"));
}

TEST(hosts_that_came_under_other_names_leave_the_number_right)
{
	AUTO(roll_done) struct roll roll = ROLL_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	roll.expected = 2;
	strv_add(&roll.names, "node1");
	strv_add(&roll.names, "node2");
	come(&roll, "localhost", CHECK_OK);
	ck_assert_ptr_nonnull(strstr(table(&roll, &text), "2 hosts: 1 bad"));
	ck_assert_uint_eq(roll.across.count, 2);
}

TEST(a_long_list_of_those_who_came_is_cut)
{
	AUTO(roll_done) struct roll roll = ROLL_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	roll.expected = 101;
	for (int i = 0; i < 100; i++) {
		char name[16];
		snprintf(name, sizeof(name), "n%d", i);
		come(&roll, name, CHECK_OK);
	}
	ck_assert_ptr_nonnull(strstr(table(&roll, &text), ",n15 and 84 more did\n"));
}
