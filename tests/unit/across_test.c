#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "core/checks/across.h"

static struct check_result result_of(const char *name)
{
	struct check_result result = { .state = CHECK_OK };
	snprintf(result.name, sizeof(result.name), "%s", name);
	return result;
}

static void add(struct across *across, const char *name, double speed, const char *torch,
		const char *warning)
{
	struct check_list list = CHECK_LIST_INIT;
	struct check_result cpu = result_of("cpu"), shm = result_of("shm"),
			    versions = result_of("versions");
	check_measure(&cpu, "cpu_speed", speed, "GFLOP/s");
	check_measure(&cpu, "cpus", 8, "");
	if (warning)
		check_find(&shm, CHECK_WARNING, "make it larger", "%s", warning);
	check_measure(&shm, "shm_size", 3ull << 29, "bytes");
	check_say(&versions, "torch %s", torch);
	check_state_fact(&versions, "torch", torch);
	check_list_add(&list, &cpu);
	check_list_add(&list, &shm);
	check_list_add(&list, &versions);
	across_add(across, name, &list);
}

static const char *table(struct across *across, struct buf *text)
{
	across_compare(across);
	across_print(across, text);
	return buf_str(text);
}

TEST(hosts_that_are_all_well_have_a_short_line_for_each_check)
{
	AUTO(across_done) struct across across = ACROSS_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	for (int i = 0; i < 4; i++)
		add(&across, (const char *[]){ "a", "b", "c", "d" }[i], 3 + 0.1 * i, "2.13", NULL);
	ck_assert_str_eq(table(&across, &text),
			 "reached   4 of 4 ok\n"
			 "cpu       4 of 4 ok; cpu_speed 3 to 3.3 GFLOP/s\n"
			 "shm       4 of 4 ok; shm_size 1.5 GiB\n"
			 "versions  4 of 4 ok: torch 2.13\n"
			 "compared  4 of 4 ok\n"
			 "4 hosts: 0 bad, 0 with warnings, 0 unknown, 4 ok\n");
	ck_assert_int_eq(across_worst(&across), CHECK_OK);
}

TEST(a_finding_is_shown_once_with_its_hosts_and_its_remedy)
{
	AUTO(across_done) struct across across = ACROSS_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	add(&across, "a", 3, "2.13", "64 MiB");
	add(&across, "b", 3, "2.13", NULL);
	add(&across, "c", 3, "2.13", "64 MiB");
	add(&across, "d", 3, "2.13", "32 MiB");
	across_add_lost(&across, "e", "look at it", "Connection refused");
	ck_assert_str_eq(table(&across, &text),
			 "reached   4 of 5 ok; bad: e\n"
			 "cpu       4 of 4 ok; cpu_speed 3 GFLOP/s\n"
			 "shm       1 of 4 ok; warning: a,c,d; shm_size 1.5 GiB\n"
			 "versions  4 of 4 ok: torch 2.13\n"
			 "compared  4 of 4 ok\n"
			 "bad      e: reached: Connection refused\n"
			 "         remedy: look at it\n"
			 "warning  a,c: shm: 64 MiB\n"
			 "         remedy: make it larger\n"
			 "warning  d: shm: 32 MiB\n"
			 "         remedy: make it larger\n"
			 "5 hosts: 1 bad, 3 with warnings, 0 unknown, 1 ok\n");
	ck_assert_int_eq(across_worst(&across), CHECK_BAD);
}

TEST(a_host_that_stands_out_among_the_others_is_bad)
{
	AUTO(across_done) struct across across = ACROSS_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	add(&across, "a", 3, "2.13", NULL);
	add(&across, "b", 0.5, "2.13", NULL);
	across_add_lost(&across, "lost", "", "gone");
	add(&across, "c", 3.1, "2.1", NULL);
	add(&across, "d", 3.2, "2.13", NULL);
	const char *shown = table(&across, &text);
	ck_assert_ptr_nonnull(strstr(shown, "versions  4 of 4 ok\n"));
	ck_assert_ptr_nonnull(strstr(shown, "compared  2 of 4 ok; bad: b,c\n"));
	ck_assert_ptr_nonnull(
		strstr(shown, "bad      b: compared: cpu_speed 0.5 GFLOP/s, median "));
	ck_assert_ptr_nonnull(
		strstr(shown, "bad      c: compared: torch 2.1, 3 of 4 nodes have 2.13\n"));
	ck_assert_ptr_nonnull(strstr(shown, "--exclude-hosts"));
}

TEST(two_hosts_that_differ_are_both_named)
{
	AUTO(across_done) struct across across = ACROSS_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	add(&across, "a", 3, "2.13", NULL);
	add(&across, "b", 3, "2.1", NULL);
	const char *shown = table(&across, &text);
	ck_assert_ptr_nonnull(strstr(shown, "warning  a,b: compared: torch: 2.13 on 1 of 2 nodes, "
					    "2.1 on another\n"));
	ck_assert_int_eq(across_worst(&across), CHECK_WARNING);
}

TEST(a_finding_of_many_hosts_names_some_and_counts_the_rest)
{
	AUTO(across_done) struct across across = ACROSS_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	for (int i = 0; i < 100; i++) {
		char name[16];
		snprintf(name, sizeof(name), "n%d", i);
		add(&across, name, 3, "2.13", "64 MiB");
	}
	ck_assert_ptr_nonnull(strstr(table(&across, &text), ",n15 and 84 more: shm: 64 MiB\n"));
}

TEST(a_check_that_a_host_makes_twice_counts_by_the_worse)
{
	AUTO(across_done) struct across across = ACROSS_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct check_list list = CHECK_LIST_INIT;
	struct check_result well = result_of("storage"), bad = result_of("storage");
	check_find(&bad, CHECK_BAD, "", "no answer");
	check_list_add(&list, &bad);
	check_list_add(&list, &well);
	across_add(&across, "a", &list);
	ck_assert_ptr_nonnull(strstr(table(&across, &text), "storage   0 of 1 ok; bad: a\n"));
}

/* Those that came, all well, and the table of `expected`. */
static const char *table_of(struct across *across, const char *const *came, size_t count,
			    uint32_t expected, const struct strv *names, struct buf *text)
{
	for (size_t i = 0; i < count; i++)
		add(across, came[i], 3, "2.13", NULL);
	across_add_missing(across, expected, names, 60 * NS_PER_S, "start it there");
	return table(across, text);
}

TEST(hosts_that_did_not_come_are_named_where_their_names_are_known)
{
	AUTO(across_done) struct across across = ACROSS_INIT;
	AUTO(strv_done) struct strv names = STRV_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	static const char *const came[] = { "node10", "node1" };
	for (int i = 1; i <= 4; i++)
		strv_add(&names, (const char *[]){ "node1", "node2", "node4", "node10" }[i - 1]);
	const char *shown = table_of(&across, came, ARRAY_LEN(came), 4, &names, &text);
	ck_assert_ptr_nonnull(strstr(shown, "reached   2 of 4 ok; bad: node2,node4\n"));
	ck_assert_ptr_nonnull(strstr(shown, "bad      node2,node4: reached: it did not come within "
					    "60 s; node1,node10 did\n"
					    "         remedy: start it there\n"));
	ck_assert_str_eq(across.items[3].name, "node10");
}

TEST(hosts_without_a_known_name_are_counted_as_missing)
{
	AUTO(across_done) struct across across = ACROSS_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	static const char *const came[] = { "a" };
	const char *shown = table_of(&across, came, 1, 3, &STRV_INIT, &text);
	ck_assert_ptr_nonnull(strstr(
		shown, "bad      (missing 1),(missing 2): reached: it did not come within 60 s; "
		       "a did\n"));
	ck_assert_ptr_nonnull(strstr(shown, "3 hosts: 2 bad"));
}

TEST(hosts_that_came_under_other_names_leave_the_number_right)
{
	AUTO(across_done) struct across across = ACROSS_INIT;
	AUTO(strv_done) struct strv names = STRV_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	static const char *const came[] = { "localhost" };
	strv_add(&names, "node1");
	strv_add(&names, "node2");
	ck_assert_ptr_nonnull(
		strstr(table_of(&across, came, 1, 2, &names, &text), "2 hosts: 1 bad"));
	ck_assert_uint_eq(across.count, 2);
}

TEST(a_long_list_of_those_who_came_is_cut)
{
	AUTO(across_done) struct across across = ACROSS_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	for (int i = 0; i < 99; i++) {
		char name[16];
		snprintf(name, sizeof(name), "n%d", i);
		add(&across, name, 3, "2.13", NULL);
	}
	static const char *const came[] = { "n99" };
	ck_assert_ptr_nonnull(strstr(table_of(&across, came, 1, 101, &STRV_INIT, &text),
				     ",n15 and 84 more did\n"));
}

TEST(the_worst_host_counts_wherever_it_stands)
{
	for (int bad = 0; bad < 3; bad++) {
		AUTO(across_done) struct across across = ACROSS_INIT;
		for (int i = 0; i < 3; i++)
			add(&across, (const char *[]){ "a", "b", "c" }[i], 3, "2.13",
			    i == bad ? "64 MiB" : NULL);
		ck_assert_int_eq(across_worst(&across), CHECK_WARNING);
	}
}
