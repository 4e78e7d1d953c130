/* How ranks keep pace: clocks of other hosts, times of steps, stragglers and why. */
#include "unit.h"

#include <stdio.h>

#include "base/clock.h"
#include "core/pace/clock_offset.h"
#include "core/pace/host_steps.h"
#include "core/pace/looks.h"
#include "core/pace/straggler.h"
#include "core/pace/slowdown_cause.h"
#include "core/pace/waits.h"

#define APART ((int64_t)(20 * NS_PER_S))

/* A message that took `there_ns` to a peer whose clock is APART ahead, and `back_ns` back. */
static void sample(struct clock_offset *offset, uint64_t sent_ns, uint64_t there_ns,
		   uint64_t back_ns)
{
	clock_offset_add(offset, &(struct clock_sample){
					 .sent_ns = sent_ns,
					 .received_ns = sent_ns + there_ns + back_ns,
					 .peer_ns = sent_ns + there_ns + (uint64_t)APART,
				 });
}

static uint64_t distance(const struct clock_offset *offset)
{
	int64_t off = offset->shift_ns - APART;
	return (uint64_t)(off < 0 ? -off : off);
}

TEST(an_offset_is_unknown_before_the_first_sample)
{
	struct clock_offset offset = { .known = false };
	ck_assert_uint_eq(clock_offset_error_ns(&offset, 5), UINT64_MAX);
	ck_assert_uint_eq(clock_offset_wall(&offset, 1, 5).error_ns, 0);
}

TEST(an_offset_is_exact_when_both_ways_take_as_long)
{
	struct clock_offset offset = { .known = false };
	sample(&offset, 1000 * NS_PER_S, 100 * NS_PER_US, 100 * NS_PER_US);
	ck_assert_int_eq(offset.shift_ns, APART);
	ck_assert_uint_eq(clock_offset_error_ns(&offset, offset.when_ns), 100 * NS_PER_US);
	ck_assert_uint_eq(clock_offset_there(&offset, 7), 7 + (uint64_t)APART);
}

TEST(an_offset_is_wrong_by_less_than_its_error_however_uneven_the_ways)
{
	struct clock_offset offset = { .known = false };
	sample(&offset, NS_PER_S, 0, 30 * NS_PER_MS);
	ck_assert_uint_eq(distance(&offset), 15 * NS_PER_MS);
	ck_assert_uint_le(distance(&offset), clock_offset_error_ns(&offset, offset.when_ns));
}

TEST(a_sample_that_was_held_up_changes_nothing)
{
	struct clock_offset offset = { .known = false };
	sample(&offset, 10 * NS_PER_S, 100 * NS_PER_US, 100 * NS_PER_US);
	sample(&offset, 11 * NS_PER_S, 90 * NS_PER_MS, 100 * NS_PER_US);
	ck_assert_uint_eq(distance(&offset), 0);
	ck_assert_uint_eq(offset.half_ns, 100 * NS_PER_US);
}

TEST(an_old_sample_gives_way_when_clocks_may_have_drifted)
{
	struct clock_offset offset = { .known = false };
	sample(&offset, 10 * NS_PER_S, 100 * NS_PER_US, 100 * NS_PER_US);
	uint64_t error_ns = clock_offset_error_ns(&offset, offset.when_ns + 100 * NS_PER_S);
	ck_assert_uint_eq(error_ns, 100 * NS_PER_US + 10 * NS_PER_MS);
	sample(&offset, 110 * NS_PER_S, 4 * NS_PER_MS, 5 * NS_PER_MS);
	ck_assert_uint_ge(offset.when_ns, 110 * NS_PER_S);
}

TEST(a_sample_received_before_it_was_sent_is_ignored)
{
	struct clock_offset offset = { .known = false };
	clock_offset_add(&offset, &(struct clock_sample){ .sent_ns = 2, .received_ns = 1 });
	ck_assert(!offset.known);
}

TEST(a_peer_may_be_behind_and_claim_any_time)
{
	struct clock_offset offset = { .known = false };
	clock_offset_add(&offset, &(struct clock_sample){ .sent_ns = 50 * NS_PER_S,
							  .received_ns = 50 * NS_PER_S,
							  .peer_ns = 30 * NS_PER_S });
	ck_assert_int_eq(offset.shift_ns, -APART);
	clock_offset_add(&offset, &(struct clock_sample){ .sent_ns = 50 * NS_PER_S,
							  .received_ns = 50 * NS_PER_S,
							  .peer_ns = UINT64_MAX,
							  .peer_wall_shift_ns = INT64_MAX });
	ck_assert_uint_gt(clock_offset_wall(&offset, INT64_MIN, UINT64_MAX).error_ns, 0);
}

TEST(the_wall_clock_is_known_as_it_is_now)
{
	struct clock_offset offset = { .known = false };
	struct clock_sample at = { .sent_ns = NS_PER_S,
				   .received_ns = NS_PER_S + 2,
				   .peer_ns = 21 * NS_PER_S + 1,
				   .peer_wall_shift_ns = 100 };
	clock_offset_add(&offset, &at);
	ck_assert_int_eq(clock_offset_wall(&offset, 40, at.received_ns).offset_ns, APART + 60);
	/* Somebody sets the peer's clock: a slow answer tells of it as well. */
	at.received_ns += NS_PER_S;
	at.peer_wall_shift_ns = 100 + APART;
	clock_offset_add(&offset, &at);
	ck_assert_int_eq(clock_offset_wall(&offset, 40, at.received_ns).offset_ns, 2 * APART + 60);
	at.peer_wall_shift_ns = 0;
	clock_offset_add(&offset, &at);
	ck_assert_uint_eq(clock_offset_wall(&offset, 40, at.received_ns).error_ns, 0);
}

/* ---- times of steps ---- */

static struct worker_page page;

TEST(the_last_steps_of_a_page_are_read_with_their_numbers)
{
	struct step_times times;
	ck_assert(!step_times_read(&page, &times));
	for (uint64_t i = 0; i < 100; i++)
		worker_page_tell(&page, 1000 + 10 * i, i * NS_PER_MS);
	ck_assert(step_times_read(&page, &times));
	ck_assert_uint_eq(times.told, 100);
	ck_assert_uint_eq(times.step, 1990);
	ck_assert_uint_eq(times.stride, 10);
	ck_assert_uint_eq(times.count,
			  STEP_PROGRESS_TIMES - 1); /* the worker may be at the oldest */
	ck_assert_uint_eq(times.ns[times.count - 1], 99 * NS_PER_MS);
	ck_assert_uint_eq(times.ns[0], (99 - times.count + 1) * NS_PER_MS);
	worker_page_tell(&page, 1995, NS_PER_S); /* not in strides */
	ck_assert(!step_times_read(&page, &times));
}

TEST(a_host_tells_each_step_once_when_all_its_workers_have_told_it)
{
	static struct worker_page pages[2];
	struct host_steps steps = { .told = NULL };
	uint64_t seen[2] = { 0, 0 };
	host_steps_begin(&steps, 4, 2, 3);
	ck_assert(!host_steps_look(&steps, 0, &pages[0], &seen[0]));
	for (uint64_t i = 1; i <= 5; i++)
		worker_page_tell(&pages[0], i, i * NS_PER_S);
	for (uint64_t i = 1; i <= 3; i++)
		worker_page_tell(&pages[1], i, i * NS_PER_S + 10);
	for (uint32_t i = 0; i < 2; i++)
		ck_assert(host_steps_look(&steps, i, &pages[i], &seen[i]));
	ck_assert_uint_eq(steps.told_count, 3);
	ck_assert_uint_eq(steps.told[2].step, 3);
	ck_assert_uint_eq(steps.told[2].rank, 5);
	ck_assert_uint_eq(steps.told[2].ranks, 2);
	ck_assert_uint_eq(steps.told[2].last_ns, 3 * NS_PER_S + 10);
	steps.told_count = 0;
	worker_page_tell(&pages[1], 4, 4 * NS_PER_S - 10);
	for (uint32_t i = 0; i < 2; i++)
		ck_assert(host_steps_look(&steps, i, &pages[i], &seen[i]));
	ck_assert_uint_eq(steps.told_count, 1);
	ck_assert_uint_eq(steps.told[0].rank, 4);
	host_steps_done(&steps);
}

TEST(the_more_nodes_the_fewer_steps_each_tells)
{
	struct host_steps steps = { .told = NULL };
	static const uint32_t nodes[] = { 0, 100, 400, 100000 };
	static const uint64_t limits[] = { 64, 64, 16, 4 };
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
		host_steps_begin(&steps, 0, 1, nodes[i]);
		ck_assert_uint_eq(steps.limit, limits[i]);
	}
}

TEST(fast_steps_are_sampled_by_powers_of_two)
{
	struct step_times times = { .count = 51 };
	for (uint64_t i = 0; i < times.count; i++)
		times.ns[i] = i * 2 * NS_PER_MS;
	ck_assert_uint_eq(step_times_sampling(&times, 1000), 1);
	ck_assert_uint_eq(step_times_sampling(&times, 64), 8); /* 500 a second */
	ck_assert_uint_eq(step_times_sampling(&times, 1), 32);
}

static struct step_mark mark_of(uint64_t step, uint32_t rank, uint64_t at_ns)
{
	return (struct step_mark){
		.step = step, .last_ns = at_ns, .mean_ns = at_ns, .rank = rank, .ranks = 1
	};
}

TEST(marks_of_ranks_make_marks_of_hosts_and_those_the_mark_of_a_job)
{
	struct step_marks host = { 0 }, job = { 0 };
	struct step_mark one = mark_of(7, 0, 1000), two = mark_of(7, 1, 1040);
	ck_assert_ptr_null(step_marks_add(&host, &one, 2));
	struct step_mark here = *step_marks_add(&host, &two, 2);
	ck_assert_uint_eq(here.rank, 1);
	ck_assert_uint_eq(here.mean_ns, 1020);
	struct step_mark there = {
		.step = 7, .last_ns = 1030, .mean_ns = 1000, .rank = 3, .ranks = 2
	};
	ck_assert_ptr_null(step_marks_add(&job, &there, 4));
	const struct step_mark *all = step_marks_add(&job, &here, 4);
	ck_assert_ptr_nonnull(all);
	ck_assert_uint_eq(all->rank, 1);
	ck_assert_uint_eq(all->last_ns, 1040);
	ck_assert_uint_eq(all->mean_ns, 1010);
	ck_assert_ptr_null(step_marks_add(&job, &here, 4)); /* told twice */
}

TEST(steps_that_go_backwards_are_not_read)
{
	static struct worker_page back;
	struct step_times times;
	worker_page_tell(&back, 10, NS_PER_MS);
	worker_page_tell(&back, 5, 2 * NS_PER_MS);
	ck_assert(!step_times_read(&back, &times));
}

TEST(a_mark_takes_an_empty_place_before_that_of_an_older_step)
{
	struct step_marks job = { 0 };
	for (uint64_t step = 0; step < 2; step++) {
		struct step_mark one = mark_of(step, 0, step);
		ck_assert_ptr_null(step_marks_add(&job, &one, 2));
	}
	struct step_mark two = mark_of(0, 1, 5);
	ck_assert_ptr_nonnull(step_marks_add(&job, &two, 2));
}

TEST(more_ranks_than_there_are_leave_the_mark_as_it_was)
{
	struct step_marks job = { 0 };
	struct step_mark two = { .step = 7, .last_ns = 10, .mean_ns = 10, .rank = 0, .ranks = 2 };
	struct step_mark one = mark_of(7, 2, 5);
	ck_assert_ptr_null(step_marks_add(&job, &two, 3));
	ck_assert_ptr_null(step_marks_add(&job, &two, 3)); /* a host tells twice */
	ck_assert_ptr_nonnull(step_marks_add(&job, &one, 3));
}

TEST(steps_that_never_become_complete_make_room)
{
	struct step_marks job = { 0 };
	for (uint64_t step = 0; step < 1000; step++) {
		struct step_mark one = mark_of(step, 0, step);
		ck_assert_ptr_null(step_marks_add(&job, &one, 2));
	}
	struct step_mark old = mark_of(100, 1, 5), recent = mark_of(999, 1, 5);
	ck_assert_ptr_null(step_marks_add(&job, &old, 2));
	ck_assert_ptr_nonnull(step_marks_add(&job, &recent, 2));
}

/* ---- stragglers ---- */

enum { WORLD = 4, STEP_MS = 20 };

static uint64_t random_state = 88172645463325252;

static uint64_t random_below(uint64_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % limit;
}

/* One step of WORLD ranks that are up to `noise_ns` late by chance, one of them always by
 * `slow_ns`. */
static bool take_step(struct stragglers *s, uint64_t step, uint32_t slow, uint64_t slow_ns,
		      uint64_t noise_ns, uint64_t error_ns, struct straggler_news *news)
{
	struct step_marks marks = { 0 };
	const struct step_mark *all = NULL;
	for (uint32_t rank = 0; rank < WORLD; rank++) {
		uint64_t at_ns = step * STEP_MS * NS_PER_MS + random_below(noise_ns + 1) +
				 (rank == slow ? slow_ns : 0);
		struct step_mark mark = mark_of(step, rank, at_ns);
		all = step_marks_add(&marks, &mark, WORLD);
	}
	return stragglers_add(s, all, error_ns, news);
}

TEST(a_rank_that_is_slower_by_6_ms_is_named_within_100_steps_in_spite_of_noise)
{
	for (uint32_t slow = 0; slow < WORLD; slow++) {
		struct stragglers s;
		struct straggler_news news;
		stragglers_begin(&s, WORLD);
		uint64_t step = 0;
		while (!take_step(&s, step, slow, 6 * NS_PER_MS, 8 * NS_PER_MS, NS_PER_MS, &news))
			ck_assert_uint_lt(step++, 100);
		ck_assert(news.begins);
		ck_assert_uint_eq(news.rank, slow);
		ck_assert_uint_ge(step, STRAGGLER_TRIALS_MIN - 1);
		ck_assert_uint_ge(news.lag_ns, 5 * NS_PER_MS);
	}
}

TEST(no_rank_is_named_by_chance)
{
	for (int run = 0; run < 200; run++) {
		struct stragglers s;
		struct straggler_news news;
		stragglers_begin(&s, WORLD);
		for (uint64_t step = 0; step < 1000; step++)
			ck_assert(!take_step(&s, step, WORLD, 0, 15 * NS_PER_MS, 0, &news));
	}
}

TEST(a_lag_that_does_not_matter_names_nobody)
{
	struct stragglers s;
	struct straggler_news news;
	stragglers_begin(&s, WORLD);
	for (uint64_t step = 0; step < 500; step++) /* always last, by half a millisecond */
		ck_assert(!take_step(&s, step, 2, NS_PER_MS / 2, 0, 0, &news));
	for (uint64_t step = 500; step < 1000; step++) /* nor one that clocks may have made */
		ck_assert(!take_step(&s, step, 2, 6 * NS_PER_MS, 0, 9 * NS_PER_MS, &news));
}

TEST(a_rank_stays_named_until_it_is_rarely_last)
{
	struct stragglers s;
	struct straggler_news news;
	uint64_t step = 0;
	stragglers_begin(&s, WORLD);
	while (!take_step(&s, step++, 1, 9 * NS_PER_MS, 0, 0, &news))
		;
	for (int i = 0; i < 400; i++, step++) { /* in one step of two, then of three: no news */
		bool late = i % (i < 200 ? 2 : 3) == 0;
		ck_assert(!take_step(&s, step, late ? 1 : WORLD, 9 * NS_PER_MS, 0, 0, &news));
	}
	uint64_t left = 0;
	while (!take_step(&s, step++, WORLD, 0, 0, 0, &news))
		ck_assert_uint_lt(left++, STRAGGLER_TRIALS);
	ck_assert(!news.begins);
	ck_assert_uint_eq(news.rank, 1);
	ck_assert_uint_eq(s.named_count, 0);
}

TEST(a_single_rank_has_nobody_to_hold_up)
{
	struct stragglers s;
	struct straggler_news news;
	stragglers_begin(&s, 1);
	struct step_mark mark = mark_of(1, 0, 5);
	ck_assert(!stragglers_add(&s, &mark, 0, &news));
}

TEST(the_chance_of_being_last_is_that_of_a_binomial)
{
	ck_assert_double_eq_tol(straggler_chance(0, 20, 4), 1, 1e-12);
	ck_assert_double_eq_tol(straggler_chance(20, 20, 2), 1 / 1048576.0, 1e-15);
	ck_assert_double_eq_tol(straggler_chance(10, 20, 4), 0.013864416, 1e-8);
}

/* ---- looks ---- */

TEST(only_a_look_at_which_all_but_one_wait_counts_against_it)
{
	static const uint32_t sizes[] = { 2, 3, 4, 17, 500 };
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		for (uint32_t busy = 0; busy <= MIN(sizes[i], 5U); busy++) {
			struct step_marks marks = { 0 };
			const struct step_mark *all = NULL;
			for (uint32_t rank = 0; rank < sizes[i]; rank++) {
				struct step_mark mark =
					look_mark(1000000, rank, rank >= busy, 77, sizes[i]);
				all = step_marks_add(&marks, &mark, sizes[i]);
			}
			bool counts = straggler_lag_ns(all) >= STRAGGLER_LAG_MIN_NS;
			ck_assert_msg(counts == (busy == 1), "%u of %u do not wait", busy,
				      sizes[i]);
			struct step_mark complete = *all;
			look_mark_complete(&complete, sizes[i]);
			if (busy == 1)
				ck_assert_uint_eq(complete.rank, 0);
			if (busy == 1)
				ck_assert_uint_eq(complete.wait, 1 + 77 % LOOKS_STEPS);
		}
}

TEST(many_looks_at_one_wait_are_one_trial)
{
	struct waits waits;
	struct straggler_news news;
	waits_begin(&waits, 2);
	for (uint64_t look = 1; look <= 400; look++) { /* rank 1 once for long, then nobody */
		struct step_marks marks = { 0 };
		bool works = look > 10 && look < 100;
		struct step_mark one = look_mark(look, 0, true, 3, 2),
				 two = look_mark(look, 1, !works, 3, 2);
		step_marks_add(&marks, &one, 2);
		struct step_mark all = *step_marks_add(&marks, &two, 2);
		look_mark_complete(&all, 2);
		ck_assert(!waits_add(&waits, &all, 0, &news));
	}
	ck_assert_uint_eq(waits.stragglers.count, 1);
}

TEST(looks_are_in_bursts_that_all_hosts_have_at_the_same_time)
{
	uint64_t first = looks_next(77 * LOOKS_APART_NS + 5, 0, 2), look = first, count = 0;
	ck_assert_uint_eq(first, 78);
	while (look < first + LOOKS_FIRST - 1) {
		ck_assert_uint_eq(looks_next(look * LOOKS_APART_NS, first, 2), look + 1);
		look++;
	}
	for (; look < 10 * LOOKS_EVERY; count++)
		look = looks_next(look * LOOKS_APART_NS, first, 2);
	ck_assert_uint_le(count, 11 * LOOKS_BURST);
	ck_assert_uint_eq(looks_next((3 * LOOKS_EVERY + 100) * (uint64_t)LOOKS_APART_NS, 1, 2),
			  4 * LOOKS_EVERY);
	ck_assert_uint_eq(looks_next((3 * LOOKS_EVERY + 100) * (uint64_t)LOOKS_APART_NS, 1, 5000) %
				  (10 * LOOKS_EVERY),
			  0);
}

/* ---- why ---- */

static const char *why(const struct slowdown *now)
{
	static char text[512];
	AUTO(buf_done) struct buf out = BUF_INIT;
	slowdown_explain(&(struct slowdown){ .at_ns = NS_PER_S }, now, 2, &out);
	snprintf(text, sizeof(text), "%s", buf_str(&out));
	return text;
}

TEST(what_stands_out_explains_a_lag)
{
	ck_assert_str_eq(
		why(&(struct slowdown){ .at_ns = 2 * NS_PER_S, .wait_ns = 310 * NS_PER_MS }),
		"for 31 % of the time it waited for a CPU");
	ck_assert_str_eq(
		why(&(struct slowdown){ .at_ns = 2 * NS_PER_S,
					.throttled_ns = 800 * NS_PER_MS,
					.steal_ns = 300 * NS_PER_MS,
					.major_faults = 50 }),
		"for 80 % of the time its cgroup had used up its CPU quota; for 15 % of the "
		"time the hypervisor gave the CPUs of its host to others; 50 times a second it "
		"waited for memory from the disk");
	ck_assert_ptr_nonnull(strstr(why(&(struct slowdown){ .at_ns = 2 * NS_PER_S }), "its work"));
	ck_assert_ptr_nonnull(strstr(why(&(struct slowdown){ .at_ns = 0 }), "its work"));
}

TEST(counters_that_have_gone_back_explain_nothing)
{
	AUTO(buf_done) struct buf out = BUF_INIT;
	const struct slowdown before = { .at_ns = NS_PER_S, .wait_ns = NS_PER_S };
	slowdown_explain(&before, &(struct slowdown){ .at_ns = 2 * NS_PER_S }, 2, &out);
	ck_assert_ptr_nonnull(strstr(buf_str(&out), "its work"));
}
