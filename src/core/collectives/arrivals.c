#include "core/collectives/arrivals.h"

#include <stdlib.h>

#include "base/mem.h"
#include "core/collectives/join_private.h"

void arrivals_done(struct arrivals *arrivals)
{
	free(arrivals->items);
	*arrivals = ARRIVALS_INIT;
}

/* False: a member has not come, or its record does not have it any more. */
static bool find_last(const struct shared *shared, uint64_t seq, const int64_t *offset_ns,
		      struct arrival *ret_arrival)
{
	uint64_t before_ns = 0;
	for (size_t i = 0; i < shared->members.count; i++) {
		uint32_t rank = shared->members.items[i];
		const struct record_group *view = shared->views[i];
		const struct record_entry *entry = view ? record_find(view, seq) : NULL;
		if (!entry)
			return false;
		uint64_t at_ns = entry->created_ns - (uint64_t)(offset_ns ? offset_ns[rank] : 0);
		if (i == 0 || at_ns > ret_arrival->at_ns) {
			before_ns = ret_arrival->at_ns;
			ret_arrival->at_ns = at_ns;
			ret_arrival->last = rank;
		} else {
			before_ns = MAX(before_ns, at_ns);
		}
	}
	ret_arrival->lag_ns = ret_arrival->at_ns - before_ns;
	return true;
}

static void add_entries(const struct shared *shared, const struct record_entry *entries,
			size_t count, const int64_t *offset_ns, struct arrivals *arrivals)
{
	for (size_t i = 0; i < count; i++) {
		struct arrival arrival = { .group = shared->known, .seq = entries[i].seq };
		if (entries[i].p2p || !find_last(shared, entries[i].seq, offset_ns, &arrival))
			continue;
		ARRAY_RESERVE(arrivals->items, arrivals->count, arrivals->cap);
		arrivals->items[arrivals->count++] = arrival;
	}
}

static int by_time(const void *a, const void *b)
{
	const struct arrival *x = a, *y = b;
	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return (x->seq > y->seq) - (x->seq < y->seq);
}

void arrivals_find(const struct join *join, const int64_t *offset_ns, struct arrivals *ret_arrivals)
{
	AUTO(shared_list_done) struct shared_list list = SHARED_LIST_INIT;
	*ret_arrivals = ARRIVALS_INIT;
	shared_list_fill(&list, join);
	for (size_t i = 0; i < list.count; i++) {
		const struct shared *shared = &list.items[i];
		/* One member's entries do: the others must have them, too. */
		const struct record_group *view =
			shared->members.count > 1 ? shared->views[0] : NULL;
		if (!view || !shared->size_known)
			continue;
		add_entries(shared, view->done, view->done_count, offset_ns, ret_arrivals);
		add_entries(shared, view->open, view->open_count, offset_ns, ret_arrivals);
	}
	if (ret_arrivals->count > 1)
		qsort(ret_arrivals->items, ret_arrivals->count, sizeof(ret_arrivals->items[0]),
		      by_time);
}
