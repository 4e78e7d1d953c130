/* How counters of a host (memory errors, heat, errors of wires) have changed since they were last
 * looked at: what counts is what is new, not how long a host has been up. */
#ifndef CORE_CHECKS_COUNTER_CHANGES_H
#define CORE_CHECKS_COUNTER_CHANGES_H

#include "core/checks/check.h"

#define CHECK_COUNTERS_MAX 4

struct check_counters {
	bool known[CHECK_COUNTERS_MAX];
	double values[CHECK_COUNTERS_MAX];
};

/* Adds a result "changes" with "new_memory_errors" and so on to the list, if the counters were
 * known before, and remembers them. */
void check_changes_add(struct check_counters *counters, struct check_list *results);

#endif
