#include "core/batch/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"

struct schedule_lane {
	int width;
	struct heap heap;
};

static struct schedule_item *item_of(struct heap_node *node)
{
	return node ? container_of(node, struct schedule_item, node) : NULL;
}

void schedule_done(struct schedule *schedule)
{
	for (size_t i = 0; i < schedule->count; i++)
		heap_done(&schedule->lanes[i].heap);
	free(schedule->lanes);
	*schedule = SCHEDULE_INIT;
}

uint64_t schedule_key(const struct schedule_item *item, enum schedule_order order,
		      uint64_t estimate_ns, uint64_t seed)
{
	const uint64_t hash_key[2] = { seed, 0 };
	uint64_t work;
	switch (order) {
	case SCHEDULE_LISTED:
		return item->index;
	case SCHEDULE_RANDOM:
		return map_hash(hash_key, &item->index, sizeof(item->index));
	case SCHEDULE_LONGEST:
		break;
	}
	if (__builtin_mul_overflow(MAX(estimate_ns, (uint64_t)1), (uint64_t)item->width, &work))
		work = UINT64_MAX;
	return UINT64_MAX - work;
}

static struct schedule_lane *lane_for(struct schedule *schedule, int width)
{
	for (size_t i = 0; i < schedule->count; i++)
		if (schedule->lanes[i].width == width)
			return &schedule->lanes[i];
	ARRAY_RESERVE(schedule->lanes, schedule->count, schedule->cap);
	struct schedule_lane *lane = &schedule->lanes[schedule->count++];
	*lane = (struct schedule_lane){ .width = width, .heap = HEAP_INIT };
	return lane;
}

void schedule_add(struct schedule *schedule, struct schedule_item *item, uint64_t key)
{
	heap_push(&lane_for(schedule, item->width)->heap, &item->node, key);
	schedule->queued++;
}

void schedule_remove(struct schedule *schedule, struct schedule_item *item)
{
	heap_remove(&lane_for(schedule, item->width)->heap, &item->node);
	schedule->queued--;
	if (schedule->first == item)
		schedule->first = NULL;
}

static void take_out(struct schedule *schedule, struct schedule_item *item)
{
	if (!heap_node_queued(&item->node))
		return;
	heap_remove(&lane_for(schedule, item->width)->heap, &item->node);
	schedule->queued--;
}

static bool earlier(const struct schedule_item *a, const struct schedule_item *b)
{
	return a->node.key != b->node.key ? a->node.key < b->node.key : a->index < b->index;
}

/* The one to start among the first of each lane; heads may be NULL. */
static int choose(struct schedule_item *const *heads, size_t count, const struct corepool *pool)
{
	int best = -1;
	for (size_t i = 0; i < count; i++) {
		if (!heads[i] || (best >= 0 && !earlier(heads[i], heads[best])))
			continue;
		if (corepool_fits(pool, heads[i]->width))
			best = (int)i;
	}
	return best;
}

/* Whether `chosen` may start now: it is the first in line, or that one has not waited for too many
 * yet. */
static bool may_pass(struct schedule *schedule, struct schedule_item *const *heads,
		     const struct schedule_item *chosen, const struct corepool *pool)
{
	const struct schedule_item *first = chosen;
	for (size_t i = 0; i < schedule->count; i++)
		if (heads[i] && earlier(heads[i], first))
			first = heads[i];
	if (first != schedule->first)
		schedule->overtaken = 0;
	schedule->first = first == chosen ? NULL : first;
	if (first == chosen)
		return true;
	if (schedule->overtaken >= SCHEDULE_OVERTAKE * (size_t)corepool_max_width(pool))
		return false;
	schedule->overtaken++;
	return true;
}

struct schedule_item *schedule_next(struct schedule *schedule, struct corepool *pool,
				    struct placement *ret_placement)
{
	struct schedule_item *heads[64];
	AUTO_FREE struct schedule_item **many = NULL;
	struct schedule_item **all = heads;
	if (schedule->count > ARRAY_LEN(heads))
		all = many = NEW_ARRAY(struct schedule_item *, schedule->count);
	for (size_t i = 0; i < schedule->count; i++)
		all[i] = item_of(heap_top(&schedule->lanes[i].heap));
	int best = choose(all, schedule->count, pool);
	if (best < 0 || !may_pass(schedule, all, all[best], pool))
		return NULL;
	struct schedule_item *item = all[best];
	bool taken = corepool_take(pool, item->width, ret_placement);
	assert(taken);
	(void)taken;
	take_out(schedule, item);
	return item;
}

struct schedule_item *schedule_first(const struct schedule *schedule)
{
	struct schedule_item *first = NULL;
	for (size_t i = 0; i < schedule->count; i++) {
		struct schedule_item *head = item_of(heap_top(&schedule->lanes[i].heap));
		if (head && (!first || earlier(head, first)))
			first = head;
	}
	return first;
}

/* ---- the rest of the schedule, played ---- */

struct replay_lane {
	struct schedule_item **items;
	size_t count, pos;
};

struct replay {
	struct corepool pool;
	struct replay_lane *lanes;
	struct schedule_item **heads;
	size_t lane_count;
	struct schedule_running *running; /* here left_ns is a time of the replay */
	size_t running_count, running_cap;
	uint64_t now_ns;
};

static int compare_items(const void *a, const void *b)
{
	const struct schedule_item *x = *(struct schedule_item *const *)a,
				   *y = *(struct schedule_item *const *)b;
	return earlier(x, y) ? -1 : earlier(y, x) ? 1 : 0;
}

static void replay_init(struct replay *replay, const struct schedule *schedule,
			const struct corepool *pool, const struct schedule_running *running,
			size_t count)
{
	*replay = (struct replay){ .lane_count = schedule->count };
	corepool_copy(pool, &replay->pool);
	replay->lanes = mem_alloc((schedule->count + 1) * sizeof(*replay->lanes));
	replay->heads = mem_alloc((schedule->count + 1) * sizeof(*replay->heads));
	for (size_t i = 0; i < schedule->count; i++) {
		const struct heap *heap = &schedule->lanes[i].heap;
		struct replay_lane *lane = &replay->lanes[i];
		lane->count = heap->count;
		lane->items = NEW_ARRAY(struct schedule_item *, heap->count + 1);
		for (size_t n = 0; n < heap->count; n++)
			lane->items[n] = item_of(heap->nodes[n]);
		qsort(lane->items, lane->count, sizeof(*lane->items), compare_items);
		replay->heads[i] = lane->count ? lane->items[0] : NULL;
	}
	for (size_t i = 0; i < count; i++) {
		ARRAY_RESERVE(replay->running, replay->running_count, replay->running_cap);
		replay->running[replay->running_count++] = running[i];
	}
}

static void replay_done(struct replay *replay)
{
	for (size_t i = 0; i < replay->lane_count; i++)
		free(replay->lanes[i].items);
	free(replay->lanes);
	free(replay->heads);
	free(replay->running);
	corepool_done(&replay->pool);
}

/* Starts the next item, if one fits. */
static bool replay_start(struct replay *replay, schedule_estimate_fn *estimate, void *arg)
{
	int best = choose(replay->heads, replay->lane_count, &replay->pool);
	if (best < 0)
		return false;
	struct replay_lane *lane = &replay->lanes[best];
	struct schedule_item *item = lane->items[lane->pos++];
	replay->heads[best] = lane->pos < lane->count ? lane->items[lane->pos] : NULL;
	ARRAY_RESERVE(replay->running, replay->running_count, replay->running_cap);
	struct schedule_running *started = &replay->running[replay->running_count++];
	corepool_take(&replay->pool, item->width, &started->placement);
	started->left_ns = ns_add(replay->now_ns, estimate(arg, item));
	return true;
}

/* Ends the one that ends first. */
static void replay_finish(struct replay *replay)
{
	size_t first = 0;
	for (size_t i = 1; i < replay->running_count; i++)
		if (replay->running[i].left_ns < replay->running[first].left_ns)
			first = i;
	replay->now_ns = replay->running[first].left_ns;
	corepool_give(&replay->pool, &replay->running[first].placement);
	replay->running[first] = replay->running[--replay->running_count];
}

static uint64_t replay_eta(const struct schedule *schedule, const struct corepool *pool,
			   const struct schedule_running *running, size_t running_count, int jobs,
			   schedule_estimate_fn *estimate, void *arg)
{
	AUTO(replay_done) struct replay replay;
	replay_init(&replay, schedule, pool, running, running_count);
	for (;;) {
		while (replay.running_count < (size_t)jobs && replay_start(&replay, estimate, arg))
			;
		if (replay.running_count == 0)
			return replay.now_ns;
		replay_finish(&replay);
	}
}

static uint64_t area_eta(const struct schedule *schedule, const struct corepool *pool,
			 const struct schedule_running *running, size_t running_count, int jobs,
			 schedule_estimate_fn *estimate, void *arg)
{
	double area = 0, items = 0;
	for (size_t i = 0; i < running_count; i++)
		area += (double)running[i].left_ns * running[i].placement.width;
	for (size_t i = 0; i < schedule->count; i++) {
		const struct heap *heap = &schedule->lanes[i].heap;
		for (size_t n = 0; n < heap->count; n++) {
			double ns = (double)estimate(arg, item_of(heap->nodes[n]));
			area += ns * schedule->lanes[i].width;
			items += ns;
		}
	}
	return (uint64_t)MAX(area / MAX(corepool_max_width(pool), 1), items / MAX(jobs, 1));
}

uint64_t schedule_eta(const struct schedule *schedule, const struct corepool *pool,
		      const struct schedule_running *running, size_t running_count, int jobs,
		      schedule_estimate_fn *estimate, void *arg)
{
	if (schedule->queued > SCHEDULE_REPLAY_MAX)
		return area_eta(schedule, pool, running, running_count, jobs, estimate, arg);
	return replay_eta(schedule, pool, running, running_count, jobs, estimate, arg);
}
