#include "core/worker/attempt.h"

static const char *const names[] = {
	[ATTEMPT_RUNNING] = "running", [ATTEMPT_DONE] = "done",
	[ATTEMPT_FAILED] = "failed",   [ATTEMPT_STOPPED] = "stopped",
	[ATTEMPT_REGROUP] = "regroup", [ATTEMPT_RESTARTED] = "restarted",
};
static_assert(ARRAY_LEN(names) == ATTEMPT_END_COUNT, "every end needs a name");

const char *attempt_end_name(enum attempt_end end)
{
	return names[end];
}

/* A request explains the end better than a failure on another node, which may be its consequence:
 * a signal often goes to all nodes at once. */
enum attempt_end attempt_decide(const struct attempt_facts *facts)
{
	if (facts->done)
		return ATTEMPT_DONE;
	if (facts->failed)
		return ATTEMPT_FAILED;
	if (facts->stop_asked)
		return ATTEMPT_STOPPED;
	if (facts->restart_asked)
		return ATTEMPT_RESTARTED;
	return facts->blamed ? ATTEMPT_FAILED : ATTEMPT_REGROUP;
}
