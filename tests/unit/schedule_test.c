#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "core/batch/schedule.h"

struct job {
	struct schedule_item item;
	uint64_t ns;
};

static uint64_t true_time(void *arg UNUSED, const struct schedule_item *item)
{
	return container_of(item, const struct job, item)->ns;
}

static void queue_jobs(struct schedule *schedule, struct job *jobs, size_t count,
		       enum schedule_order order)
{
	for (size_t i = 0; i < count; i++) {
		jobs[i].item.index = (uint32_t)i;
		jobs[i].item.node = HEAP_NODE_INIT;
		schedule_add(schedule, &jobs[i].item,
			     schedule_key(&jobs[i].item, order, jobs[i].ns, 1));
	}
}

TEST(the_longest_work_starts_first)
{
	struct job jobs[] = { { { .width = 1 }, 10 },
			      { { .width = 2 }, 6 },
			      { { .width = 1 }, 11 } };
	AUTO(schedule_done) struct schedule schedule = SCHEDULE_INIT;
	AUTO(corepool_done) struct corepool pool;
	struct placement placement;
	corepool_init_anonymous(&pool, 4);
	struct schedule_taker taker = schedule_pool_taker(&pool);
	queue_jobs(&schedule, jobs, 3, SCHEDULE_LONGEST);
	ck_assert_ptr_eq(schedule_place(&schedule, &taker, &pool, &placement), &jobs[1].item);
	ck_assert_ptr_eq(schedule_place(&schedule, &taker, &pool, &placement), &jobs[2].item);
	ck_assert_ptr_eq(schedule_place(&schedule, &taker, &pool, &placement), &jobs[0].item);
	ck_assert_ptr_null(schedule_place(&schedule, &taker, &pool, &placement));
}

TEST(without_history_the_list_is_kept_within_a_width)
{
	struct job jobs[] = { { { .width = 1 }, 0 }, { { .width = 2 }, 0 }, { { .width = 1 }, 0 } };
	AUTO(schedule_done) struct schedule schedule = SCHEDULE_INIT;
	AUTO(corepool_done) struct corepool pool;
	struct placement placement;
	corepool_init_anonymous(&pool, 4);
	struct schedule_taker taker = schedule_pool_taker(&pool);
	queue_jobs(&schedule, jobs, 3, SCHEDULE_LONGEST);
	ck_assert_ptr_eq(schedule_place(&schedule, &taker, &pool, &placement), &jobs[1].item);
	ck_assert_ptr_eq(schedule_place(&schedule, &taker, &pool, &placement), &jobs[0].item);
	ck_assert_ptr_eq(schedule_place(&schedule, &taker, &pool, &placement), &jobs[2].item);
}

TEST(a_wide_order_at_the_head_does_not_block_narrow_ones)
{
	struct job jobs[] = { { { .width = 1 }, 1 }, { { .width = 2 }, 1 }, { { .width = 1 }, 1 } };
	AUTO(schedule_done) struct schedule schedule = SCHEDULE_INIT;
	AUTO(corepool_done) struct corepool pool;
	struct placement placement;
	corepool_init_anonymous(&pool, 2);
	struct schedule_taker taker = schedule_pool_taker(&pool);
	queue_jobs(&schedule, jobs, 3, SCHEDULE_LISTED);
	ck_assert_ptr_eq(schedule_place(&schedule, &taker, &pool, &placement), &jobs[0].item);
	ck_assert_ptr_eq(schedule_place(&schedule, &taker, &pool, &placement), &jobs[2].item);
	ck_assert_ptr_null(schedule_place(&schedule, &taker, &pool, &placement));
}

TEST(random_order_repeats_with_its_seed)
{
	struct schedule_item item = { .index = 7, .width = 1 };
	ck_assert_uint_eq(schedule_key(&item, SCHEDULE_RANDOM, 0, 3),
			  schedule_key(&item, SCHEDULE_RANDOM, 0, 3));
	ck_assert_uint_ne(schedule_key(&item, SCHEDULE_RANDOM, 0, 3),
			  schedule_key(&item, SCHEDULE_RANDOM, 0, 4));
}

/* 8 cores, 200 orders, widths 1/2/4/8, log-normal times: how far from the lower bound? */
static double makespan_ratio(unsigned seed)
{
	enum { JOBS = 200, CORES = 8 };
	static struct job jobs[JOBS];
	AUTO(schedule_done) struct schedule schedule = SCHEDULE_INIT;
	AUTO(corepool_done) struct corepool pool;
	double area = 0, longest = 0;
	srand(seed);
	corepool_init_anonymous(&pool, CORES);
	for (int i = 0; i < JOBS; i++) {
		double u = (rand() + 1.0) / (RAND_MAX + 2.0), v = (rand() + 1.0) / (RAND_MAX + 2.0);
		double normal = sqrt(-2 * log(u)) * cos(2 * M_PI * v);
		jobs[i] = (struct job){ .item = { .width = 1 << rand() % 4 },
					.ns = (uint64_t)(1e9 * exp(normal)) };
		area += (double)jobs[i].ns * jobs[i].item.width;
		longest = MAX(longest, (double)jobs[i].ns);
	}
	queue_jobs(&schedule, jobs, JOBS, SCHEDULE_LONGEST);
	uint64_t makespan = schedule_eta(&schedule, &pool, NULL, 0, CORES, true_time, NULL);
	return (double)makespan / MAX(area / CORES, longest);
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

TEST(mixed_widths_end_within_one_percent_of_the_lower_bound)
{
	double ratios[101];
	for (unsigned seed = 0; seed < ARRAY_LEN(ratios); seed++)
		ratios[seed] = makespan_ratio(seed + 1);
	qsort(ratios, ARRAY_LEN(ratios), sizeof(*ratios), compare_doubles);
	ck_assert_double_le(ratios[50], 1.01);
}

TEST(the_eta_counts_what_is_running_and_the_limit_on_jobs)
{
	struct job jobs[] = { { { .width = 1 }, 10 },
			      { { .width = 1 }, 10 },
			      { { .width = 1 }, 10 } };
	AUTO(schedule_done) struct schedule schedule = SCHEDULE_INIT;
	AUTO(corepool_done) struct corepool pool;
	corepool_init_anonymous(&pool, 4);
	queue_jobs(&schedule, jobs, 3, SCHEDULE_LISTED);
	struct schedule_running running = { .left_ns = 5 };
	ck_assert(corepool_take(&pool, 1, &running.placement));
	ck_assert_uint_eq(schedule_eta(&schedule, &pool, &running, 1, 4, true_time, NULL), 10);
	ck_assert_uint_eq(schedule_eta(&schedule, &pool, &running, 1, 2, true_time, NULL), 20);
	ck_assert_uint_eq(schedule_eta(&schedule, &pool, &running, 1, 1, true_time, NULL), 35);
	ck_assert_uint_eq(schedule.queued, 3);
}

TEST(each_wide_order_is_overtaken_as_if_it_were_the_first)
{
	struct job jobs[64];
	AUTO(schedule_done) struct schedule schedule = SCHEDULE_INIT;
	AUTO(corepool_done) struct corepool pool;
	struct placement one, both, narrow;
	corepool_init_anonymous(&pool, 2);
	struct schedule_taker taker = schedule_pool_taker(&pool);
	for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
		jobs[i] = (struct job){ { .width = i < 2 ? 2 : 1 }, 10 };
	queue_jobs(&schedule, jobs, ARRAY_LEN(jobs), SCHEDULE_LISTED);
	for (size_t wide = 0; wide < 2; wide++) {
		ck_assert(corepool_take(&pool, 1, &one));
		for (int i = 0; i < 2 * SCHEDULE_OVERTAKE; i++) {
			ck_assert_ptr_nonnull(schedule_place(&schedule, &taker, &pool, &narrow));
			corepool_give(&pool, &narrow);
		}
		ck_assert_ptr_null(schedule_place(&schedule, &taker, &pool, &narrow));
		corepool_give(&pool, &one);
		ck_assert_ptr_eq(schedule_place(&schedule, &taker, &pool, &both), &jobs[wide].item);
		corepool_give(&pool, &both);
	}
}

/* 200 narrow orders around a wide one: it must not be the last to start, whatever the rule. */
TEST(a_wide_order_is_not_overtaken_for_ever)
{
	static const enum schedule_order rules[] = { SCHEDULE_LONGEST, SCHEDULE_LISTED,
						     SCHEDULE_RANDOM };
	for (size_t r = 0; r < ARRAY_LEN(rules); r++) {
		struct job jobs[201];
		AUTO(schedule_done) struct schedule schedule = SCHEDULE_INIT;
		AUTO(corepool_done) struct corepool pool;
		corepool_init_anonymous(&pool, 2);
		struct schedule_taker taker = schedule_pool_taker(&pool);
		for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
			jobs[i] = (struct job){ { .width = 1 }, 10 };
		jobs[2].item.width = 2;
		queue_jobs(&schedule, jobs, ARRAY_LEN(jobs), rules[r]);
		/* One of two CPUs is always busy with a narrow order: their ends alternate. */
		struct placement running[2];
		size_t started = 0, wide_at = 0, busy = 0;
		while (schedule.queued > 0) {
			struct schedule_item *item =
				schedule_place(&schedule, &taker, &pool, &running[busy]);
			if (item) {
				started++;
				busy++;
				wide_at = item == &jobs[2].item ? started : wide_at;
				continue;
			}
			ck_assert_uint_gt(busy, 0);
			corepool_give(&pool, &running[0]);
			running[0] = running[--busy];
		}
		size_t before = 0; /* it is not earlier than its own place in the line */
		for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
			before += jobs[i].item.node.key < jobs[2].item.node.key;
		ck_assert_uint_le(wide_at, before + 2 * SCHEDULE_OVERTAKE + 2);
	}
}
