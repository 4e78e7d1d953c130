#include "core/pace/step_times.h"

#include <string.h>

#include "base/clock.h"

static uint64_t read_word(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

/* Workers that tell every tenth step do so from the first one on. */
static uint64_t stride_of(uint64_t first, uint64_t step, uint64_t told)
{
	if (told < 2 || step <= first || (step - first) % (told - 1) != 0)
		return 0;
	return (step - first) / (told - 1);
}

bool step_times_read(const struct worker_page *page, struct step_times *ret)
{
	struct step_times times = { .told = atomic_load_explicit(&page->told,
								 memory_order_acquire) };
	times.step = read_word(&page->step);
	times.stride = stride_of(read_word(&page->first_step), times.step, times.told);
	for (size_t i = 0; i < STEP_PROGRESS_TIMES; i++)
		times.ns[i] = read_word(&page->times[(times.told + 1 + i) % STEP_PROGRESS_TIMES]);
	atomic_thread_fence(memory_order_acquire);
	if (read_word(&page->told) != times.told || !times.stride)
		return false;
	/* The worker may be writing the next time, into the place of the oldest one. */
	size_t skip =
		(size_t)(STEP_PROGRESS_TIMES - MIN(times.told, (uint64_t)STEP_PROGRESS_TIMES - 1));
	times.count = STEP_PROGRESS_TIMES - skip;
	memmove(times.ns, times.ns + skip, times.count * sizeof(*times.ns));
	*ret = times;
	return true;
}

uint64_t step_times_sampling(const struct step_times *times, uint64_t limit)
{
	uint64_t every = 1;
	if (times->count < 2 || times->ns[times->count - 1] <= times->ns[0])
		return every;
	uint64_t span_ns = times->ns[times->count - 1] - times->ns[0];
	uint64_t per_second = (times->count - 1) * NS_PER_S / span_ns;
	while (every < STEP_PROGRESS_TIMES / 2 && per_second / every > limit)
		every *= 2;
	return every;
}

static void merge(struct step_mark *into, const struct step_mark *mark)
{
	int64_t apart = (int64_t)(mark->mean_ns - into->mean_ns);
	into->ranks += mark->ranks;
	into->error_ns = MAX(into->error_ns, mark->error_ns);
	into->mean_ns += (uint64_t)(apart / (int64_t)into->ranks * (int64_t)mark->ranks);
	if (mark->last_ns > into->last_ns) {
		into->last_ns = mark->last_ns;
		into->rank = mark->rank;
		into->wait = mark->wait;
	}
}

/* The mark of this step, or the one that it takes the place of; NULL: it is too old. */
static struct step_mark *place_of(struct step_marks *marks, uint64_t step)
{
	struct step_mark *oldest = &marks->items[0];
	for (size_t i = 0; i < STEP_MARKS_KEPT; i++) {
		struct step_mark *at = &marks->items[i];
		if (at->ranks && at->step == step)
			return at;
		if (oldest->ranks && (!at->ranks || at->step < oldest->step))
			oldest = at;
	}
	return !oldest->ranks || oldest->step < step ? oldest : NULL;
}

const struct step_mark *step_marks_add(struct step_marks *marks, const struct step_mark *mark,
				       uint32_t of)
{
	struct step_mark *at = mark->ranks ? place_of(marks, mark->step) : NULL;
	if (!at)
		return NULL;
	if (at->ranks && at->step == mark->step) {
		if (mark->ranks > of - MIN(of, at->ranks))
			return NULL;
		merge(at, mark);
	} else {
		*at = *mark;
	}
	return at->ranks == of ? at : NULL;
}
