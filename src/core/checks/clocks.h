/* Which host has a wall clock that is wrong: one that is far from the middle of all. */
#ifndef CORE_CHECKS_CLOCKS_H
#define CORE_CHECKS_CLOCKS_H

#include "base/util.h"

#define CLOCKS_LEAST 3		      /* among fewer, none is wrong */
#define CLOCKS_FAR_NS (1000000000ull) /* from the middle, beyond what the estimate may be wrong */

struct host_clock {
	int64_t offset_ns; /* this clock minus that of the host which compares */
	uint64_t error_ns; /* at most this much in either direction */
};

/* The one in the middle of at least one clock; sorts them. */
struct host_clock clocks_middle(struct host_clock *all, size_t count);

/* True: this one is wrong, by ret_offset_ns from the middle of all, of which it is one. */
bool clocks_is_wrong(struct host_clock clock, struct host_clock middle, int64_t *ret_offset_ns);

#endif
