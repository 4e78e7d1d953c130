#include "core/batch/reason.h"

#include <errno.h>

#include "base/str.h"

static const char *const names[] = {
	[REASON_OK] = "ok",
	[REASON_EXIT] = "exit",
	[REASON_SIGNAL] = "signal",
	[REASON_TIMEOUT] = "timeout",
	[REASON_CPU_TIMEOUT] = "cpu-timeout",
	[REASON_OOM] = "oom",
	[REASON_KILLED] = "killed",
	[REASON_SPAWN] = "spawn",
	[REASON_CANARY] = "canary",
	[REASON_LOST] = "lost",
	[REASON_FILES] = "files",
};
static_assert(ARRAY_LEN(names) == REASON_COUNT, "every reason needs a name");

const char *reason_name(enum reason reason)
{
	return names[reason];
}

int reason_parse(const char *name)
{
	for (int i = 0; i < REASON_COUNT; i++)
		if (str_eq(names[i], name))
			return i;
	return -EINVAL;
}
