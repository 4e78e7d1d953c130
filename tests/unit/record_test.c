/* What a worker's flight recorder has, bounded. */
#include "unit.h"

#include <stdio.h>

#include "base/mem.h"
#include "core/collectives/record.h"

static void add(struct record *record, const char *name, uint64_t seq, uint64_t created_ns,
		bool complete, bool p2p)
{
	struct record_entry entry = { .op = mem_strdup("all_reduce"),
				      .seq = seq,
				      .created_ns = created_ns,
				      .complete = complete,
				      .p2p = p2p };
	record_add(record_group(record, name), &entry);
}

TEST(the_newest_collective_is_taken_to_be_under_way_where_a_worker_died)
{
	for (int newest = 0; newest < 3; newest++) {
		AUTO(record_done) struct record record = RECORD_INIT;
		for (int group = 0; group < 3; group++)
			for (uint64_t seq = 1; seq <= 3; seq++)
				add(&record, (const char *[]){ "0", "1", "2" }[group], seq,
				    100 * seq + (group == newest ? 50 : 0), true, false);
		record_reopen_last(&record);
		for (int group = 0; group < 3; group++) {
			const struct record_group *of = &record.groups[group];
			ck_assert_uint_eq(of->open_count, group == newest);
			ck_assert_uint_eq(of->done_count, group == newest ? 2 : 3);
		}
		const struct record_entry *open = &record.groups[newest].open[0];
		ck_assert_uint_eq(open->seq, 3);
		ck_assert(!open->complete);
		record_reopen_last(&record); /* one is, so that is what it died in */
		ck_assert_uint_eq(record.groups[newest].done_count, 2);
	}
}

TEST(of_two_that_began_in_one_moment_the_later_group_is_under_way)
{
	AUTO(record_done) struct record record = RECORD_INIT;
	add(&record, "0", 1, 100, true, false);
	add(&record, "1", 1, 100, true, false);
	record_reopen_last(&record);
	ck_assert_uint_eq(record.groups[1].open_count, 1);
	ck_assert_uint_eq(record.groups[0].open_count, 0);
}

TEST(a_record_without_collectives_has_none_under_way)
{
	AUTO(record_done) struct record record = RECORD_INIT;
	record_reopen_last(&record);
	record_group(&record, "0");
	record_reopen_last(&record);
	ck_assert_uint_eq(record.groups[0].open_count, 0);
}

TEST(a_collective_is_found_by_its_number_and_a_send_is_none)
{
	AUTO(record_done) struct record record = RECORD_INIT;
	add(&record, "0", 7, 1, false, true);
	const struct record_group *group = &record.groups[0];
	ck_assert_ptr_null(record_find(group, 7));
	add(&record, "0", 7, 2, false, false);
	ck_assert_uint_eq(record_find(group, 7)->created_ns, 2);
	add(&record, "0", 6, 3, true, false);
	ck_assert_uint_eq(record_find(group, 6)->created_ns, 3);
	ck_assert_ptr_null(record_find(group, 5));
}

TEST(a_record_has_a_limited_number_of_groups)
{
	AUTO(record_done) struct record record = RECORD_INIT;
	char name[16];
	for (int i = 0; i < RECORD_GROUPS_MAX; i++) {
		snprintf(name, sizeof(name), "%d", i);
		ck_assert_ptr_nonnull(record_group(&record, name));
	}
	ck_assert_ptr_null(record_group(&record, "one more"));
	ck_assert_ptr_nonnull(record_group(&record, "7"));
	ck_assert_uint_eq(record.count, RECORD_GROUPS_MAX);
}

TEST(ranks_of_a_group_are_sorted_and_each_is_there_once)
{
	AUTO(record_done) struct record record = RECORD_INIT;
	struct record_group *group = record_group(&record, "0");
	static const uint32_t ranks[] = { 5, 1, 3, 1, 5, 0 }, sorted[] = { 0, 1, 3, 5 };
	record_set_ranks(group, ranks, ARRAY_LEN(ranks));
	record_set_ranks(group, ranks, 0); /* says nothing */
	ck_assert_uint_eq(group->rank_count, ARRAY_LEN(sorted));
	for (size_t i = 0; i < ARRAY_LEN(sorted); i++)
		ck_assert_uint_eq(group->ranks[i], sorted[i]);
	record_set_ranks(group, (const uint32_t[]){ 9 }, 1);
	ck_assert_uint_eq(group->rank_count, 1);
}
