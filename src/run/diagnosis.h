/* Reads the stacks of workers without blocking the loop: a thread waits for py-spy (watch/stacks.h)
 * and writes its output to a file; then the loop gets the text. */
#ifndef RUN_DIAGNOSIS_H
#define RUN_DIAGNOSIS_H

#include <event2/event.h>

#include "watch/stacks.h"

struct diagnosis;

/* `text` has the stacks, or why there are none. The diagnosis is over and freed after the call. */
typedef void diagnosis_fn(void *arg, const char *text);

/* Copies `workers` and `path`; the file's path may be NULL. -errno: it could not start. */
int diagnosis_start(struct event_base *base, const struct stacks_worker *workers, size_t count,
		    uint64_t timeout_ns, const char *path, diagnosis_fn *on_done, void *arg,
		    struct diagnosis **ret);

/* Ends it soon, without a callback. NULL is allowed. */
void diagnosis_cancel(struct diagnosis *diagnosis);

#endif
