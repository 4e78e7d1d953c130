#include "core/worker/headway.h"

#include "base/clock.h"

double headway_rate(const struct headway *headway, uint64_t now_ns)
{
	if (headway->told < 2 || headway->last_ns <= headway->oldest_ns)
		return 0;
	uint64_t kept = MIN(headway->told, (uint64_t)HEADWAY_TIMES) - 1;
	double span_ns = (double)(headway->last_ns - headway->oldest_ns);
	double waited_ns = now_ns > headway->last_ns ? (double)(now_ns - headway->last_ns) : 0;
	if (waited_ns > 2 * span_ns / (double)kept)
		span_ns += waited_ns;
	/* A worker may tell every tenth step. */
	double each = headway->step > headway->first_step
			      ? (double)(headway->step - headway->first_step) /
					(double)(headway->told - 1)
			      : 0;
	return (double)kept * each * (double)NS_PER_S / span_ns;
}

double headway_left_s(const struct headway *headway, uint64_t now_ns)
{
	double rate = headway_rate(headway, now_ns);
	if (headway->told == 0 || headway->total == 0)
		return -1;
	if (headway->step >= headway->total)
		return 0;
	return rate > 0 ? (double)(headway->total - headway->step) / rate : -1;
}

static void add_first(struct headway_sum *sum, const struct headway_rank *worker)
{
	sum->least = sum->most = worker->step;
	sum->rate = worker->rate;
	sum->behind = worker->rank;
	sum->has_saved = worker->has_saved;
	sum->saved = worker->saved;
}

static void add_next(struct headway_sum *sum, const struct headway_rank *worker)
{
	if (worker->step < sum->least) {
		sum->least = worker->step;
		sum->rate = worker->rate;
		sum->behind = worker->rank;
	}
	sum->most = MAX(sum->most, worker->step);
	sum->has_saved = sum->has_saved && worker->has_saved;
	sum->saved = MIN(sum->saved, worker->saved);
}

void headway_add(struct headway_sum *sum, const struct headway_rank *worker)
{
	/* The rank is kept while all are equal, too: a later one may be ahead of it. */
	if (sum->count++ == 0)
		add_first(sum, worker);
	else
		add_next(sum, worker);
	sum->total = MAX(sum->total, worker->total);
	sum->left_s = MAX(sum->left_s, worker->left_s);
}

void headway_span_add(struct headway_span *span, const struct headway *worker)
{
	if (worker->has_saved)
		span->saved = span->savers++ ? MIN(span->saved, worker->saved) : worker->saved;
	if (!worker->told)
		return;
	bool first = span->workers++ == 0;
	span->first_step = first ? worker->first_step : MIN(span->first_step, worker->first_step);
	span->least = first ? worker->step : MIN(span->least, worker->step);
	span->most = first ? worker->step : MAX(span->most, worker->step);
	span->first_ns = first ? worker->first_ns : MIN(span->first_ns, worker->first_ns);
	span->last_ns = first ? worker->last_ns : MAX(span->last_ns, worker->last_ns);
}
