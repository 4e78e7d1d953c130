#include "core/worker/step_progress.h"

#include "base/clock.h"

double step_progress_rate(const struct step_progress *progress, uint64_t now_ns)
{
	if (progress->told < 2 || progress->last_ns <= progress->oldest_ns)
		return 0;
	uint64_t kept = MIN(progress->told, (uint64_t)STEP_PROGRESS_TIMES) - 1;
	double span_ns = (double)(progress->last_ns - progress->oldest_ns);
	double waited_ns = now_ns > progress->last_ns ? (double)(now_ns - progress->last_ns) : 0;
	if (waited_ns > 2 * span_ns / (double)kept)
		span_ns += waited_ns;
	/* A worker may tell every tenth step. */
	double each = progress->step > progress->first_step
			      ? (double)(progress->step - progress->first_step) /
					(double)(progress->told - 1)
			      : 0;
	return (double)kept * each * (double)NS_PER_S / span_ns;
}

double step_progress_left_s(const struct step_progress *progress, uint64_t now_ns)
{
	double rate = step_progress_rate(progress, now_ns);
	if (progress->told == 0 || progress->total == 0)
		return -1;
	if (progress->step >= progress->total)
		return 0;
	return rate > 0 ? (double)(progress->total - progress->step) / rate : -1;
}

static void add_first(struct step_progress_sum *sum, const struct step_progress_rank *worker)
{
	sum->least = sum->most = worker->step;
	sum->rate = worker->rate;
	sum->behind = worker->rank;
	sum->has_saved = worker->has_saved;
	sum->saved = worker->saved;
}

static void add_next(struct step_progress_sum *sum, const struct step_progress_rank *worker)
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

static void add_standstill(struct step_progress_sum *sum, const struct step_progress_rank *worker)
{
	if (worker->ended)
		return;
	if (sum->running++ == 0 || worker->still_ns < sum->still_ns) {
		sum->still_ns = worker->still_ns;
		sum->usual_ns = worker->usual_ns;
	}
}

void step_progress_add(struct step_progress_sum *sum, const struct step_progress_rank *worker)
{
	/* The rank is kept while all are equal, too: a later one may be ahead of it. */
	if (sum->count++ == 0)
		add_first(sum, worker);
	else
		add_next(sum, worker);
	sum->total = MAX(sum->total, worker->total);
	sum->left_s = MAX(sum->left_s, worker->left_s);
	add_standstill(sum, worker);
}

void step_progress_span_add(struct step_progress_span *span, const struct step_progress *worker)
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
