#include "core/checks/figure.h"

#include <string.h>

#include "base/str.h"

#define MIB (1024.0 * 1024.0)

/* The shares are wide: the hosts of a job may be busy with other things while they measure, and a
 * host that is named for nothing costs more than one that is a little slow. */
static const struct figure_rule rules[] = {
	{ "cpu_speed", "GFLOP/s", true, { .share = 0.5 } },
	{ "cpus_usable", "CPUs", true, { .share = 0.5 } },
	{ "memory_bandwidth", "GB/s", true, { .share = 0.4 } },
	{ "memory_available", "bytes", true, { .share = 0.25, .floor = 512 * MIB } },
	{ "shm_size", "bytes", true, { .share = 0.25 } },
	{ "accelerators", "", true, { .share = 1 } },
	{ "write_time", "ms", true, { .share = 0.02, .less = true, .floor = 3000 } },
	{ "pair_bandwidth", "MB/s", true, { .share = 0.2, .by_factor = true } },
	{ "pair_latency", "us", true, { .share = 0.05, .less = true, .floor = 10000 } },
	{ "new_memory_errors", "", true, { .share = 0.1, .less = true, .floor = 100 } },
	{ "new_heat_events", "", true, { .share = 0.1, .less = true, .floor = 1000 } },
	{ "new_network_errors", "", true, { .share = 0.1, .less = true, .floor = 100 } },
	{ "cpus", "", false, { .share = 0.5 } },
	{ "numa_nodes", "", false, { .share = 0.5 } },
	{ "cpu_quota", "CPUs", false, { .share = 0.5 } },
	{ "shm_free", "bytes", false, { .share = 0.5 } },
	{ "read_time", "ms", false, { .share = 0.5, .less = true } },
	{ "memory_errors", "", false, { .share = 0.5, .less = true } },
	{ "heat_events", "", false, { .share = 0.5, .less = true } },
	{ "network_errors", "", false, { .share = 0.5, .less = true } },
	{ "interfaces", "", false, { .share = 0.5 } },
};

static const struct figure_rule more = { "", "", true, { .share = 0.5 } };
static const struct figure_rule less = { "", "", true, { .share = 0.5, .less = true } };

static bool ends_in(const char *name, const char *end)
{
	size_t len = strlen(name), end_len = strlen(end);
	return len >= end_len && str_eq(name + len - end_len, end);
}

static bool is_time(const char *name)
{
	static const char *const ends[] = { "_s",	"_ms",	 "_us",	     "_ns",
					    "_seconds", "_time", "_latency", "_errors" };
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (ends_in(name, ends[i]))
			return true;
	return false;
}

const struct figure_rule *figure_rule(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		if (str_eq(rules[i].name, name))
			return &rules[i];
	return is_time(name) ? &less : &more;
}
