/* The pages of memory that workers share with us (core/worker/worker_page.h), one for each that
 * asks for it. A worker sees only its own. */
#ifndef WATCH_WORKER_PAGES_H
#define WATCH_WORKER_PAGES_H

#include "base/err.h"
#include "core/worker/worker_page.h"

struct worker_pages {
	struct shared_page *pages; /* by local rank */
	size_t count;
	uint64_t plan; /* what they show, also those that are made later */
	/* A page was made; may be NULL. Both stay over a reset. */
	void (*on_made)(void *arg);
	void *arg;
};

#define WORKER_PAGES_INIT ((struct worker_pages){ .pages = NULL })

void worker_pages_done(struct worker_pages *pages);

/* Makes room for `count` workers with fresh pages. Each is made on request. */
void worker_pages_reset(struct worker_pages *pages, size_t count);

/* The descriptor of a worker's page, borrowed; -errno. */
int worker_pages_fd(struct worker_pages *pages, size_t rank, struct err *err);

/* Borrowed until the next reset; NULL for a worker that never asked for its page. */
struct worker_page *worker_pages_get(const struct worker_pages *pages, size_t rank);

/* Shows all workers the word of a plan (core/worker/stop_plan.h), and wakes those that wait. */
void worker_pages_show(struct worker_pages *pages, uint64_t plan);

/* The heartbeats until now; 0 without a page. */
uint64_t worker_pages_beats(const struct worker_pages *pages, size_t rank);

#endif
