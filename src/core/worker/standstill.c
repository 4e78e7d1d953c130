#include "core/worker/standstill.h"

/* Without the longest: one checkpoint does not make the next one usual. */
uint64_t standstill_usual_ns(const struct step_progress *progress)
{
	if (progress->told < STANDSTILL_TOLD || progress->last_ns <= progress->oldest_ns)
		return 0;
	uint64_t times = MIN(progress->told, (uint64_t)STEP_PROGRESS_TIMES) - 1;
	uint64_t span_ns = progress->last_ns - progress->oldest_ns;
	return MAX((span_ns - MIN(span_ns, progress->longest_ns)) / (times - 1), (uint64_t)1);
}

uint64_t standstill_of(const struct step_progress *progress, uint64_t now_ns)
{
	uint64_t usual_ns = standstill_usual_ns(progress);
	uint64_t quiet_ns = now_ns - MIN(now_ns, progress->last_ns);
	bool finished = progress->total && progress->step >= progress->total;
	if (!usual_ns || finished || quiet_ns < STANDSTILL_LEAST_NS ||
	    quiet_ns / STANDSTILL_TIMES < usual_ns ||
	    quiet_ns / STANDSTILL_AGAIN < progress->longest_ns)
		return 0;
	return quiet_ns;
}

double standstill_left_s(const struct step_progress *progress, uint64_t now_ns)
{
	return standstill_of(progress, now_ns) ? -1 : step_progress_left_s(progress, now_ns);
}

enum standstill_news standstill_look(struct standstill *standstill, uint64_t still_ns,
				     uint64_t *ret_lasted_ns)
{
	*ret_lasted_ns = still_ns;
	if (still_ns) {
		bool begins =
			!standstill->told && still_ns / STANDSTILL_AGAIN >= standstill->longest_ns;
		standstill->told |= begins;
		standstill->lasts_ns = still_ns;
		return begins ? STANDSTILL_BEGINS : STANDSTILL_NOTHING;
	}
	bool ends = standstill->told;
	*ret_lasted_ns = standstill->lasts_ns;
	standstill->longest_ns = MAX(standstill->longest_ns, standstill->lasts_ns);
	standstill->told = false;
	standstill->lasts_ns = 0;
	return ends ? STANDSTILL_ENDS : STANDSTILL_NOTHING;
}
