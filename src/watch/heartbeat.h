/* Signs of life without system calls: one page of shared memory per worker with a counter in it.
 *
 * The worker (libmuster) increments the counter; the launcher only checks whether it changed. A
 * worker sees only its own page. */
#ifndef WATCH_HEARTBEAT_H
#define WATCH_HEARTBEAT_H

#include "base/err.h"

#define HEARTBEAT_PAGE_SIZE 4096

struct heartbeat {
	struct heartbeat_page *pages; /* by local rank */
	size_t count;
};

#define HEARTBEAT_INIT ((struct heartbeat){ .pages = NULL })

void heartbeat_done(struct heartbeat *heartbeat);

/* Makes room for `count` workers with fresh counters. Pages are made on request. */
void heartbeat_reset(struct heartbeat *heartbeat, size_t count);

/* The descriptor of a worker's page, borrowed; -errno. */
int heartbeat_fd(struct heartbeat *heartbeat, size_t rank, struct err *err);

/* The counter now; 0 for a worker that never asked for its page. */
uint64_t heartbeat_read(const struct heartbeat *heartbeat, size_t rank);

#endif
