/* How the workers of this host ended, from the events of a job. */
#ifndef LIB_WORKER_ENDS_H
#define LIB_WORKER_ENDS_H

#include <muster/muster.h>
#include "proto/event_in.h"

struct worker_ends {
	struct muster_worker_end *items; /* of the last round, by local rank; error_file is owned */
	size_t count, cap;
	int64_t restarts;
};

#define WORKER_ENDS_INIT ((struct worker_ends){ .items = NULL })

void worker_ends_note(struct worker_ends *ends, struct event_in *event);
void worker_ends_done(struct worker_ends *ends);

/* The result that muster_result_free() frees; `ends` is empty afterwards. */
struct muster_result *worker_ends_take(struct worker_ends *ends, int exit_code);

#endif
