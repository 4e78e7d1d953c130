#include "core/lines/ranges.h"

#include <inttypes.h>

static void print(struct ranges *ranges, uint64_t number)
{
	buf_printf(ranges->out, "%s%" PRIu64, ranges->printed ? ranges->separator : "", number);
	ranges->printed = true;
}

void ranges_end(struct ranges *ranges)
{
	if (!ranges->open)
		return;
	ranges->open = false;
	uint64_t count = ranges->last - ranges->first + 1;
	print(ranges, ranges->first);
	if (count >= ranges->least && count > 1)
		buf_printf(ranges->out, "-%" PRIu64, ranges->last);
	else
		for (uint64_t i = 1; i < count; i++)
			print(ranges, ranges->first + i);
}

void ranges_add(struct ranges *ranges, uint64_t number)
{
	if (ranges->open && number == ranges->last + 1) {
		ranges->last = number;
		return;
	}
	ranges_end(ranges);
	ranges->first = ranges->last = number;
	ranges->open = true;
}
