#include "core/rounds/policy.h"

#include <errno.h>

#include "base/clock.h"

static bool spawn_error_stays(int error)
{
	return error == ENOENT || error == ENOTDIR || error == EACCES || error == EPERM ||
	       error == ENOEXEC || error == EISDIR || error == ELOOP || error == ENAMETOOLONG ||
	       error == E2BIG;
}

bool policy_is_final(const struct exit_set *no_restart_on, const struct cause *cause)
{
	if (cause->reason == FAILURE_SPAWN)
		return spawn_error_stays(cause->spawn_errno);
	return exit_set_contains(no_restart_on, &cause->status);
}

uint64_t policy_backoff_ns(uint64_t base_ns, uint64_t max_ns, uint32_t restart)
{
	uint64_t pause = base_ns;
	for (uint32_t i = 1; i < restart && pause > 0 && pause < max_ns; i++)
		pause = ns_add(pause, pause);
	return MIN(pause, max_ns);
}

void stall_add(struct stall *stall, uint64_t reached)
{
	stall->attempts = reached > stall->reached ? 0 : stall->attempts + 1;
	stall->reached = MAX(stall->reached, reached);
}

uint64_t pace_earliest_ns(const struct pace *pace, uint32_t reserve)
{
	uint64_t slack = pace->interval_ns * (pace->burst - reserve - 1);
	return pace->next_ns > slack ? pace->next_ns - slack : 0;
}

void pace_take(struct pace *pace, uint64_t now_ns)
{
	pace->next_ns = ns_add(MAX(pace->next_ns, now_ns), pace->interval_ns);
}
