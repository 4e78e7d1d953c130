#include "batch/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/procfs.h"
#include "sys/hwloc_topology.h"

#define RESERVE_FROM 5	/* with this many units, one is kept for the runner */
#define BUSY_LOOK_MS 30 /* how long to observe the load of the CPUs */
#define BUSY_PERCENT 25 /* from which a CPU counts as busy */

void plan_done(struct batch_plan *plan)
{
	topology_done(&plan->topology);
	corepool_done(&plan->pool);
}

/* CPUs that other programs use. We sleep meanwhile, so it is not our own load. */
static struct cpuset find_busy(const struct topology *topology)
{
	struct cpuset busy = CPUSET_INIT;
	AUTO_FREE uint64_t *before = NEW_ARRAY(uint64_t, CPUSET_MAX),
			   *after = NEW_ARRAY(uint64_t, CPUSET_MAX);
	uint64_t start_ns = clock_now_ns();
	if (!procfs_cpu_times(before, CPUSET_MAX))
		return busy;
	struct timespec look = { .tv_nsec = (long)(BUSY_LOOK_MS * NS_PER_MS) };
	nanosleep(&look, NULL);
	if (!procfs_cpu_times(after, CPUSET_MAX))
		return busy;
	uint64_t limit = (clock_now_ns() - start_ns) * BUSY_PERCENT / 100;
	for (size_t i = 0; i < topology->count; i++) {
		int id = topology->cpus[i].id;
		if (after[id] - before[id] > limit)
			cpuset_add(&busy, id);
	}
	return busy;
}

static int read_topology(struct batch_plan *plan, const struct batch_config *config,
			 struct err *err)
{
	const char *flat;
	int r = topology_read(&plan->topology, &flat, err);
	if (r < 0)
		return r;
	if (flat)
		plan->why_unpinned = flat;
	if (config->allowed_given) {
		struct cpuset allowed = topology_allowed(&plan->topology), wanted = config->allowed;
		cpuset_subtract(&wanted, &allowed);
		if (!cpuset_empty(&wanted)) {
			AUTO(buf_done) struct buf list = BUF_INIT;
			cpuset_format(&wanted, &list);
			return err_set(err, EINVAL, "CPUs %s are not allowed", buf_str(&list));
		}
		topology_allow(&plan->topology, &config->allowed);
	}
	return 0;
}

/* How many units the orders can use at a time: the pool need not be larger. */
static int units_wanted(const struct batch_config *config, int max_width, int max_jobs)
{
	int64_t jobs = config->jobs ? config->jobs : max_jobs;
	int64_t wanted = MIN(jobs, (int64_t)max_jobs) * max_width;
	return (int)MIN(wanted, (int64_t)INT32_MAX);
}

static int make_pinned(struct batch_plan *plan, const struct batch_config *config, int max_width,
		       int max_jobs, struct err *err)
{
	struct corepool_opts opts = { .smt = (enum corepool_smt)config->smt,
				      .place = (enum corepool_place)config->place };
	int units = topology_allowed_cores(&plan->topology);
	/* Observing takes a moment: only where there is a choice. */
	if (units_wanted(config, max_width, max_jobs) < units)
		opts.busy = find_busy(&plan->topology);
	opts.reserve = (int)config->reserve;
	if (config->reserve < 0)
		opts.reserve =
			units >= RESERVE_FROM || units_wanted(config, max_width, max_jobs) < units;
	int r = corepool_init(&plan->pool, &plan->topology, &opts, err);
	if (r < 0 || config->reserve >= 0 || corepool_max_width(&plan->pool) >= max_width)
		return r;
	/* The widest order needs the core that was kept for the runner. */
	corepool_done(&plan->pool);
	opts.reserve = 0;
	return corepool_init(&plan->pool, &plan->topology, &opts, err);
}

static int jobs_for(const struct batch_plan *plan, const struct batch_config *config)
{
	int cores = corepool_max_width(&plan->pool);
	if (config->jobs_percent > 0)
		return MAX((int)(cores * config->jobs_percent / 100), 1);
	return config->jobs ? (int)config->jobs : cores;
}

int plan_make(struct batch_plan *plan, const struct batch_config *config, int max_width,
	      int max_jobs, struct err *err)
{
	*plan = (struct batch_plan){ .topology = TOPOLOGY_INIT,
				     .pinned = config->place != BATCH_PLACE_NONE };
	int r = read_topology(plan, config, err);
	if (r < 0)
		return r;
	r = make_pinned(plan, config, max_width, max_jobs, err);
	if (r < 0)
		return r;
	int cores = corepool_max_width(&plan->pool);
	plan->jobs = MIN(jobs_for(plan, config), max_jobs);
	if (plan->pinned && plan->jobs > cores) {
		plan->pinned = false;
		plan->why_unpinned = "more jobs than cores";
	}
	if (!plan->pinned) {
		struct cpuset reserved = plan->pool.reserved;
		corepool_done(&plan->pool);
		corepool_init_anonymous(&plan->pool, MAX(plan->jobs, cores));
		plan->pool.reserved = reserved;
	}
	if (max_width > corepool_max_width(&plan->pool))
		return err_set(
			err, EINVAL, "an order wants %d cores; the most that works here is %d%s",
			max_width, corepool_max_width(&plan->pool),
			config->smt == COREPOOL_SMT_AVOID && plan->topology.count > (size_t)cores
				? " (one CPU a core; see --smt)"
				: "");
	return 0;
}

/* ---- for people ---- */

static void print_set(FILE *out, const char *label, const struct cpuset *set)
{
	AUTO(buf_done) struct buf list = BUF_INIT;
	cpuset_format(set, &list);
	fprintf(out, "%s%s\n", label, buf_len(&list) ? buf_str(&list) : "none");
}

static void print_shared(const struct batch_plan *plan, FILE *out)
{
	struct cpuset used = CPUSET_INIT, others;
	int nodes = 0, caches = 0, last_node = -1, last_cache = -1;
	for (int i = 0; i < plan->pool.count; i++) {
		const struct corepool_unit *unit = &plan->pool.units[i];
		for (int c = 0; c < unit->cpu_count; c++)
			cpuset_add(&used, unit->cpus[c]);
		nodes += unit->node != last_node;
		caches += unit->l3 != last_cache || unit->node != last_node;
		last_node = unit->node;
		last_cache = unit->l3;
	}
	print_set(out, "CPUs of the pool: ", &used);
	print_set(out, "kept for the runner: ", &plan->pool.reserved);
	others = used;
	topology_add_twins(&plan->topology, &others);
	cpuset_subtract(&others, &used);
	print_set(out, "twins left idle: ", &others);
	fprintf(out, "shared by orders: %d last-level cache%s, %d memory node%s\n", caches,
		caches == 1 ? "" : "s", nodes, nodes == 1 ? "" : "s");
}

void plan_print(const struct batch_plan *plan, const struct batch_order *orders, size_t count,
		FILE *out)
{
	fprintf(out, "%zu order%s, at most %d at a time\n", count, count == 1 ? "" : "s",
		plan->jobs);
	if (plan->why_unpinned)
		fprintf(out, "%s: %s\n", plan->pinned ? "topology unknown" : "not pinned",
			plan->why_unpinned);
	if (plan->pinned)
		print_shared(plan, out);
	int last = 0;
	for (size_t i = 0; i < count; i++)
		last = MAX(last, orders[i].item.width);
	for (int width = 1; width <= last; width++) {
		size_t n = 0;
		for (size_t i = 0; i < count; i++)
			n += orders[i].item.width == width;
		if (n == 0)
			continue;
		struct corepool pool;
		struct placement placement;
		corepool_copy(&plan->pool, &pool);
		fprintf(out, "%zu of width %d, on CPUs:", n, width);
		for (int i = 0; i < plan->jobs && corepool_take(&pool, width, &placement); i++) {
			AUTO(buf_done) struct buf list = BUF_INIT;
			struct cpuset cpus = corepool_cpus(&pool, &placement);
			cpuset_format(&cpus, &list);
			fprintf(out, " %s", buf_len(&list) ? buf_str(&list) : "any");
		}
		fputc('\n', out);
		corepool_done(&pool);
	}
}
