#include "core/host/corepool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* ---- the units ---- */

static void add_unit(struct corepool *pool, const struct topo_cpu *cpu)
{
	pool->units[pool->count++] = (struct corepool_unit){
		.cpus = { cpu->id },
		.cpu_count = 1,
		.core = cpu->core,
		.l3 = cpu->l3,
		.node = cpu->node,
	};
}

/* One unit per core, with its first CPU or with all of them. */
static void add_cores(struct corepool *pool, const struct topology *topology, bool all_threads)
{
	for (size_t i = 0; i < topology->count; i++) {
		const struct topo_cpu *cpu = &topology->cpus[i];
		struct corepool_unit *last = pool->count ? &pool->units[pool->count - 1] : NULL;
		if (!cpu->allowed)
			continue;
		if (!last || last->core != cpu->core)
			add_unit(pool, cpu);
		else if (all_threads && last->cpu_count < COREPOOL_THREADS_MAX)
			last->cpus[last->cpu_count++] = cpu->id;
	}
}

static bool same_group(const struct topo_cpu *a, const struct topo_cpu *b)
{
	return a->l3 == b->l3 && a->node == b->node;
}

/* One unit per CPU. In each L3 group the first threads of all cores come before the second ones, so
 * that orders share cores only when all cores are taken. */
static void add_cpus(struct corepool *pool, const struct topology *topology)
{
	for (size_t first = 0, end; first < topology->count; first = end) {
		for (end = first; end < topology->count &&
				  same_group(&topology->cpus[first], &topology->cpus[end]);)
			end++;
		int threads = 0;
		for (size_t i = first; i < end; i++)
			threads = MAX(threads, topology->cpus[i].thread + 1);
		for (int thread = 0; thread < threads; thread++)
			for (size_t i = first; i < end; i++)
				if (topology->cpus[i].allowed && topology->cpus[i].thread == thread)
					add_unit(pool, &topology->cpus[i]);
	}
}

/* Gives all units the same number of CPUs: where the cpuset cuts a core in two, only a part is
 * used. */
static void even_out(struct corepool *pool)
{
	pool->threads = COREPOOL_THREADS_MAX;
	for (int i = 0; i < pool->count; i++)
		pool->threads = MIN(pool->threads, pool->units[i].cpu_count);
	for (int i = 0; i < pool->count; i++)
		pool->units[i].cpu_count = pool->threads;
}

static void drop_unit(struct corepool *pool, int index)
{
	memmove(&pool->units[index], &pool->units[index + 1],
		(size_t)(pool->count - index - 1) * sizeof(*pool->units));
	pool->count--;
}

/* The unit to give up first: a busy one, else the last. */
static int least_wanted(const struct corepool *pool)
{
	for (int i = pool->count - 1; i >= 0; i--)
		if (pool->units[i].busy)
			return i;
	return pool->count - 1;
}

static void limit_units(struct corepool *pool, uint64_t quota_milli)
{
	if (quota_milli == 0)
		return;
	uint64_t limit = MAX(quota_milli / 1000 / (uint64_t)pool->threads, (uint64_t)1);
	while ((uint64_t)pool->count > limit)
		drop_unit(pool, least_wanted(pool));
}

static void reserve_units(struct corepool *pool, int reserve)
{
	for (; reserve > 0 && pool->count > 1; reserve--) {
		int index = least_wanted(pool);
		for (int i = 0; i < pool->units[index].cpu_count; i++)
			cpuset_add(&pool->reserved, pool->units[index].cpus[i]);
		drop_unit(pool, index);
	}
}

/* CPUs that other programs keep busy are avoided, not forbidden. */
static void mark_busy(struct corepool *pool, const struct cpuset *busy)
{
	for (int i = 0; i < pool->count; i++) {
		struct corepool_unit *unit = &pool->units[i];
		unit->busy = false;
		for (int c = 0; c < unit->cpu_count; c++)
			unit->busy = unit->busy || cpuset_has(busy, unit->cpus[c]);
	}
}

int corepool_init(struct corepool *pool, const struct topology *topology,
		  const struct corepool_opts *opts, struct err *err)
{
	*pool = COREPOOL_INIT;
	pool->place = opts->place;
	pool->units = NEW_ARRAY(struct corepool_unit, topology->count ? topology->count : 1);
	if (opts->smt == COREPOOL_SMT_SHARE)
		add_cpus(pool, topology);
	else
		add_cores(pool, topology, opts->smt == COREPOOL_SMT_USE);
	if (pool->count == 0) {
		corepool_done(pool);
		return err_set(err, ENODEV, "this process may not use any CPU");
	}
	even_out(pool);
	mark_busy(pool, &opts->busy);
	limit_units(pool, topology->quota_milli);
	reserve_units(pool, opts->reserve);
	return 0;
}

void corepool_init_anonymous(struct corepool *pool, int count)
{
	*pool = COREPOOL_INIT;
	pool->units = mem_alloc((size_t)count * sizeof(*pool->units));
	pool->count = count;
	pool->threads = 1;
	for (int i = 0; i < count; i++)
		pool->units[i].core = i;
}

void corepool_copy(const struct corepool *from, struct corepool *ret_to)
{
	struct corepool copy = *from;
	copy.units = NEW_ARRAY(struct corepool_unit, (size_t)from->count);
	memcpy(copy.units, from->units, (size_t)from->count * sizeof(*from->units));
	*ret_to = copy;
}

void corepool_done(struct corepool *pool)
{
	free(pool->units);
	*pool = COREPOOL_INIT;
}

/* ---- the ranges ---- */

/* Domains, from small to large. A group never spans nodes, even where a cache does. */
enum level {
	LEVEL_GROUP,
	LEVEL_NODE,
	LEVEL_ALL,
	LEVEL_COUNT,
};

/* The end of the domain that the unit at `first` begins. */
static int domain_end(const struct corepool *pool, int first, enum level level)
{
	const struct corepool_unit *units = pool->units;
	if (level == LEVEL_ALL)
		return pool->count;
	int end = first + 1;
	while (end < pool->count && units[end].node == units[first].node &&
	       (level == LEVEL_NODE || units[end].l3 == units[first].l3))
		end++;
	return end;
}

/* The smallest level with a domain for `need` units. */
static enum level level_for(const struct corepool *pool, int need)
{
	for (enum level level = LEVEL_GROUP; level < LEVEL_ALL; level++)
		for (int first = 0, end; first < pool->count; first = end) {
			end = domain_end(pool, first, level);
			if (end - first >= need)
				return level;
		}
	return LEVEL_ALL;
}

/* Where the range after the one at `start` begins: within a group at the next multiple, in anything
 * larger at the next smaller domain. */
static int next_start(const struct corepool *pool, int start, int need, enum level level)
{
	if (level == LEVEL_GROUP)
		return start + need;
	int next = start;
	while (next < pool->count && next < start + need)
		next = domain_end(pool, next, level - 1);
	return next;
}

static bool range_free(const struct corepool *pool, int start, int need, bool also_busy)
{
	for (int i = start; i < start + need; i++)
		if (pool->units[i].used || (pool->units[i].busy && !also_busy))
			return false;
	return true;
}

/* How busy the neighbourhood of a range is: its node counts first, its group breaks ties. */
static int crowd(const struct corepool *pool, int start)
{
	int score = 0;
	for (int i = 0; i < pool->count; i++) {
		const struct corepool_unit *unit = &pool->units[i], *here = &pool->units[start];
		if (unit->used && unit->node == here->node)
			score += unit->l3 == here->l3 ? pool->count + 2 : pool->count + 1;
	}
	return score;
}

static int find_start(const struct corepool *pool, int need, bool also_busy)
{
	enum level level = level_for(pool, need);
	int best = -1, best_score = 0;
	for (int first = 0, end; first < pool->count; first = end) {
		end = domain_end(pool, first, level);
		for (int start = first; start + need <= end;
		     start = next_start(pool, start, need, level)) {
			if (!range_free(pool, start, need, also_busy))
				continue;
			if (pool->place == COREPOOL_COMPACT)
				return start;
			int score = crowd(pool, start);
			if (best < 0 || score < best_score) {
				best = start;
				best_score = score;
			}
		}
	}
	return best;
}

static int units_for(const struct corepool *pool, int width)
{
	return (width + pool->threads - 1) / pool->threads;
}

int corepool_max_width(const struct corepool *pool)
{
	return pool->count * pool->threads;
}

static int find_range(const struct corepool *pool, int width)
{
	int need = units_for(pool, width);
	if (width < 1 || need > pool->count - pool->used)
		return -1;
	int start = find_start(pool, need, false);
	return start >= 0 ? start : find_start(pool, need, true);
}

bool corepool_fits(const struct corepool *pool, int width)
{
	return find_range(pool, width) >= 0;
}

/* In a pool of single CPUs other orders may use the SMT twins: mark both sides. */
static void mark_shared(struct corepool *pool, const struct placement *placement)
{
	for (int i = placement->first; i < placement->first + placement->count; i++)
		for (int j = 0; j < pool->count; j++) {
			bool own = j >= placement->first && j < placement->first + placement->count;
			if (own || !pool->units[j].used ||
			    pool->units[j].core != pool->units[i].core)
				continue;
			pool->units[i].shared = pool->units[j].shared = true;
		}
}

bool corepool_take(struct corepool *pool, int width, struct placement *ret_placement)
{
	int start = find_range(pool, width);
	if (start < 0)
		return false;
	struct placement placement = { .first = start,
				       .count = units_for(pool, width),
				       .width = width };
	for (int i = start; i < start + placement.count; i++) {
		pool->units[i].used = true;
		pool->units[i].shared = false;
	}
	pool->used += placement.count;
	mark_shared(pool, &placement);
	*ret_placement = placement;
	return true;
}

bool corepool_shared(const struct corepool *pool, const struct placement *placement)
{
	for (int i = placement->first; i < placement->first + placement->count; i++)
		if (pool->units[i].shared)
			return true;
	return false;
}

void corepool_give(struct corepool *pool, const struct placement *placement)
{
	for (int i = placement->first; i < placement->first + placement->count; i++) {
		assert(pool->units[i].used);
		pool->units[i].used = false;
	}
	pool->used -= placement->count;
}

struct cpuset corepool_cpus(const struct corepool *pool, const struct placement *placement)
{
	struct cpuset cpus = CPUSET_INIT;
	int left = placement->width;
	for (int i = placement->first; i < placement->first + placement->count; i++)
		for (int c = 0; c < pool->units[i].cpu_count && left > 0; c++, left--)
			cpuset_add(&cpus, pool->units[i].cpus[c]);
	return cpus;
}
