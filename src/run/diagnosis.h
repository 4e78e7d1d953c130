/* Explains a hang without blocking the loop: a thread collects records and stacks of the workers
 * (run/forensics.h) and writes the stacks to a file; then the loop gets the text. */
#ifndef RUN_DIAGNOSIS_H
#define RUN_DIAGNOSIS_H

#include <event2/event.h>

#include "run/forensics.h"

struct diagnosis;

/* What was found. The diagnosis is over and freed, with that, after the call. */
typedef void diagnosis_fn(void *arg, struct forensics *found);

/* Copies what the question points to, except for its deadline and descriptor, which are filled in,
 * and `path`; the file's path may be NULL. -errno: it could not start. */
int diagnosis_start(struct event_base *base, const struct forensics_question *question,
		    uint64_t timeout_ns, const char *path, diagnosis_fn *on_done, void *arg,
		    struct diagnosis **ret);

/* Ends it soon, without a callback. NULL is allowed. */
void diagnosis_cancel(struct diagnosis *diagnosis);

#endif
