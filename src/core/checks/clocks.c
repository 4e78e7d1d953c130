#include "core/checks/clocks.h"

#include <stdlib.h>

static int by_offset(const void *a, const void *b)
{
	const struct host_clock *x = a, *y = b;
	return x->offset_ns < y->offset_ns ? -1 : x->offset_ns > y->offset_ns;
}

struct host_clock clocks_middle(struct host_clock *all, size_t count)
{
	qsort(all, count, sizeof(*all), by_offset);
	return all[count / 2];
}

bool clocks_is_wrong(struct host_clock clock, struct host_clock middle, int64_t *ret_offset_ns)
{
	int64_t offset_ns = (int64_t)((uint64_t)clock.offset_ns - (uint64_t)middle.offset_ns);
	uint64_t away_ns = offset_ns < 0 ? -(uint64_t)offset_ns : (uint64_t)offset_ns;
	uint64_t error_ns = clock.error_ns + middle.error_ns;
	*ret_offset_ns = offset_ns;
	return away_ns > CLOCKS_FAR_NS && away_ns - CLOCKS_FAR_NS > error_ns;
}
