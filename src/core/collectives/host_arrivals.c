#include "core/collectives/host_arrivals.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/pace/clock_offset.h"

void host_arrivals_done(struct host_arrivals *a)
{
	for (size_t i = 0; i < a->count; i++) {
		free(a->groups[i].name);
		free(a->groups[i].views);
	}
	free(a->groups);
	free(a->news);
	wait_groups_done(&a->judges);
	*a = HOST_ARRIVALS_INIT;
}

void host_arrivals_begin(struct host_arrivals *a, uint32_t rank_base, uint32_t workers,
			 uint32_t world_size, uint32_t nodes, int64_t wall_shift_ns)
{
	size_t share = (size_t)ARRIVALS_IN_ALL / MAX(nodes, 1U);
	host_arrivals_done(a);
	a->rank_base = rank_base;
	a->workers = workers;
	a->world_size = world_size;
	a->limit = MAX(MIN(share, (size_t)ARRIVALS_HOST_MAX), (size_t)ARRIVALS_HOST_MIN);
	a->wall_shift_ns = wall_shift_ns;
}

const struct arrival_group *host_arrivals_find(const struct host_arrivals *a, uint64_t key)
{
	for (size_t i = 0; i < a->count; i++)
		if (a->groups[i].key == key)
			return &a->groups[i];
	return NULL;
}

/* ---- groups ---- */

static bool is_here(const struct host_arrivals *a, uint32_t rank)
{
	return rank >= a->rank_base && rank - a->rank_base < a->workers;
}

/* Two groups may have one name on different ranks; their members tell them apart. */
static uint64_t key_of(const struct record_group *group)
{
	static const uint64_t unkeyed[2] = { 0, 0 };
	AUTO(buf_done) struct buf text = BUF_INIT;
	buf_append(&text, group->name, strlen(group->name) + 1);
	for (size_t i = 0; i < group->rank_count; i++)
		buf_append(&text, &(uint32_t){ htole32(group->ranks[i]) }, sizeof(uint32_t));
	uint64_t key = map_hash(unkeyed, buf_data(&text), buf_len(&text));
	return key ? key : 1;
}

/* Members that are not known are all ranks in the default group. */
static void count_members(const struct host_arrivals *a, const struct record_group *group,
			  struct arrival_group *ret)
{
	if (group->rank_count == 0 && str_eq(group->name, RECORD_DEFAULT_GROUP)) {
		ret->size = a->world_size;
		ret->here = a->workers;
	} else {
		ret->size = (uint32_t)group->rank_count;
		for (size_t i = 0; i < group->rank_count; i++)
			ret->here += is_here(a, group->ranks[i]);
	}
}

static struct arrival_group *group_of(struct host_arrivals *a, const struct record_group *group)
{
	struct arrival_group made = { .key = key_of(group) };
	for (size_t i = 0; i < a->count; i++)
		if (a->groups[i].key == made.key)
			return &a->groups[i];
	count_members(a, group, &made);
	if (made.size < 2 || made.here == 0 || a->count == ARRIVALS_GROUPS_MAX)
		return NULL;
	made.name = mem_strdup(*group->desc ? group->desc : group->name);
	made.views = mem_alloc(a->workers * sizeof(struct record_group *));
	ARRAY_RESERVE(a->groups, a->count, a->cap);
	a->groups[a->count] = made;
	return &a->groups[a->count++];
}

static bool spans(const struct arrival_group *group)
{
	return group->here < group->size;
}

bool host_arrivals_tells(const struct host_arrivals *a, const struct arrival_group *group)
{
	size_t before = 0;
	for (size_t i = 0; i < a->count; i++) {
		const struct arrival_group *other = &a->groups[i];
		before += spans(other) && (other->size > group->size ||
					   (other->size == group->size && other->key < group->key));
	}
	return spans(group) && before < ARRIVALS_TOLD;
}

static size_t marks_each(const struct host_arrivals *a)
{
	size_t told = 0;
	for (size_t i = 0; i < a->count; i++)
		told += spans(&a->groups[i]);
	told = MAX(MIN(told, (size_t)ARRIVALS_TOLD), (size_t)1);
	return MIN(a->limit / told, (size_t)ARRIVALS_MARKS);
}

/* ---- collectives ---- */

/* A part of all numbers, spread evenly: of parts of one half, a quarter and so on each has the
 * next. */
static bool is_picked(uint64_t seq, uint64_t every)
{
	return seq * 0x9e3779b97f4a7c15u <= UINT64_MAX / every;
}

/* When the ranks here came, on the clock of this host. False: one of them has not, or its record
 * does not have it any more. */
static bool find_mark(const struct host_arrivals *a, const struct arrival_group *group,
		      uint64_t seq, struct step_mark *ret_mark)
{
	struct step_mark mark = { .step = seq };
	uint64_t first_ns = 0;
	int64_t sum = 0;
	for (uint32_t i = 0; i < a->workers; i++) {
		if (!group->views[i])
			continue;
		const struct record_time *time = record_time_of(group->views[i], seq);
		if (!time)
			return false;
		uint64_t at_ns = time->ns - (uint64_t)a->wall_shift_ns;
		if (mark.ranks == 0)
			first_ns = at_ns;
		sum += (int64_t)(at_ns - first_ns) / (int64_t)group->here;
		if (mark.ranks++ == 0 || at_ns > mark.last_ns) {
			mark.last_ns = at_ns;
			mark.rank = a->rank_base + i;
		}
	}
	mark.mean_ns = first_ns + (uint64_t)sum;
	*ret_mark = mark;
	return true;
}

/* The last collective that all ranks here have come to; 0: one of them is not known. */
static uint64_t last_of(const struct host_arrivals *a, const struct arrival_group *group)
{
	uint64_t last = UINT64_MAX;
	uint32_t known = 0;
	for (uint32_t i = 0; i < a->workers; i++) {
		if (!group->views[i])
			continue;
		last = MIN(last, group->views[i]->last_seq);
		known++;
	}
	return known && known == group->here ? last : 0;
}

static void pick(const struct host_arrivals *a, struct arrival_group *group, size_t each)
{
	uint64_t last = last_of(a, group), every = 1;
	size_t first = 0, count = 0;
	const struct record_group *view = NULL;
	group->mark_count = 0;
	for (uint32_t i = 0; i < a->workers && !view; i++)
		view = group->views[i];
	const struct record_time *times = view ? record_times(view, &count) : NULL;
	while (first < count && times[first].seq <= group->seen)
		first++;
	while (count > first && times[count - 1].seq > last)
		count--;
	while ((count - first) / every > each)
		every *= 2;
	for (size_t i = first; i < count && group->mark_count < each; i++)
		if (is_picked(times[i].seq, every))
			group->mark_count +=
				find_mark(a, group, times[i].seq, &group->marks[group->mark_count]);
	if (count > first)
		group->seen = times[count - 1].seq;
}

static void judge(struct host_arrivals *a, const struct arrival_group *group)
{
	for (size_t i = 0; i < group->mark_count; i++) {
		struct straggler_news news;
		if (!wait_groups_add(&a->judges, group->key, group->size, &group->marks[i], &news))
			continue;
		ARRAY_RESERVE(a->news, a->news_count, a->news_cap);
		a->news[a->news_count++] = news;
	}
}

/* Times by the wall clock, which may have been set since the last look, of a while ago, since when
 * clocks may have drifted. */
static void set_error(struct host_arrivals *a, int64_t wall_shift_ns, uint64_t now_ns)
{
	uint64_t set = (uint64_t)wall_shift_ns - (uint64_t)a->wall_shift_ns, age_ns = 0;
	for (size_t i = 0; i < a->count; i++)
		for (size_t j = 0; j < a->groups[i].mark_count; j++) {
			uint64_t at_ns = a->groups[i].marks[j].last_ns;
			age_ns = MAX(age_ns, now_ns - MIN(now_ns, at_ns));
		}
	a->error_ns = MIN(set, 0 - set) + age_ns / (1000000 / CLOCK_DRIFT_PPM);
}

bool host_arrivals_look(struct host_arrivals *a, const struct record *records,
			int64_t wall_shift_ns, uint64_t now_ns)
{
	bool any = false;
	int64_t before_ns = a->wall_shift_ns;
	for (size_t i = 0; i < a->count; i++)
		memset(a->groups[i].views, 0, a->workers * sizeof(*a->groups[i].views));
	for (uint32_t rank = 0; rank < a->workers; rank++)
		for (size_t i = 0; i < records[rank].count; i++) {
			struct arrival_group *group = group_of(a, &records[rank].groups[i]);
			if (group)
				group->views[rank] = &records[rank].groups[i];
			any |= group && records[rank].groups[i].last_seq;
		}
	a->wall_shift_ns = wall_shift_ns;
	a->news_count = 0;
	size_t each = marks_each(a);
	for (size_t i = 0; i < a->count; i++)
		pick(a, &a->groups[i], spans(&a->groups[i]) ? each : ARRIVALS_MARKS);
	set_error(a, before_ns, now_ns);
	for (size_t i = 0; i < a->count; i++)
		if (!spans(&a->groups[i]))
			judge(a, &a->groups[i]);
	return any;
}
