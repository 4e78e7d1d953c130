#include "core/pace/looks.h"

uint64_t looks_next(uint64_t there_ns, uint64_t first, uint32_t nodes)
{
	uint64_t next = there_ns / LOOKS_APART_NS + 1;
	uint64_t every = LOOKS_EVERY * (1 + (uint64_t)nodes / LOOKS_EVERY);
	if (!first || next - first < LOOKS_FIRST || next % every < LOOKS_BURST)
		return next;
	return next - next % every + every;
}

/* With two or more that do not wait, the lag of the last of them is below what counts; so it is
 * nobody's. The nanosecond for each rank makes good what divisions lose; those after it tell the
 * step that the rank is in. */
struct step_mark look_mark(uint64_t look, uint32_t rank, bool waits, uint64_t told,
			   uint32_t world_size)
{
	uint64_t at_ns = look * LOOKS_UNIT_NS;
	if (!waits)
		at_ns += STRAGGLER_LAG_MIN_NS + world_size + told % LOOKS_STEPS;
	return (struct step_mark){
		.step = look, .last_ns = at_ns, .mean_ns = at_ns, .rank = rank, .ranks = 1
	};
}

void look_mark_complete(struct step_mark *mark, uint32_t world_size)
{
	uint64_t late_ns = mark->last_ns - mark->step * LOOKS_UNIT_NS;
	uint64_t least_ns = STRAGGLER_LAG_MIN_NS + world_size;
	mark->wait = 1 + (uint32_t)(late_ns >= least_ns ? (late_ns - least_ns) % LOOKS_STEPS : 0);
}
