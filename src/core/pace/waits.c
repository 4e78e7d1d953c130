#include "core/pace/waits.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

void waits_begin(struct waits *waits, uint32_t size)
{
	*waits = (struct waits){ .named_count = 0 };
	stragglers_begin(&waits->stragglers, size);
}

/* The part of the time since the oldest trial for which the others waited for a rank. What is not
 * in the sample is taken to be as what is. */
static double part_of(const struct waits *w, uint32_t rank)
{
	const struct stragglers *s = &w->stragglers;
	size_t kept = MIN(s->count, (size_t)STRAGGLER_TRIALS);
	size_t oldest = s->count - kept; /* its wait was over when the time begins */
	if (kept == 0)
		return 0;
	const struct wait_moment *from = &w->moments[oldest % STRAGGLER_TRIALS];
	if (w->last.marks <= from->marks || w->last.seq <= from->seq ||
	    w->last.at_ns <= from->at_ns)
		return 0;
	double waited_ns = 0;
	for (size_t i = oldest + 1; i < s->count; i++)
		if (s->trials[i % STRAGGLER_TRIALS].rank == rank)
			waited_ns += (double)s->trials[i % STRAGGLER_TRIALS].lag_ns;
	double each = (double)(w->last.seq - from->seq) / (double)(w->last.marks - from->marks);
	return waited_ns * each / (double)(w->last.at_ns - from->at_ns);
}

/* Nobody has waited for the rank for a long time, compared with how often they did. */
static bool has_ceased(const struct waits *w, uint32_t rank)
{
	const struct stragglers *s = &w->stragglers;
	uint64_t first = UINT64_MAX, latest = 0, times = 0;
	for (size_t i = 0; i < MIN(s->count, (size_t)STRAGGLER_TRIALS); i++) {
		if (s->trials[i].rank != rank || !s->trials[i].lag_ns)
			continue;
		first = MIN(first, w->moments[i].marks);
		latest = MAX(latest, w->moments[i].marks);
		times++;
	}
	return times < 2 ||
	       (w->last.marks - latest) * (times - 1) > WAITS_GAPS_GONE * (latest - first);
}

/* Those waits are of the past: a single one does not name it again. */
static void forget(struct waits *w, uint32_t rank)
{
	for (size_t i = 0; i < STRAGGLER_TRIALS; i++)
		if (w->stragglers.trials[i].rank == rank)
			w->stragglers.trials[i].lag_ns = 0;
}

static bool is_named(const struct waits *w, uint32_t rank)
{
	for (size_t i = 0; i < w->named_count; i++)
		if (w->named[i] == rank)
			return true;
	return false;
}

/* One that the test says comes last too often, and that is waited for. */
static bool find_late(struct waits *w, struct straggler_news *ret_news)
{
	const struct stragglers *s = &w->stragglers;
	for (size_t i = 0; i < s->named_count; i++) {
		struct straggler_news news;
		if (is_named(w, s->named[i]) || !stragglers_is_named(s, s->named[i], &news) ||
		    2 * news.times < news.of || part_of(w, news.rank) * WAITS_PART < 1 ||
		    w->named_count == STRAGGLER_NAMED_MAX)
			continue;
		w->named[w->named_count++] = news.rank;
		news.begins = true;
		*ret_news = news;
		return true;
	}
	return false;
}

static bool find_gone(struct waits *w, struct straggler_news *ret_news)
{
	for (size_t i = 0; i < w->named_count; i++) {
		struct straggler_news news = { .rank = w->named[i] };
		if (stragglers_is_named(&w->stragglers, news.rank, &news) &&
		    part_of(w, news.rank) * WAITS_PART_GONE >= 1 && !has_ceased(w, news.rank))
			continue;
		forget(w, news.rank);
		w->named_count--;
		memmove(&w->named[i], &w->named[i + 1], (w->named_count - i) * sizeof(*w->named));
		*ret_news = news;
		return true;
	}
	return false;
}

/* A further look at the wait that is the last trial. */
static bool is_same_wait(const struct waits *w, const struct step_mark *mark)
{
	const struct stragglers *s = &w->stragglers;
	return mark->wait && mark->wait == w->last_wait && s->count > 0 &&
	       s->trials[(s->count - 1) % STRAGGLER_TRIALS].rank == mark->rank;
}

bool waits_add(struct waits *w, const struct step_mark *mark, uint64_t error_ns,
	       struct straggler_news *ret_news)
{
	struct stragglers *s = &w->stragglers;
	struct straggler_news ignored;
	w->last = (struct wait_moment){ mark->step, mark->last_ns, w->last.marks + 1 };
	/* A clock that is wrong makes a host's ranks late and hides when others are, so a wait that
	 * it may have made is still a trial, in which nobody is the last one. */
	bool counts = straggler_lag_ns(mark) >= STRAGGLER_LAG_MIN_NS;
	if (counts && is_same_wait(w, mark)) {
		s->trials[(s->count - 1) % STRAGGLER_TRIALS].lag_ns += straggler_lag_ns(mark);
	} else if (counts) {
		w->last_wait = mark->wait;
		w->moments[s->count % STRAGGLER_TRIALS] = w->last;
		stragglers_add(s, mark, error_ns, &ignored);
	}
	return find_gone(w, ret_news) || find_late(w, ret_news);
}

/* ---- many groups ---- */

void wait_groups_done(struct wait_groups *groups)
{
	for (size_t i = 0; i < groups->count; i++)
		free(groups->items[i]);
	free(groups->items);
	*groups = (struct wait_groups){ .items = NULL };
}

static struct wait_group *group_of(struct wait_groups *groups, uint64_t key, uint32_t size)
{
	for (size_t i = 0; i < groups->count; i++)
		if (groups->items[i]->key == key)
			return groups->items[i]->size == size ? groups->items[i] : NULL;
	if (groups->count == WAIT_GROUPS_MAX)
		return NULL;
	ARRAY_RESERVE(groups->items, groups->count, groups->cap);
	struct wait_group *group = NEW(struct wait_group);
	*group = (struct wait_group){ .key = key, .size = size };
	waits_begin(&group->waits, size);
	groups->items[groups->count++] = group;
	return group;
}

double wait_groups_part(const struct wait_groups *groups, uint64_t key, uint32_t rank)
{
	for (size_t i = 0; i < groups->count; i++)
		if (groups->items[i]->key == key)
			return part_of(&groups->items[i]->waits, rank);
	return 0;
}

bool wait_groups_add(struct wait_groups *groups, uint64_t key, uint32_t size,
		     const struct step_mark *mark, struct straggler_news *ret_news)
{
	struct wait_group *group = size < 2 ? NULL : group_of(groups, key, size);
	const struct step_mark *all = group ? step_marks_add(&group->marks, mark, size) : NULL;
	/* Of two hosts, either may be off by as much. */
	if (!all || !waits_add(&group->waits, all, ns_add(all->error_ns, all->error_ns), ret_news))
		return false;
	ret_news->group = key;
	return true;
}
