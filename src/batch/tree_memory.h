/* How much memory the descendants of a process have together, and CPU time, from /proc. */
#ifndef BATCH_TREE_MEMORY_H
#define BATCH_TREE_MEMORY_H

#include <sys/types.h>

#include "base/util.h"

/* Bytes. Memory that several of them share counts once where that is easily told, and exactly if it
 * would be more than `limit` otherwise (0: never), which takes longer. */
uint64_t tree_memory(pid_t root, uint64_t limit);

/* CPU time of everything below `root`, including children already reaped, but not of `root` itself.
 * Never decreases while `root` lives. */
uint64_t cpu_time_below(pid_t root);

#endif
