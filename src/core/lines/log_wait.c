#include "core/lines/log_wait.h"

void log_wait_round(struct log_wait *wait)
{
	wait->asked = false;
}

void log_wait_asked(struct log_wait *wait)
{
	wait->asked = true;
	wait->deaf = false;
}

bool log_wait_begin(struct log_wait *wait, uint64_t now_ns)
{
	if (wait->deaf)
		return false;
	if (!wait->waits)
		wait->since_ns = now_ns;
	wait->waits = true;
	return true;
}

bool log_wait_over(struct log_wait *wait, bool sent, uint64_t now_ns)
{
	bool late = now_ns >= log_wait_deadline_ns(wait);
	if (!wait->waits || (!late && !(wait->asked && sent)))
		return false;
	wait->deaf = late && !wait->asked;
	wait->waits = false;
	return true;
}

uint64_t log_wait_deadline_ns(const struct log_wait *wait)
{
	if (!wait->waits)
		return NS_NEVER;
	return ns_add(wait->since_ns, wait->asked ? LOG_WAIT_NS : LOG_WAIT_UNASKED_NS);
}
