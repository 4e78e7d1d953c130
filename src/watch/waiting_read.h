/* Whether a worker waits for something that another process does, as far as the kernel tells. */
#ifndef WATCH_WAITING_READ_H
#define WATCH_WAITING_READ_H

#include "base/util.h"

#include <sys/types.h>

struct waiting {
	uint64_t at_ns, cpu_ns; /* at the last look */
};

/* Its main thread is in a call that waits for a lock or a peer, and the process has used next to no
 * CPU since the last look: else its other threads may work. */
bool waiting_read(pid_t pid, struct waiting *waiting);

#endif
