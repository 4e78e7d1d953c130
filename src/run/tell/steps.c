#include "run/tell/steps.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/worker/standstill.h"
#include "proto/metrics.h"
#include "run/tell/text.h"

static void forget_late(struct steps *steps)
{
	for (size_t i = 0; i < steps->late_count; i++) {
		free(steps->late[i].why);
		free(steps->late[i].group);
	}
	free(steps->late);
	steps->late = NULL;
	steps->late_count = 0;
}

void steps_done(struct steps *steps)
{
	forget_late(steps);
	free(steps->read);
	steps->read = NULL;
}

void steps_begin(struct steps *steps)
{
	size_t count = steps->workers->config->nproc;
	steps_done(steps);
	steps->read = mem_alloc(count * sizeof(struct step_progress));
	steps->late = mem_alloc(count * sizeof(struct straggling));
	steps->late_count = count;
}

void steps_set_late(struct steps *steps, size_t local_rank, const struct straggler_news *news,
		    const char *why, const char *group)
{
	if (local_rank >= steps->late_count)
		return;
	struct straggling *late = &steps->late[local_rank];
	free(late->why);
	free(late->group);
	late->why = *why ? mem_strdup(why) : NULL;
	late->group = *group ? mem_strdup(group) : NULL;
	late->news = *news;
}

static bool is_late(const struct steps *steps, size_t local_rank)
{
	return local_rank < steps->late_count && steps->late[local_rank].news.begins;
}

bool steps_keep(struct steps *steps, uint64_t id)
{
	int64_t rank = workers_rank_of(steps->workers, id);
	if (rank < 0 || !steps->read)
		return false;
	output_headway(steps->output, id, &steps->read[rank]);
	return steps->read[rank].told > 0;
}

/* A worker that calls muster_step() knows better than a pattern. */
void steps_of(const struct steps *steps, size_t local_rank, struct step_progress *ret_headway)
{
	struct step_progress progress = { 0 }, read = { 0 };
	if (steps->guard)
		guard_headway(steps->guard, local_rank, &progress);
	if (progress.told == 0 && steps->read) {
		read = steps->read[local_rank];
		if (read.told == 0)
			output_headway(steps->output, workers_id_of(steps->workers, local_rank),
				       &read);
		memcpy(read.section, progress.section, sizeof(read.section));
		read.has_saved = progress.has_saved;
		read.saved = progress.saved;
		progress = read;
	}
	if (progress.total == 0)
		progress.total = steps->workers->config->progress_total;
	*ret_headway = progress;
}

static int64_t rank_of(const struct steps *steps, size_t local_rank)
{
	return (int64_t)steps->workers->round.rank_base + (int64_t)local_rank;
}

/* No worker of a round exists before the first one. */
static size_t count(const struct steps *steps)
{
	return steps->read ? steps->workers->config->nproc : 0;
}

static bool has_ended(const struct steps *steps, size_t local_rank)
{
	return steps->group && local_rank < steps->group->count &&
	       steps->group->workers[local_rank].state == WORKER_ENDED;
}

/* A worker that has ended stands still for good, and nobody waits for its steps. */
static uint64_t still_ns(const struct steps *steps, size_t local_rank,
			 const struct step_progress *progress, uint64_t now_ns)
{
	return has_ended(steps, local_rank) ? 0 : standstill_of(progress, now_ns);
}

struct step_progress_sum steps_sum(const struct steps *steps, uint64_t now_ns)
{
	struct step_progress_sum sum = STEP_PROGRESS_SUM_INIT;
	for (size_t i = 0; i < count(steps); i++) {
		struct step_progress progress;
		steps_of(steps, i, &progress);
		if (progress.told)
			step_progress_add(&sum,
					  &(struct step_progress_rank){
						  .rank = rank_of(steps, i),
						  .step = progress.step,
						  .total = progress.total,
						  .rate = step_progress_rate(&progress, now_ns),
						  .left_s = standstill_left_s(&progress, now_ns),
						  .has_saved = progress.has_saved,
						  .saved = progress.saved,
						  .ended = has_ended(steps, i),
						  .still_ns = still_ns(steps, i, &progress, now_ns),
						  .usual_ns = standstill_usual_ns(&progress),
					  });
	}
	return sum;
}

struct step_progress_span steps_span(const struct steps *steps)
{
	struct step_progress_span span = { .workers = 0 };
	for (size_t i = 0; i < count(steps); i++) {
		struct step_progress progress;
		steps_of(steps, i, &progress);
		step_progress_span_add(&span, &progress);
	}
	return span;
}

static void put_real_if(struct json_out *out, const char *key, double value, bool known)
{
	if (known)
		json_out_real(out, key, value);
}

static void put_int_if(struct json_out *out, const char *key, uint64_t value, bool known)
{
	if (known)
		json_out_int(out, key, (int64_t)MIN(value, (uint64_t)INT64_MAX));
}

static double seconds(uint64_t ns)
{
	return (double)ns / (double)NS_PER_S;
}

/* For how long no step was told, where that is far longer than usual, and what is usual. */
static void put_standstill(struct json_out *out, uint64_t for_ns, uint64_t usual_ns)
{
	put_real_if(out, "still_s", seconds(for_ns), for_ns);
	put_real_if(out, "usual_step_s", seconds(usual_ns), for_ns);
}

void steps_put_worker(const struct steps *steps, size_t local_rank, uint64_t now_ns,
		      struct json_out *out)
{
	struct step_progress progress;
	steps_of(steps, local_rank, &progress);
	if (progress.section[0]) {
		AUTO(buf_done) struct buf clean = BUF_INIT;
		text_clean(&clean, progress.section, strlen(progress.section));
		json_out_text(out, "section", buf_str(&clean));
	}
	put_int_if(out, "saved_step", progress.saved, progress.has_saved);
	if (!progress.told)
		return;
	double rate = step_progress_rate(&progress, now_ns),
	       left_s = standstill_left_s(&progress, now_ns);
	put_int_if(out, "step", progress.step, true);
	put_int_if(out, "total_steps", progress.total, progress.total);
	put_real_if(out, "steps_per_s", rate, rate > 0);
	put_real_if(out, "left_s", left_s, left_s >= 0);
	put_real_if(out, "step_age_s", seconds(now_ns - MIN(now_ns, progress.last_ns)), true);
	put_standstill(out, still_ns(steps, local_rank, &progress, now_ns),
		       standstill_usual_ns(&progress));
}

void steps_put_host(const struct steps *steps, uint64_t now_ns, struct json_out *out)
{
	struct step_progress_sum sum = steps_sum(steps, now_ns);
	if (sum.count == 0)
		return;
	json_out_open(out, "progress", '{');
	put_int_if(out, "step", sum.least, true);
	put_int_if(out, "most", sum.most, true);
	put_int_if(out, "total_steps", sum.total, sum.total);
	put_real_if(out, "steps_per_s", sum.rate, sum.rate > 0);
	put_real_if(out, "left_s", sum.left_s, sum.left_s >= 0);
	put_int_if(out, "behind", (uint64_t)sum.behind, sum.least < sum.most);
	put_int_if(out, "saved_step", sum.saved, sum.has_saved);
	put_standstill(out, sum.still_ns, sum.usual_ns);
	json_out_close(out, '}');
}

void steps_put_straggler(const struct steps *steps, size_t local_rank, struct json_out *out)
{
	if (!is_late(steps, local_rank))
		return;
	const struct straggling *late = &steps->late[local_rank];
	json_out_open(out, "straggler", '{');
	json_out_int(out, "times_last", late->news.times);
	json_out_int(out, late->news.group ? "of_collectives" : "of_steps", late->news.of);
	json_out_text_if(out, "group", late->group);
	json_out_real(out, "lag_s", seconds(late->news.lag_ns));
	json_out_text_if(out, "why", late->why);
	json_out_close(out, '}');
}

static void sample(struct buf *out, enum metric metric, int64_t rank, size_t local_rank,
		   double value)
{
	char names[2][24];
	snprintf(names[0], sizeof(names[0]), "%" PRId64, rank);
	snprintf(names[1], sizeof(names[1]), "%zu", local_rank);
	metrics_sample(out, metric, value,
		       METRICS_LABELS("rank", names[0], "local_rank", names[1]));
}

/* Whether it would be seen if the worker held the others up. */
static bool compares(const struct steps *steps, const struct step_progress *progress)
{
	return progress->told || (steps->guard && guard_flight(steps->guard).dir);
}

/* The value of a metric about one worker; negative: it has none. */
static double value_of(const struct steps *steps, size_t local_rank, enum metric metric,
		       uint64_t now_ns)
{
	struct step_progress read, *progress = &read;
	steps_of(steps, local_rank, progress);
	if (metric == METRIC_WORKER_SAVED_STEP)
		return progress->has_saved ? (double)progress->saved : -1;
	if (metric == METRIC_WORKER_STRAGGLER)
		return compares(steps, progress) ? is_late(steps, local_rank) : -1;
	if (!progress->told)
		return -1;
	return metric == METRIC_WORKER_STEP ? (double)progress->step
					    : step_progress_rate(progress, now_ns);
}

void steps_put_metrics(const struct steps *steps, struct buf *out)
{
	uint64_t now_ns = clock_now_ns();
	for (enum metric metric = METRIC_WORKER_STEP; metric <= METRIC_WORKER_STRAGGLER; metric++) {
		metrics_begin(out, metric);
		for (size_t i = 0; i < count(steps); i++) {
			double value = value_of(steps, i, metric, now_ns);
			if (value >= 0)
				sample(out, metric, rank_of(steps, i), i, value);
		}
	}
	struct step_progress_sum sum = steps_sum(steps, now_ns);
	metrics_begin(out, METRIC_LEFT);
	if (sum.left_s >= 0)
		metrics_sample(out, METRIC_LEFT, sum.left_s, METRICS_NO_LABELS);
	metrics_begin(out, METRIC_STANDSTILL);
	if (sum.count)
		metrics_sample(out, METRIC_STANDSTILL, seconds(sum.still_ns), METRICS_NO_LABELS);
}
