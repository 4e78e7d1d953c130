#include "core/worker/failure_class.h"

#include "base/util.h"

static const char *const class_names[] = {
	[CLASS_UNKNOWN] = "unknown",
	[CLASS_CODE] = "code",
	[CLASS_DATA] = "data",
	[CLASS_HOST] = "host",
	[CLASS_DEVICE] = "device",
	[CLASS_NETWORK] = "network",
	[CLASS_STORAGE] = "storage",
	[CLASS_MEMORY] = "memory",
	[CLASS_PREEMPTION] = "preemption",
	[CLASS_CONFIGURATION] = "configuration",
};
static_assert(ARRAY_LEN(class_names) == FAILURE_CLASS_COUNT, "every class needs a name");

static const char *const certainty_names[] = {
	[CERTAINTY_GUESS] = "guess",
	[CERTAINTY_LIKELY] = "likely",
	[CERTAINTY_KNOWN] = "known",
};
static_assert(ARRAY_LEN(certainty_names) == CERTAINTY_COUNT, "every certainty needs a name");

static const char *const advice_names[] = {
	[ADVICE_NONE] = "none",
	[ADVICE_RESTART] = "restart",
	[ADVICE_ELSEWHERE] = "restart elsewhere",
	[ADVICE_FIX] = "fix first",
};
static_assert(ARRAY_LEN(advice_names) == FAILURE_ADVICE_COUNT, "every advice needs a name");

const char *failure_class_name(enum failure_class class)
{
	return class_names[class];
}

const char *failure_certainty_name(enum failure_certainty certainty)
{
	return certainty_names[certainty];
}

const char *failure_advice_name(enum failure_advice advice)
{
	return advice_names[advice];
}
