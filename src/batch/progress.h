/* The status of a batch as one line of a given width. */
#ifndef BATCH_PROGRESS_H
#define BATCH_PROGRESS_H

#include "base/buf.h"

#define PROGRESS_ORDERS_MAX 64

struct progress {
	uint64_t done, failed, running, total;
	bool open;		     /* more may come: the total is not known */
	uint64_t elapsed_ns, eta_ns; /* eta NS_NEVER: unknown */
	/* The orders that run, longest first; borrowed. */
	struct {
		const char *command;
		uint64_t since_ns; /* for how long */
	} orders[PROGRESS_ORDERS_MAX];
	size_t order_count;
};

/* "[=====>     ] 12/100, 1 failed, 2 running, 34 s, ETA 3 min: sleep 3 (2 s), …": never wider than
 * `columns` - 1 cells, so that it does not wrap. Control characters are shown as '?'. */
void progress_render(const struct progress *progress, int columns, bool colour, struct buf *out);

/* "12 of 100 done, 1 failed, 2 running, 34 s, ETA 3 min" */
void progress_plain(const struct progress *progress, struct buf *out);

#endif
