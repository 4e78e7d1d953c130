/* Who is waited for in collectives, while the job runs: the judge of a group, and what a host picks
 * out of the records of its workers. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "core/collectives/host_arrivals.h"

#define RANKS 4
#define LAG_NS (6 * NS_PER_MS)
#define STEP_NS (20 * NS_PER_MS)

/* ---- one group ---- */

/* Adds a collective to which `rank` came last, so long after the others; returns whether there are
 * news. */
static bool add(struct waits *waits, uint64_t seq, uint64_t at_ns, uint32_t rank, uint64_t lag_ns,
		struct straggler_news *ret_news)
{
	struct step_mark mark = { .step = seq,
				  .last_ns = at_ns + lag_ns,
				  .mean_ns = at_ns + lag_ns / RANKS,
				  .rank = rank,
				  .ranks = RANKS };
	return waits_add(waits, &mark, 0, ret_news);
}

/* Steps of `each` collectives; those who wait do so in the first of each. Returns the number of the
 * collective with which there were news, 0: none. */
static uint64_t walk(struct waits *waits, uint64_t from, uint64_t steps, uint64_t each,
		     uint64_t step_ns, uint64_t lag_ns, bool in_turn, struct straggler_news *news)
{
	for (uint64_t i = 0; i < steps * each; i++) {
		uint64_t seq = from + i, at_ns = seq * step_ns / each;
		uint32_t rank = in_turn ? (uint32_t)(seq / each % RANKS) : 2;
		if (add(waits, seq, at_ns, rank, seq % each == 0 ? lag_ns : 0, news))
			return seq;
	}
	return 0;
}

TEST(a_rank_that_is_waited_for_is_named_until_it_is_no_longer)
{
	struct waits waits;
	struct straggler_news news;
	waits_begin(&waits, RANKS);
	uint64_t seq = walk(&waits, 1, 100, 1, STEP_NS, LAG_NS, false, &news);
	ck_assert_uint_eq(seq, STRAGGLER_TRIALS_MIN);
	ck_assert(news.begins);
	ck_assert_uint_eq(news.rank, 2);
	ck_assert_uint_eq(news.times, STRAGGLER_TRIALS_MIN);
	ck_assert_uint_eq(news.lag_ns, LAG_NS);
	ck_assert_uint_eq(walk(&waits, seq + 1, 200, 1, STEP_NS, LAG_NS, false, &news), 0);
	uint64_t mended = seq + 201;
	seq = walk(&waits, mended, 2000, 1, STEP_NS, 0, false, &news);
	ck_assert_uint_gt(seq, mended + 10);
	ck_assert_uint_lt(seq, mended + 20);
	ck_assert(!news.begins);
	ck_assert_uint_eq(news.rank, 2);
	/* A single wait does not name it again, many do. */
	ck_assert(!add(&waits, seq + 1, (seq + 1) * STEP_NS, 2, LAG_NS, &news));
	ck_assert_uint_gt(walk(&waits, seq + 2, 100, 1, STEP_NS, LAG_NS, false, &news), seq + 10);
	ck_assert(news.begins);
}

TEST(a_rank_stays_named_while_another_collective_of_each_step_is_waited_for)
{
	struct waits waits;
	struct straggler_news news;
	waits_begin(&waits, RANKS);
	uint64_t seq = walk(&waits, 1, 50, 25, STEP_NS, LAG_NS, false, &news);
	ck_assert_uint_gt(seq, 0);
	ck_assert_uint_eq(walk(&waits, seq + 1, 400, 25, STEP_NS, LAG_NS, false, &news), 0);
}

TEST(a_rank_is_named_though_few_collectives_are_waited_for)
{
	struct waits waits;
	struct straggler_news news;
	waits_begin(&waits, RANKS);
	ck_assert_uint_gt(walk(&waits, 1, 50, 25, STEP_NS, LAG_NS, false, &news), 0);
	ck_assert_uint_eq(news.rank, 2);
}

TEST(a_sample_is_judged_as_all_collectives_are)
{
	struct waits waits;
	struct straggler_news news;
	bool named = false;
	waits_begin(&waits, RANKS);
	for (uint64_t seq = 16; seq < 16 * 64 && !named; seq += 16)
		named = add(&waits, seq, seq * 40 * NS_PER_MS, 2, 4 * NS_PER_MS, &news);
	ck_assert(named); /* a tenth of the time, of which the sample has a sixteenth */
}

TEST(ranks_that_are_late_in_turn_are_not_named)
{
	struct waits waits;
	struct straggler_news news;
	waits_begin(&waits, RANKS);
	ck_assert_uint_eq(walk(&waits, 1, 1000, 1, STEP_NS, LAG_NS, true, &news), 0);
}

TEST(waits_that_are_a_small_part_of_the_time_name_nobody)
{
	struct waits waits;
	struct straggler_news news;
	waits_begin(&waits, RANKS);
	ck_assert_uint_eq(walk(&waits, 1, 1000, 1, NS_PER_S, 49 * NS_PER_MS, false, &news), 0);
	waits_begin(&waits, RANKS);
	ck_assert_uint_gt(walk(&waits, 1, 1000, 1, NS_PER_S, 53 * NS_PER_MS, false, &news), 0);
}

TEST(lags_that_clocks_may_have_made_are_no_waits)
{
	struct wait_groups groups = { .items = NULL };
	struct straggler_news news;
	for (uint64_t i = 1; i <= 200; i++)
		for (uint32_t host = 0; host < 2; host++) {
			struct step_mark mark = { .step = i,
						  .last_ns = i * STEP_NS + host * LAG_NS,
						  .mean_ns = i * STEP_NS + host * LAG_NS,
						  .error_ns = host ? 0 : 5 * NS_PER_MS,
						  .rank = host,
						  .ranks = 1 };
			ck_assert(!wait_groups_add(&groups, 7, 2, &mark, &news));
		}
	ck_assert_uint_eq(groups.count, 1);
	wait_groups_done(&groups);
}

/* The clock of the second host is 4 ms ahead of what it is taken for, which is within its error: so
 * its rank seems to be later than it is, and the other one less late. */
TEST(a_clock_that_is_wrong_within_its_error_does_not_hide_the_waits_for_others)
{
	struct wait_groups groups = { .items = NULL };
	struct straggler_news news;
	for (uint64_t i = 1; i <= 200; i++)
		for (uint32_t host = 0; host < 2; host++) {
			uint64_t late_ns = host == i % 2 ? LAG_NS : 0;
			uint64_t at_ns = i * STEP_NS + late_ns + host * 4 * NS_PER_MS;
			struct step_mark mark = { .step = i,
						  .last_ns = at_ns,
						  .mean_ns = at_ns,
						  .error_ns = host ? 4 * NS_PER_MS + 1 : 0,
						  .rank = host,
						  .ranks = 1 };
			ck_assert(!wait_groups_add(&groups, 7, 2, &mark, &news));
		}
	ck_assert_uint_eq(groups.items[0]->waits.stragglers.count, 200);
	wait_groups_done(&groups);
}

TEST(groups_are_judged_apart_and_are_bounded)
{
	struct wait_groups groups = { .items = NULL };
	struct straggler_news news;
	struct step_mark mark = { .rank = 1, .ranks = RANKS };
	uint64_t named = 0;
	for (uint64_t i = 1; i <= 100; i++)
		for (uint64_t key = 1; key <= WAIT_GROUPS_MAX + 1; key++) {
			mark.step = i;
			mark.mean_ns = i * STEP_NS;
			mark.last_ns = mark.mean_ns + (key % 2 ? LAG_NS : 0);
			if (!wait_groups_add(&groups, key, RANKS, &mark, &news))
				continue;
			ck_assert_uint_eq(news.group, key);
			ck_assert_uint_eq(key % 2, 1);
			named++;
		}
	ck_assert_uint_eq(named, WAIT_GROUPS_MAX / 2);
	ck_assert_uint_eq(groups.count, WAIT_GROUPS_MAX);
	ck_assert(!wait_groups_add(&groups, 1, RANKS + 1, &mark, &news)); /* not that group */
	ck_assert(!wait_groups_add(&groups, 1, 1, &mark, &news));
	wait_groups_done(&groups);
}

/* ---- a host ---- */

#define WALL ((int64_t)(1000 * NS_PER_S)) /* the wall clock minus the monotonic one */

static struct record records[RANKS];

/* Ranks `base` and on of a group of all RANKS came to the collectives up to `last`; the one of
 * local rank `slow` later than the others. */
static void record_all(uint32_t workers, const char *name, uint32_t group_size, uint64_t last,
		       int slow)
{
	uint32_t ranks[RANKS] = { 0, 1, 2, 3 };
	for (uint32_t i = 0; i < workers; i++) {
		struct record_group *group = record_group(&records[i], name);
		record_set_ranks(group, ranks, group_size);
		for (uint64_t seq = 1; seq <= last; seq++) {
			uint64_t at_ns = seq * STEP_NS + ((int)i == slow ? LAG_NS : 0);
			struct record_entry entry = { .seq = seq,
						      .created_ns = at_ns + (uint64_t)WALL,
						      .complete = true };
			record_add(group, &entry);
		}
	}
}

static void records_done(void)
{
	for (size_t i = 0; i < RANKS; i++)
		record_done(&records[i]);
}

TEST(a_group_whose_ranks_are_all_here_is_judged_here)
{
	struct host_arrivals host = HOST_ARRIVALS_INIT;
	host_arrivals_begin(&host, 0, RANKS, RANKS, 1, WALL);
	ck_assert(!host_arrivals_look(&host, records, WALL, 0)); /* nothing is there yet */
	record_all(RANKS, "0", RANKS, 100, 2);
	ck_assert(host_arrivals_look(&host, records, WALL, 100 * STEP_NS));
	ck_assert_uint_eq(host.news_count, 1);
	ck_assert(host.news[0].begins);
	ck_assert_uint_eq(host.news[0].rank, 2);
	ck_assert_uint_eq(host.news[0].group, host.groups[0].key);
	ck_assert_ptr_eq(host_arrivals_find(&host, host.news[0].group), &host.groups[0]);
	ck_assert(!host_arrivals_tells(&host, &host.groups[0]));
	ck_assert(host_arrivals_look(&host, records, WALL, 100 * STEP_NS));
	ck_assert_uint_eq(host.groups[0].mark_count, 0); /* nothing has come since */
	ck_assert_uint_eq(host.news_count, 0);
	records_done();
	host_arrivals_done(&host);
}

TEST(marks_of_a_group_with_ranks_elsewhere_are_on_the_clock_of_the_host)
{
	struct host_arrivals host = HOST_ARRIVALS_INIT;
	host_arrivals_begin(&host, 2, 2, RANKS, 2, WALL);
	record_all(2, "0", RANKS, 10, 1);
	ck_assert(host_arrivals_look(&host, records, WALL, 10 * STEP_NS));
	const struct arrival_group *group = &host.groups[0];
	ck_assert(host_arrivals_tells(&host, group));
	ck_assert_uint_eq(group->size, RANKS);
	ck_assert_uint_eq(group->here, 2);
	ck_assert_uint_eq(group->mark_count, 10);
	ck_assert_uint_eq(group->marks[3].step, 4);
	ck_assert_uint_eq(group->marks[3].rank, 3);
	ck_assert_uint_eq(group->marks[3].ranks, 2);
	ck_assert_uint_eq(group->marks[3].last_ns, 4 * STEP_NS + LAG_NS);
	ck_assert_uint_eq(group->marks[3].mean_ns, 4 * STEP_NS + LAG_NS / 2);
	ck_assert_uint_eq(host.news_count, 0);
	records_done();
	host_arrivals_done(&host);
}

TEST(a_rank_without_a_record_leaves_its_group_out_until_it_has_one)
{
	struct host_arrivals host = HOST_ARRIVALS_INIT;
	host_arrivals_begin(&host, 0, 3, RANKS, 2, WALL);
	record_all(2, "0", RANKS, 10, 1);
	host_arrivals_look(&host, records, WALL, 10 * STEP_NS);
	ck_assert_uint_eq(host.groups[0].mark_count, 0);
	record_done(&records[0]);
	record_done(&records[1]);
	record_all(3, "0", RANKS, 10, 1);
	host_arrivals_look(&host, records, WALL, 10 * STEP_NS);
	ck_assert_uint_eq(host.groups[0].mark_count, 10);
	records_done();
	host_arrivals_done(&host);
}

TEST(a_wall_clock_that_was_set_makes_times_uncertain)
{
	struct host_arrivals host = HOST_ARRIVALS_INIT;
	host_arrivals_begin(&host, 0, 2, RANKS, 2, WALL - 5 * (int64_t)NS_PER_S);
	record_all(2, "0", RANKS, 10, 1);
	host_arrivals_look(&host, records, WALL, 10 * STEP_NS);
	ck_assert_uint_ge(host.error_ns, 5 * NS_PER_S);
	host_arrivals_look(&host, records, WALL, 10 * STEP_NS);
	ck_assert_uint_eq(host.error_ns, 0);
	records_done();
	host_arrivals_done(&host);
}

/* The marks that a host picks of the collectives in one look after those up to `before`. */
static size_t marks_of(uint64_t before, uint64_t last, struct step_mark *ret_marks)
{
	struct host_arrivals host = HOST_ARRIVALS_INIT;
	host_arrivals_begin(&host, 0, 2, RANKS, 2, WALL);
	if (before) {
		record_all(2, "0", RANKS, before, 1);
		host_arrivals_look(&host, records, WALL, 0);
		records_done();
	}
	record_all(2, "0", RANKS, last, 1);
	host_arrivals_look(&host, records, WALL, 0);
	size_t count = host.groups[0].mark_count;
	memcpy(ret_marks, host.groups[0].marks, count * sizeof(*ret_marks));
	records_done();
	host_arrivals_done(&host);
	return count;
}

TEST(hosts_that_look_at_other_moments_pick_the_same_collectives)
{
	struct step_mark all[ARRIVALS_MARKS], some[ARRIVALS_MARKS];
	size_t count = marks_of(0, 900, all), fewer = marks_of(700, 900, some), common = 0;
	ck_assert_uint_le(count, ARRIVALS_MARKS);
	ck_assert_uint_ge(count, ARRIVALS_MARKS / 3);
	ck_assert_uint_ge(fewer, ARRIVALS_MARKS / 3);
	for (size_t i = 0; i < count; i++) {
		bool found = all[i].step <= 700;
		for (size_t j = 0; j < fewer && !found; j++)
			found = some[j].step == all[i].step;
		ck_assert(found);
		common += all[i].step > 700;
	}
	ck_assert_uint_gt(common, 3);
}

TEST(the_coordinator_is_told_of_the_largest_groups_only)
{
	struct host_arrivals host = HOST_ARRIVALS_INIT;
	size_t told = 0;
	host_arrivals_begin(&host, 3, 1, RANKS, RANKS, WALL);
	for (uint32_t i = 0; i < 2 * ARRIVALS_TOLD; i++) {
		char name[16];
		uint32_t ranks[3] = { i % 2, 2, 3 };
		snprintf(name, sizeof(name), "%u", i);
		struct record_group *group = record_group(&records[0], name);
		record_set_ranks(group, ranks + (i % 2 ? 0 : 1), i % 2 ? 3 : 2);
	}
	host_arrivals_look(&host, records, WALL, 0);
	ck_assert_uint_eq(host.count, 2 * ARRIVALS_TOLD);
	for (size_t i = 0; i < host.count; i++) {
		told += host_arrivals_tells(&host, &host.groups[i]);
		ck_assert(!host_arrivals_tells(&host, &host.groups[i]) || host.groups[i].size == 3);
	}
	ck_assert_uint_eq(told, ARRIVALS_TOLD);
	records_done();
	host_arrivals_done(&host);
}
