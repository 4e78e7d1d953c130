#include "core/worker/goodput.h"

void goodput_begin(struct goodput *goodput, uint64_t started_ns)
{
	*goodput = (struct goodput){ .until_ns = started_ns };
}

static uint64_t between(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? to_ns - from_ns : 0;
}

static void wait_until(struct goodput *goodput, uint64_t when_ns)
{
	uint64_t waited_ns = between(goodput->until_ns, when_ns);
	goodput->wait_ns += waited_ns;
	goodput->total_ns += waited_ns;
	goodput->until_ns = when_ns;
}

/* Splits the time between the first and the last step by the numbers of new and repeated ones. The
 * first step ended where that time begins, so it has no part in it. */
static uint64_t add_steps(struct goodput *goodput, const struct step_progress_span *span,
			  uint64_t busy_ns)
{
	uint64_t first = MIN(span->first_step, span->most);
	uint64_t done = span->most - first;
	uint64_t again = MIN(between(first + 1, goodput->reached), done);
	uint64_t again_ns =
		done ? (uint64_t)((double)busy_ns * (double)again / (double)done) : busy_ns;
	goodput->again += again;
	goodput->steps += done - again;
	goodput->again_ns += again_ns;
	goodput->steps_ns += busy_ns - again_ns;
	goodput->reached = MAX(goodput->reached, span->most + 1);
	return again_ns;
}

uint64_t goodput_add(struct goodput *goodput, uint64_t started_ns, uint64_t ended_ns,
		     const struct step_progress_span *span)
{
	wait_until(goodput, started_ns);
	uint64_t lived_ns = between(started_ns, ended_ns);
	/* Times that a worker wrote may be anything. */
	uint64_t first_ns = MIN(MAX(span->first_ns, started_ns), started_ns + lived_ns);
	uint64_t last_ns = MIN(MAX(span->last_ns, first_ns), started_ns + lived_ns);
	goodput->total_ns += lived_ns;
	goodput->until_ns = started_ns + lived_ns;
	if (!span->workers) {
		goodput->start_ns += lived_ns;
		return lived_ns;
	}
	uint64_t start_ns = first_ns - started_ns, end_ns = started_ns + lived_ns - last_ns;
	goodput->start_ns += start_ns;
	goodput->end_ns += end_ns;
	return start_ns + end_ns + add_steps(goodput, span, last_ns - first_ns);
}

void goodput_end(struct goodput *goodput, uint64_t ended_ns)
{
	wait_until(goodput, ended_ns);
}
