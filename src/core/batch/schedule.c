#include "core/batch/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"

struct schedule_lane {
	uint32_t kind;
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

static struct schedule_lane *lane_for(struct schedule *schedule, const struct schedule_item *item)
{
	for (size_t i = 0; i < schedule->count; i++) {
		struct schedule_lane *lane = &schedule->lanes[i];
		if (lane->kind == item->kind && lane->width == item->width)
			return lane;
	}
	ARRAY_RESERVE(schedule->lanes, schedule->count, schedule->cap);
	struct schedule_lane *lane = &schedule->lanes[schedule->count++];
	*lane = (struct schedule_lane){ item->kind, item->width, HEAP_INIT };
	return lane;
}

void schedule_add(struct schedule *schedule, struct schedule_item *item, uint64_t key)
{
	heap_push(&lane_for(schedule, item)->heap, &item->node, key);
	schedule->queued++;
}

void schedule_remove(struct schedule *schedule, struct schedule_item *item)
{
	heap_remove(&lane_for(schedule, item)->heap, &item->node);
	schedule->queued--;
}

static bool earlier(const struct schedule_item *a, const struct schedule_item *b)
{
	return a->node.key != b->node.key ? a->node.key < b->node.key : a->index < b->index;
}

/* Of those that can run there: the first in line, and the first that fits now. */
static struct schedule_item *choose(const struct schedule *schedule,
				    const struct schedule_taker *taker,
				    struct schedule_item **ret_first)
{
	struct schedule_item *best = NULL, *first = NULL;
	for (size_t i = 0; i < schedule->count; i++) {
		struct schedule_item *head = item_of(heap_top(&schedule->lanes[i].heap));
		bool may_be_best = head && (!best || earlier(head, best));
		bool may_be_first = head && (!first || earlier(head, first));
		if (!may_be_best && !may_be_first)
			continue;
		enum schedule_fit fit = taker->fit(taker->arg, head);
		if (fit != SCHEDULE_NEVER && may_be_first)
			first = head;
		if (fit == SCHEDULE_NOW && may_be_best)
			best = head;
	}
	*ret_first = first;
	return best;
}

/* Whether `chosen` may start now: it is the first in line, or that one has not waited for too many
 * yet. */
static bool may_pass(struct schedule_taker *taker, const struct schedule_item *first,
		     const struct schedule_item *chosen)
{
	if (first != taker->first)
		taker->overtaken = 0;
	taker->first = first == chosen ? NULL : first;
	if (first == chosen)
		return true;
	if (taker->overtaken >= SCHEDULE_OVERTAKE * (size_t)taker->cores)
		return false;
	taker->overtaken++;
	return true;
}

struct schedule_item *schedule_next(struct schedule *schedule, struct schedule_taker *taker)
{
	struct schedule_item *first, *best = choose(schedule, taker, &first);
	if (!best || !may_pass(taker, first, best))
		return NULL;
	schedule_remove(schedule, best);
	return best;
}

static enum schedule_fit fits_pool(void *arg, const struct schedule_item *item)
{
	return corepool_fits(arg, item->width) ? SCHEDULE_NOW : SCHEDULE_LATER;
}

struct schedule_taker schedule_pool_taker(struct corepool *pool)
{
	return (struct schedule_taker){ .fit = fits_pool,
					.arg = pool,
					.cores = corepool_max_width(pool) };
}

struct schedule_item *schedule_place(struct schedule *schedule, struct schedule_taker *taker,
				     struct corepool *pool, struct placement *ret_placement)
{
	struct schedule_item *item = schedule_next(schedule, taker);
	if (item) {
		bool taken = corepool_take(pool, item->width, ret_placement);
		assert(taken);
		(void)taken;
	}
	return item;
}

static bool any(void *arg UNUSED, const struct schedule_item *item UNUSED)
{
	return true;
}

struct schedule_item *schedule_find(const struct schedule *schedule, schedule_test_fn *what,
				    void *arg)
{
	struct schedule_item *first = NULL;
	for (size_t i = 0; i < schedule->count; i++) {
		struct schedule_item *head = item_of(heap_top(&schedule->lanes[i].heap));
		if (head && (!first || earlier(head, first)) && what(arg, head))
			first = head;
	}
	return first;
}

struct schedule_item *schedule_first(const struct schedule *schedule)
{
	return schedule_find(schedule, any, NULL);
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

/* Of those that fit, the first in line; -1: none. */
static int replay_choose(const struct replay *replay)
{
	int best = -1;
	for (size_t i = 0; i < replay->lane_count; i++) {
		struct schedule_item *head = replay->heads[i];
		if (head && (best < 0 || earlier(head, replay->heads[best])) &&
		    corepool_fits(&replay->pool, head->width))
			best = (int)i;
	}
	return best;
}

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
	int best = replay_choose(replay);
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
