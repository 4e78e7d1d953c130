#include "core/batch/repeat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/batch/stats.h"
#include "core/batch/stats_interval.h"

void repeat_rules_init(struct repeat_rules *rules)
{
	*rules = (struct repeat_rules){ .runs = 1,
					.min_runs = REPEAT_MIN_RUNS,
					.confidence = REPEAT_CONFIDENCE,
					.min_total_ns = REPEAT_MIN_TOTAL_NS };
}

void repeat_init(struct repeat *repeat, const struct repeat_rules *rules)
{
	*repeat = (struct repeat){ .rules = rules };
}

void repeat_done(struct repeat *repeat)
{
	for (size_t i = 0; i < REPEAT_SIDES_MAX; i++)
		free(repeat->walls[i]);
	*repeat = (struct repeat){ 0 };
}

static uint32_t sides(const struct repeat *repeat)
{
	return repeat->rules->variants ? repeat->rules->variants : 1;
}

/* ---- which variant next ---- */

static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static uint64_t chance(const struct repeat_rules *rules, int32_t block, uint32_t step)
{
	return mix(rules->seed + (uint64_t)block * 0x9e3779b97f4a7c15 + step * 0xd1342543de82ef95);
}

/* Every order of the sides is as likely as any other. */
static void shuffle(const struct repeat_rules *rules, int32_t block, int order[REPEAT_SIDES_MAX])
{
	for (uint32_t i = rules->variants - 1; i > 0; i--) {
		uint32_t other =
			(uint32_t)(chance(rules, block, rules->variants - 1 - i) % (i + 1));
		int kept = order[i];
		order[i] = order[other];
		order[other] = kept;
	}
}

/* The side at a place of a block. There and back, so that a steady drift cancels; where there are
 * more than two, the first one changes after every two blocks. */
static int side_at(const struct repeat_rules *rules, int32_t block, uint32_t place)
{
	uint32_t n = rules->variants;
	if (rules->interleave == REPEAT_RANDOM) {
		int order[REPEAT_SIDES_MAX];
		for (uint32_t i = 0; i < n; i++)
			order[i] = (int)i;
		shuffle(rules, block, order);
		return order[place];
	}
	uint32_t turn = n > 2 ? (uint32_t)block / 2 : 0;
	return (int)(((block % 2 ? n - 1 - place : place) + turn) % n);
}

/* 0 is A or the only side, 1 is B, … */
static int side_now(const struct repeat *repeat)
{
	if (!repeat->rules->variants)
		return 0;
	if (repeat->warmed < repeat->rules->warmup * sides(repeat))
		return (int)(repeat->warmed % sides(repeat));
	return side_at(repeat->rules, repeat->block, repeat->place);
}

/* ---- how many ---- */

static double interval_reach(const double *sorted, uint32_t n, double confidence)
{
	double low, high;
	if (n == 0 || !stats_median_interval(sorted, n, confidence, &low, &high))
		return INFINITY;
	return (high - low) / 2 / stats_median(sorted, n);
}

double repeat_reach(const struct repeat *repeat)
{
	double reach = 0;
	for (uint32_t side = 0; side < sides(repeat); side++) {
		uint32_t n = repeat->wall_count[side];
		AUTO_FREE double *sorted = NEW_ARRAY(double, n + 1);
		if (n)
			memcpy(sorted, repeat->walls[side], n * sizeof(double));
		stats_sort(sorted, n);
		reach = MAX(reach, interval_reach(sorted, n, repeat->rules->confidence));
	}
	return reach;
}

static bool enough(const struct repeat *repeat)
{
	const struct repeat_rules *rules = repeat->rules;
	uint32_t least = repeat->taken[0];
	for (uint32_t side = 1; side < sides(repeat); side++)
		least = MIN(least, repeat->taken[side]);
	if (rules->runs)
		return least >= rules->runs;
	if (rules->variants && repeat->place != 0)
		return false; /* a block is finished, or there are no pairs */
	if (least >= (rules->max_runs ? rules->max_runs : REPEAT_MAX_RUNS))
		return true;
	if (least < rules->min_runs)
		return false;
	if (rules->precision > 0)
		return repeat_reach(repeat) <= rules->precision;
	return repeat->total_ns >= rules->min_total_ns;
}

bool repeat_next(const struct repeat *repeat, struct repeat_step *ret_step)
{
	const struct repeat_rules *rules = repeat->rules;
	bool warmup = repeat->warmed < rules->warmup * sides(repeat);
	if (!warmup && enough(repeat))
		return false;
	int side = side_now(repeat);
	*ret_step = (struct repeat_step){
		.run = warmup ? repeat->warmed / sides(repeat) : repeat->taken[side],
		.block = rules->variants && !warmup ? repeat->block : -1,
		.variant = rules->variants ? (char)('A' + side) : 0,
		.warmup = warmup,
	};
	return true;
}

static void keep(struct repeat *repeat, int side, double wall_ns)
{
	if (repeat->wall_count[side] == repeat->wall_cap[side]) {
		repeat->wall_cap[side] = MAX(2 * repeat->wall_cap[side], 16u);
		repeat->walls[side] =
			mem_grow(repeat->walls[side], repeat->wall_cap[side], sizeof(double));
	}
	repeat->walls[side][repeat->wall_count[side]++] = wall_ns;
}

void repeat_record(struct repeat *repeat, uint64_t wall_ns, bool good)
{
	if (repeat->warmed < repeat->rules->warmup * sides(repeat)) {
		repeat->warmed++;
		return;
	}
	int side = side_now(repeat);
	repeat->taken[side]++;
	repeat->total_ns += wall_ns;
	if (good && repeat->rules->precision > 0)
		keep(repeat, side, (double)wall_ns);
	if (repeat->rules->variants && ++repeat->place == sides(repeat)) {
		repeat->place = 0;
		repeat->block++;
	}
}

uint32_t repeat_left(const struct repeat *repeat)
{
	const struct repeat_rules *rules = repeat->rules;
	uint32_t target = (rules->runs ? rules->runs : rules->min_runs) * sides(repeat);
	uint32_t taken = 0;
	for (uint32_t side = 0; side < sides(repeat); side++)
		taken += repeat->taken[side];
	uint32_t warm = rules->warmup * sides(repeat) - repeat->warmed;
	return warm + (target > taken ? target - taken : 0);
}
