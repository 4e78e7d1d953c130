#include "core/pace/straggler.h"

#include <string.h>

#define STEP_SMOOTHING 8

void stragglers_begin(struct stragglers *stragglers, uint32_t world_size)
{
	*stragglers = (struct stragglers){ .world_size = world_size };
}

double straggler_chance(uint32_t times, uint32_t trials, uint32_t world_size)
{
	double each = 1.0 / world_size, term = 1, sum = 0;
	for (uint32_t i = 0; i < trials; i++) /* none at all */
		term *= 1 - each;
	for (uint32_t i = 0; i <= trials; i++) {
		if (i >= times)
			sum += term;
		term *= (double)(trials - i) / (i + 1) * each / (1 - each);
	}
	return sum;
}

static size_t kept(const struct stragglers *s)
{
	return MIN(s->count, (size_t)STRAGGLER_TRIALS);
}

/* Times that a rank was last in the trials that are kept. */
static struct straggler_news count(const struct stragglers *s, uint32_t rank)
{
	struct straggler_news news = { .rank = rank, .of = (uint32_t)kept(s) };
	for (size_t i = 0; i < kept(s); i++) {
		if (s->trials[i].rank != rank || !s->trials[i].lag_ns)
			continue;
		news.times++;
		news.lag_ns += s->trials[i].lag_ns;
	}
	if (news.times)
		news.lag_ns /= news.times;
	return news;
}

static bool is_late(const struct stragglers *s, const struct straggler_news *news)
{
	return news->of >= STRAGGLER_TRIALS_MIN && 2 * news->times >= news->of &&
	       straggler_chance(news->times, news->of, s->world_size) <
		       STRAGGLER_LEVEL / s->world_size;
}

static bool is_in_step(const struct straggler_news *news)
{
	return 4 * news->times < news->of;
}

void stragglers_measure(struct stragglers *s, const struct step_mark *mark)
{
	if (s->step_at_ns && mark->step > s->step && mark->last_ns > s->step_at_ns) {
		uint64_t ns = (mark->last_ns - s->step_at_ns) / (mark->step - s->step);
		s->step_ns =
			s->step_ns ? s->step_ns - s->step_ns / STEP_SMOOTHING + ns / STEP_SMOOTHING
				   : ns;
	}
	if (!s->step_at_ns || mark->step > s->step) {
		s->step = mark->step;
		s->step_at_ns = mark->last_ns;
	}
}

uint64_t straggler_lag_ns(const struct step_mark *mark)
{
	uint64_t beyond_ns = mark->last_ns - MIN(mark->mean_ns, mark->last_ns);
	return mark->ranks < 2 ? 0 : beyond_ns / (mark->ranks - 1) * mark->ranks;
}

/* 0: too short to matter. */
static uint64_t lag_of(const struct stragglers *s, const struct step_mark *mark, uint64_t error_ns)
{
	uint64_t lag_ns = straggler_lag_ns(mark);
	uint64_t least_ns = MAX((uint64_t)STRAGGLER_LAG_MIN_NS, s->step_ns / STRAGGLER_STEP_PART);
	return lag_ns >= MAX(least_ns, error_ns) ? lag_ns : 0;
}

static bool is_named(const struct stragglers *s, uint32_t rank)
{
	for (size_t i = 0; i < s->named_count; i++)
		if (s->named[i] == rank)
			return true;
	return false;
}

bool stragglers_is_named(const struct stragglers *s, uint32_t rank, struct straggler_news *ret_news)
{
	if (!is_named(s, rank))
		return false;
	*ret_news = count(s, rank);
	return true;
}

/* One that was named and is in step again. */
static bool find_recovered(struct stragglers *s, struct straggler_news *ret_news)
{
	for (size_t i = 0; i < s->named_count; i++) {
		struct straggler_news news = count(s, s->named[i]);
		if (!is_in_step(&news))
			continue;
		s->named_count--;
		memmove(&s->named[i], &s->named[i + 1], (s->named_count - i) * sizeof(*s->named));
		*ret_news = news;
		return true;
	}
	return false;
}

bool stragglers_add(struct stragglers *s, const struct step_mark *mark, uint64_t error_ns,
		    struct straggler_news *ret_news)
{
	if (s->world_size < 2)
		return false;
	stragglers_measure(s, mark);
	s->trials[s->count++ % STRAGGLER_TRIALS] =
		(struct straggler_trial){ mark->rank, lag_of(s, mark, error_ns) };
	struct straggler_news news = count(s, mark->rank);
	if (!is_named(s, mark->rank) && s->named_count < STRAGGLER_NAMED_MAX && is_late(s, &news)) {
		s->named[s->named_count++] = mark->rank;
		news.begins = true;
		*ret_news = news;
		return true;
	}
	return find_recovered(s, ret_news);
}
