#include "core/collectives/arrivals.h"

#include <stdlib.h>

#include "base/mem.h"
#include "core/collectives/join_private.h"

void laggards_done(struct laggards *laggards)
{
	free(laggards->items);
	*laggards = LAGGARDS_INIT;
}

/* What a judgement of one group needs. */
struct judging {
	const struct join *join;
	const struct shared *shared;
	uint64_t error_ns; /* how wrong times of two hosts may be, compared */
	struct stragglers stragglers;
	uint64_t *waited_ns;	   /* by member: how long the others have waited for it */
	uint64_t first_ns, end_ns; /* when the last one came to the first and the last collective */
};

/* When the members came. False: one has not, or its record does not have it any more. */
static bool find_mark(const struct judging *j, uint64_t seq, struct step_mark *ret_mark,
		      size_t *ret_last)
{
	const struct shared *shared = j->shared;
	uint64_t base_ns = 0;
	int64_t sum = 0;
	*ret_mark = (struct step_mark){ .step = seq, .ranks = (uint32_t)shared->members.count };
	for (size_t i = 0; i < shared->members.count; i++) {
		uint32_t rank = shared->members.items[i];
		const struct record_time *time = record_time_of(shared->views[i], seq);
		if (!time)
			return false;
		uint64_t at_ns = time->ns + (uint64_t)j->join->ranks[rank].clock.offset_ns;
		if (i == 0)
			base_ns = at_ns;
		sum += (int64_t)(at_ns - base_ns) / (int64_t)shared->members.count;
		if (i == 0 || at_ns > ret_mark->last_ns) {
			ret_mark->last_ns = at_ns;
			ret_mark->rank = rank;
			*ret_last = i;
		}
	}
	ret_mark->mean_ns = base_ns + (uint64_t)sum;
	return true;
}

static void add(struct judging *j, uint64_t seq)
{
	struct step_mark mark;
	struct straggler_news news;
	size_t last = 0;
	if (!find_mark(j, seq, &mark, &last))
		return;
	uint64_t lag_ns = straggler_lag_ns(&mark);
	j->first_ns = j->first_ns ? j->first_ns : mark.last_ns;
	j->end_ns = mark.last_ns;
	if (lag_ns < STRAGGLER_LAG_MIN_NS)
		return;
	/* A clock that is wrong may make this one late and hide when others are: it is a trial. */
	if (lag_ns >= j->error_ns)
		j->waited_ns[last] += lag_ns;
	stragglers_add(&j->stragglers, &mark, j->error_ns, &news);
}

/* Whether it is known when each member came, and by how much that may be wrong. */
static bool can_compare(struct judging *j)
{
	const struct shared *shared = j->shared;
	if (shared->members.count < 2 || !shared->size_known)
		return false;
	for (size_t i = 0; i < shared->members.count; i++) {
		uint32_t rank = shared->members.items[i];
		if (!shared->views[i] || !j->join->ranks[rank].clock.error_ns)
			return false;
		j->error_ns = MAX(j->error_ns, 2 * j->join->ranks[rank].clock.error_ns);
	}
	return true;
}

static void judge(struct judging *j, struct laggards *laggards)
{
	const struct shared *shared = j->shared;
	size_t count;
	const struct record_time *times = record_times(shared->views[0], &count);
	stragglers_begin(&j->stragglers, (uint32_t)shared->members.count);
	for (size_t i = 0; i < count; i++)
		add(j, times[i].seq);
	uint64_t matters_ns = (j->end_ns - j->first_ns) / STRAGGLER_STEP_PART;
	for (size_t i = 0; i < shared->members.count; i++) {
		struct straggler_news news;
		if (j->waited_ns[i] < matters_ns ||
		    !stragglers_is_named(&j->stragglers, shared->members.items[i], &news))
			continue;
		ARRAY_RESERVE(laggards->items, laggards->count, laggards->cap);
		laggards->items[laggards->count++] = (struct laggard){ shared->known, news };
	}
}

void arrivals_judge(const struct join *join, struct laggards *ret_laggards)
{
	AUTO(shared_list_done) struct shared_list list = SHARED_LIST_INIT;
	*ret_laggards = LAGGARDS_INIT;
	shared_list_fill(&list, join);
	for (size_t i = 0; i < list.count; i++) {
		struct judging judging = { .join = join, .shared = &list.items[i] };
		if (!can_compare(&judging))
			continue;
		AUTO_FREE uint64_t *waited_ns =
			mem_alloc(list.items[i].members.count * sizeof(*waited_ns));
		judging.waited_ns = waited_ns;
		judge(&judging, ret_laggards);
	}
}
