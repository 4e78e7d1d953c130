/* CPU time of a tree of processes that is still running. */
#ifndef BATCH_CPU_TIME_H
#define BATCH_CPU_TIME_H

#include "base/util.h"

/* What everything below `root` has used, what it has already reaped included, `root` itself not.
 * Grows as long as `root` lives. */
uint64_t cpu_time_below(pid_t root);

#endif
