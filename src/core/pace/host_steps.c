#include "core/pace/host_steps.h"

#include <stdlib.h>

#include "base/mem.h"

void host_steps_begin(struct host_steps *steps, uint32_t rank_base, uint32_t workers,
		      uint32_t nodes)
{
	uint64_t share = (uint64_t)HOST_STEPS_IN_ALL / MAX(nodes, 1U);
	steps->rank_base = rank_base;
	steps->workers = workers;
	steps->limit = MAX(MIN(share, (uint64_t)HOST_STEPS_PER_S), (uint64_t)HOST_STEPS_MIN);
	steps->marks = (struct step_marks){ .items[0].ranks = 0 };
	steps->told_count = 0;
}

void host_steps_done(struct host_steps *steps)
{
	free(steps->told);
}

static void add_mark(struct host_steps *steps, uint32_t local_rank, uint64_t step, uint64_t at_ns)
{
	struct step_mark mark = { .step = step,
				  .last_ns = at_ns,
				  .mean_ns = at_ns,
				  .rank = steps->rank_base + local_rank,
				  .ranks = 1 };
	const struct step_mark *all = step_marks_add(&steps->marks, &mark, steps->workers);
	if (!all)
		return;
	ARRAY_RESERVE(steps->told, steps->told_count, steps->told_cap);
	steps->told[steps->told_count++] = *all;
}

bool host_steps_look(struct host_steps *steps, uint32_t local_rank, const struct worker_page *page,
		     uint64_t *seen)
{
	struct step_times times;
	if (!step_times_read(page, &times))
		return false;
	uint64_t every = step_times_sampling(&times, steps->limit);
	for (size_t i = 0; i < times.count; i++) {
		uint64_t back = times.count - 1 - i, step = times.step - back * times.stride;
		if (times.told - back > *seen && step / times.stride % every == 0)
			add_mark(steps, local_rank, step, times.ns[i]);
	}
	*seen = times.told;
	return true;
}
