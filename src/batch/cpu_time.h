/* CPU time of a running tree of processes. */
#ifndef BATCH_CPU_TIME_H
#define BATCH_CPU_TIME_H

#include "base/util.h"

/* CPU time of everything below `root`, including children already reaped, but not of `root` itself.
 * Never decreases while `root` lives. */
uint64_t cpu_time_below(pid_t root);

#endif
