#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/batch/schedule.h"
#include "sys/hwloc_topology.h"

#define LINUX_SMT "pu:2(indexes=0,8,1,9,2,10,3,11,4,12,5,13,6,14,7,15)"

static struct topology machine(const char *description, const char *allowed)
{
	struct topology topology;
	struct err err = ERR_INIT;
	ck_assert_msg(topology_read_hwloc(description, &topology, &err) == 0, "%s", err.msg);
	if (allowed) {
		struct cpuset set;
		ck_assert_int_eq(cpuset_parse(allowed, &set, NULL), 0);
		topology_allow(&topology, &set);
	}
	return topology;
}

static struct corepool pool_of(const char *description, const char *allowed, enum corepool_smt smt)
{
	AUTO(topology_done) struct topology topology = machine(description, allowed);
	struct corepool pool;
	ck_assert_int_eq(
		corepool_init(&pool, &topology, &(struct corepool_opts){ .smt = smt }, NULL), 0);
	return pool;
}

/* Takes `width` and returns the CPUs as text, "" if there was no place. */
static const char *take(struct corepool *pool, int width)
{
	static char text[8][64];
	static int turn;
	struct placement placement;
	AUTO(buf_done) struct buf out = BUF_INIT;
	if (corepool_take(pool, width, &placement)) {
		struct cpuset cpus = corepool_cpus(pool, &placement);
		ck_assert_int_eq(cpuset_count(&cpus), width);
		cpuset_format(&cpus, &out);
	}
	turn = (turn + 1) % 8;
	snprintf(text[turn], sizeof(text[turn]), "%s", buf_str(&out));
	return text[turn];
}

TEST(orders_get_whole_cores_and_twins_stay_idle)
{
	AUTO(corepool_done)
	struct corepool pool = pool_of("package:2 core:4 " LINUX_SMT, NULL, COREPOOL_SMT_AVOID);
	ck_assert_int_eq(corepool_max_width(&pool), 8);
	for (int i = 0; i < 8; i++) {
		char expected[8];
		snprintf(expected, sizeof(expected), "%d", i);
		ck_assert_str_eq(take(&pool, 1), expected);
	}
	ck_assert_str_eq(take(&pool, 1), "");
}

TEST(one_order_may_use_both_twins)
{
	AUTO(corepool_done)
	struct corepool pool = pool_of("package:2 core:4 " LINUX_SMT, NULL, COREPOOL_SMT_USE);
	ck_assert_int_eq(corepool_max_width(&pool), 16);
	ck_assert_str_eq(take(&pool, 2), "0,8");
	/* Three threads block two cores and use three CPUs. */
	ck_assert_str_eq(take(&pool, 3), "2-3,10");
	ck_assert_str_eq(take(&pool, 1), "1");
	ck_assert_str_eq(take(&pool, 1), "4");
}

TEST(shared_cores_come_last_and_are_marked_on_both_sides)
{
	AUTO(corepool_done)
	struct corepool pool = pool_of("core:2 pu:2(indexes=0,2,1,3)", NULL, COREPOOL_SMT_SHARE);
	struct placement a, b, c;
	ck_assert(corepool_take(&pool, 1, &a));
	ck_assert(corepool_take(&pool, 1, &b));
	ck_assert(corepool_take(&pool, 1, &c)); /* the twin of a */
	ck_assert(!corepool_shared(&pool, &b));
	ck_assert(corepool_shared(&pool, &c));
	corepool_give(&pool, &c);
	ck_assert(corepool_shared(&pool, &a));
	corepool_give(&pool, &a);
	ck_assert(corepool_take(&pool, 1, &a));
	ck_assert(!corepool_shared(&pool, &a));
}

TEST(who_comes_to_a_core_whose_later_twin_is_taken_shares_it)
{
	AUTO(corepool_done)
	struct corepool pool = pool_of("core:2 pu:2(indexes=0,2,1,3)", NULL, COREPOOL_SMT_SHARE);
	struct placement a, b, c;
	ck_assert(corepool_take(&pool, 1, &a));
	ck_assert(corepool_take(&pool, 1, &b));
	ck_assert(corepool_take(&pool, 1, &c)); /* the twin of a */
	corepool_give(&pool, &a);
	ck_assert(corepool_take(&pool, 1, &a));
	ck_assert(corepool_shared(&pool, &a));
	ck_assert(corepool_shared(&pool, &c));
	ck_assert(!corepool_shared(&pool, &b));
}

TEST(an_order_stays_in_an_l3_group_and_a_node_if_it_fits)
{
	AUTO(corepool_done)
	struct corepool pool =
		pool_of("package:2 [numa] l3:4 core:4 pu:1", NULL, COREPOOL_SMT_AVOID);
	ck_assert_str_eq(take(&pool, 3), "0-2");
	ck_assert_str_eq(take(&pool, 3), "4-6");
	ck_assert_str_eq(take(&pool, 6), "8-13"); /* two whole groups of node 0 */
	ck_assert_str_eq(take(&pool, 16), "16-31");
	ck_assert_str_eq(take(&pool, 4), ""); /* free cores are left, but in pieces */
	ck_assert_str_eq(take(&pool, 1), "3");
	ck_assert_str_eq(take(&pool, 2), "14-15");
	ck_assert_int_eq(corepool_max_width(&pool), 32);
}

TEST(holes_in_the_cpuset_are_respected)
{
	AUTO(corepool_done)
	struct corepool pool = pool_of("package:1 l3:2 core:4 pu:1", "1,3-5,7", COREPOOL_SMT_AVOID);
	ck_assert_int_eq(corepool_max_width(&pool), 5);
	ck_assert_str_eq(take(&pool, 2), "1,3");
	ck_assert_str_eq(take(&pool, 3), "4-5,7");
}

TEST(a_core_whose_twin_is_forbidden_is_used_in_part)
{
	AUTO(corepool_done) struct corepool pool = pool_of("core:2 pu:2", "0-2", COREPOOL_SMT_USE);
	ck_assert_int_eq(corepool_max_width(&pool), 2);
	ck_assert_str_eq(take(&pool, 2), "0,2");
}

TEST(two_cpus_are_a_pool_and_one_too)
{
	AUTO(corepool_done) struct corepool two = pool_of("core:2 pu:1", NULL, COREPOOL_SMT_AVOID);
	AUTO(corepool_done) struct corepool one = pool_of("core:1 pu:1", NULL, COREPOOL_SMT_AVOID);
	ck_assert_int_eq(corepool_max_width(&two), 2);
	ck_assert_str_eq(take(&two, 2), "0-1");
	ck_assert_str_eq(take(&one, 1), "0");
	ck_assert(!corepool_fits(&one, 2));
}

TEST(a_quota_limits_the_pool_but_leaves_one)
{
	static const struct {
		uint64_t milli;
		int width;
	} cases[] = { { 0, 8 }, { 2500, 2 }, { 500, 1 }, { 99000, 8 } };
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(topology_done) struct topology topology = machine("core:8 pu:1", NULL);
		topology.quota_milli = cases[i].milli;
		AUTO(corepool_done) struct corepool pool;
		ck_assert_int_eq(
			corepool_init(&pool, &topology, &(struct corepool_opts){ 0 }, NULL), 0);
		ck_assert_int_eq(corepool_max_width(&pool), cases[i].width);
	}
}

TEST(busy_cores_are_reserved_first_and_used_last)
{
	AUTO(topology_done) struct topology topology = machine("core:4 pu:1", NULL);
	struct corepool_opts opts = { .reserve = 1 };
	cpuset_add(&opts.busy, 0);
	cpuset_add(&opts.busy, 1);
	AUTO(corepool_done) struct corepool pool;
	ck_assert_int_eq(corepool_init(&pool, &topology, &opts, NULL), 0);
	ck_assert(cpuset_has(&pool.reserved, 1));
	ck_assert_str_eq(take(&pool, 1), "2");
	ck_assert_str_eq(take(&pool, 1), "3");
	ck_assert_str_eq(take(&pool, 1), "0");
}

TEST(no_allowed_cpu_is_an_error)
{
	AUTO(topology_done) struct topology topology = machine("core:2 pu:1", "7");
	struct corepool pool;
	ck_assert_int_eq(corepool_init(&pool, &topology, &(struct corepool_opts){ 0 }, NULL),
			 -ENODEV);
}

TEST(spreading_uses_both_nodes)
{
	AUTO(topology_done)
	struct topology topology = machine("package:2 [numa] l3:2 core:2 pu:1", NULL);
	AUTO(corepool_done) struct corepool pool;
	struct corepool_opts opts = { .place = COREPOOL_SPREAD };
	ck_assert_int_eq(corepool_init(&pool, &topology, &opts, NULL), 0);
	ck_assert_str_eq(take(&pool, 1), "0");
	ck_assert_str_eq(take(&pool, 1), "4");
	ck_assert_str_eq(take(&pool, 1), "2");
	ck_assert_str_eq(take(&pool, 1), "6");
}

TEST(anonymous_places_pin_nothing)
{
	AUTO(corepool_done) struct corepool pool;
	struct placement placement;
	corepool_init_anonymous(&pool, 3);
	ck_assert(corepool_take(&pool, 2, &placement));
	struct cpuset cpus = corepool_cpus(&pool, &placement);
	ck_assert(cpuset_empty(&cpus));
	ck_assert(!corepool_fits(&pool, 2));
	ck_assert(corepool_fits(&pool, 1));
}

/* --- whole schedules on many machines --- */

struct job {
	struct schedule_item item;
	uint64_t ns;
	bool done;
};

struct active {
	struct job *job;
	struct placement placement;
	uint64_t end_ns;
};

static void check_placement(const struct topology *topology, const struct corepool *pool,
			    const struct active *active, size_t count)
{
	const struct active *last = &active[count - 1];
	struct cpuset cpus = corepool_cpus(pool, &last->placement), twins = cpus;
	topology_add_twins(topology, &twins);
	for (size_t i = 0; i + 1 < count; i++) {
		struct cpuset other = corepool_cpus(pool, &active[i].placement);
		ck_assert(!cpuset_intersects(&twins, &other));
	}
	/* One node if a node can hold it. */
	int room[64] = { 0 }, most = 0, first_node = -1;
	for (int i = 0; i < pool->count; i++)
		room[pool->units[i].node]++;
	for (size_t i = 0; i < ARRAY_LEN(room); i++)
		most = MAX(most, room[i]);
	cpuset_foreach(cpu, &cpus)
	{
		const struct topo_cpu *info = topology_find(topology, cpu);
		ck_assert(info->allowed);
		first_node = first_node < 0 ? info->node : first_node;
		if (last->placement.width <= most)
			ck_assert_msg(info->node == first_node, "width %d of %d: units %d+%d",
				      last->placement.width, most, last->placement.first,
				      last->placement.count);
	}
}

static void nothing_queued_fits(const struct schedule *schedule, const struct schedule_taker *taker,
				struct job *jobs, size_t count, const struct corepool *pool)
{
	size_t limit = SCHEDULE_OVERTAKE * (size_t)corepool_max_width(pool);
	if (schedule->queued == 0)
		return;
	/* Everything waits for one that was overtaken too often. */
	if (taker->first && taker->overtaken >= limit) {
		ck_assert(!corepool_fits(pool, taker->first->width));
		return;
	}
	for (size_t i = 0; i < count; i++)
		if (heap_node_queued(&jobs[i].item.node))
			ck_assert(!corepool_fits(pool, jobs[i].item.width));
}

static void play(const struct topology *topology, unsigned seed)
{
	enum { JOBS = 120 };
	static struct job jobs[JOBS];
	struct active active[256];
	size_t active_count = 0, done = 0;
	struct schedule schedule = SCHEDULE_INIT;
	struct corepool pool;
	uint64_t now = 0;
	srand(seed);
	ck_assert_int_eq(corepool_init(&pool, topology, &(struct corepool_opts){ 0 }, NULL), 0);
	struct schedule_taker taker = schedule_pool_taker(&pool);
	memset(jobs, 0, sizeof(jobs));
	for (uint32_t i = 0; i < JOBS; i++) {
		jobs[i].item =
			(struct schedule_item){ .index = i,
						.width = 1 + rand() % corepool_max_width(&pool) };
		jobs[i].ns = 1 + (uint64_t)(rand() % 1000);
		schedule_add(&schedule, &jobs[i].item,
			     schedule_key(&jobs[i].item, (enum schedule_order)(seed % 3),
					  jobs[i].ns, seed));
	}
	while (done < JOBS) {
		struct placement placement;
		for (struct schedule_item *item;
		     (item = schedule_place(&schedule, &taker, &pool, &placement));) {
			struct job *job = container_of(item, struct job, item);
			active[active_count++] = (struct active){ job, placement, now + job->ns };
			check_placement(topology, &pool, active, active_count);
		}
		nothing_queued_fits(&schedule, &taker, jobs, JOBS, &pool);
		ck_assert_uint_gt(active_count, 0);
		size_t first = 0;
		for (size_t i = 1; i < active_count; i++)
			if (active[i].end_ns < active[first].end_ns)
				first = i;
		now = active[first].end_ns;
		ck_assert(!active[first].job->done);
		active[first].job->done = true;
		done++;
		corepool_give(&pool, &active[first].placement);
		active[first] = active[--active_count];
	}
	ck_assert_int_eq(pool.used, 0);
	corepool_done(&pool);
	schedule_done(&schedule);
}

TEST(every_order_runs_alone_on_its_cores_whatever_the_machine)
{
	static const struct {
		const char *description, *allowed;
	} machines[] = {
		{ "core:2 pu:1", NULL },
		{ "core:1 pu:1", NULL },
		{ "package:2 core:4 " LINUX_SMT, NULL },
		{ "package:2 core:4 " LINUX_SMT, "0-5,9-12" },
		{ "package:2 [numa] l3:4 core:4 pu:1", NULL },
		{ "package:2 [numa] l3:4 core:4 pu:1", "1,3-9,17-22,30" },
		{ "package:1 l3:8 core:8 pu:2", NULL },
		{ "package:2 l3:2 core:3 pu:1", "0-10" },
	};
	for (size_t i = 0; i < ARRAY_LEN(machines); i++) {
		AUTO(topology_done)
		struct topology topology = machine(machines[i].description, machines[i].allowed);
		for (unsigned seed = 0; seed < 12; seed++)
			play(&topology, seed);
	}
}
