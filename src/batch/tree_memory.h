/* How much memory the descendants of a process have together, from /proc. */
#ifndef BATCH_TREE_MEMORY_H
#define BATCH_TREE_MEMORY_H

#include <sys/types.h>

#include "base/util.h"

/* Bytes. Memory that several of them share counts once where that is easily told, and exactly if it
 * would be more than `limit` otherwise (0: never), which takes longer. */
uint64_t tree_memory(pid_t root, uint64_t limit);

#endif
