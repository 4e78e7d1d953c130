/* The hosts that one terminal starts a job or a batch on (fleet/starter.h), as typed. */
#ifndef CORE_FLEET_HOSTS_OPTIONS_H
#define CORE_FLEET_HOSTS_OPTIONS_H

#include "base/clock.h"

#define HOSTS_TIMEOUT_NS (30 * NS_PER_S) /* for a host to answer */
struct hosts_options {
	const char *list, *file; /* NULL: not given */
	const char *ssh;
	uint64_t timeout_ns;
	int64_t fanout;
};

#endif
