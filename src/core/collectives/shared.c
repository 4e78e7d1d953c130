/* The process groups that ranks share. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/collectives/join_private.h"

void shared_list_done(struct shared_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].members.items);
		free(list->items[i].views);
	}
	free(list->items);
	map_done(&list->by_key);
}

/* Two groups may have one name on different ranks; their members tell them apart. */
static void make_key(const struct record_group *group, struct buf *ret_key)
{
	buf_clear(ret_key);
	buf_append(ret_key, group->name, strlen(group->name) + 1);
	if (group->rank_count)
		buf_append(ret_key, group->ranks, group->rank_count * sizeof(*group->ranks));
}

static struct shared *find_or_add(struct shared_list *list, const struct record_group *group)
{
	AUTO(buf_done) struct buf key = BUF_INIT;
	make_key(group, &key);
	/* An index into a growing list, plus 1: 0 is not found. */
	uintptr_t found = (uintptr_t)map_get(&list->by_key, buf_data(&key), buf_len(&key));
	if (found)
		return &list->items[found - 1];
	ARRAY_RESERVE(list->items, list->count, list->cap);
	struct shared *shared = &list->items[list->count++];
	*shared = (struct shared){ .known = group, .size_known = group->rank_count > 0 };
	for (size_t i = 0; i < group->rank_count; i++)
		rank_list_add(&shared->members, group->ranks[i]);
	map_put(&list->by_key, buf_data(&key), buf_len(&key), (void *)(uintptr_t)list->count);
	return shared;
}

/* The members of the default group are known; of another group without a list, those that were
 * seen in it. */
static void complete_members(const struct join *join, struct shared *shared)
{
	if (shared->size_known)
		return;
	bool all = str_eq(shared->known->name, RECORD_DEFAULT_GROUP);
	for (uint32_t rank = 0; rank < join->world_size; rank++) {
		const struct record *record = join->ranks[rank].record;
		bool seen = all;
		for (size_t i = 0; record && !seen && i < record->count; i++)
			seen = record->groups[i].rank_count == 0 &&
			       str_eq(record->groups[i].name, shared->known->name);
		if (seen)
			rank_list_add(&shared->members, rank);
	}
	shared->size_known = all;
}

static size_t place_of(const struct rank_list *list, uint32_t rank)
{
	size_t low = 0, high = list->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (list->items[middle] < rank)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void add_view(struct shared *shared, uint32_t rank, const struct record_group *view)
{
	size_t at = place_of(&shared->members, rank);
	if (at < shared->members.count && shared->members.items[at] == rank)
		shared->views[at] = view;
}

void shared_list_fill(struct shared_list *list, const struct join *join)
{
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t rank = 0; rank < join->world_size; rank++) {
			const struct record *record = join->ranks[rank].record;
			for (size_t i = 0; record && i < record->count; i++) {
				struct shared *shared = find_or_add(list, &record->groups[i]);
				if (pass == 1)
					add_view(shared, rank, &record->groups[i]);
			}
		}
		for (size_t i = 0; pass == 0 && i < list->count; i++) {
			struct shared *shared = &list->items[i];
			complete_members(join, shared);
			shared->views = mem_alloc((shared->members.count + 1) *
						  sizeof(struct record_group *));
		}
	}
}
