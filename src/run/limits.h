/* The limits of a process or a host that a job can run into, in words. */
#ifndef RUN_LIMITS_H
#define RUN_LIMITS_H

#include "base/err.h"

/* If `error` is what a reached limit gives (processes, open files, memory), adds the limit and the
 * remedy to the message in `err`. */
void limits_explain(int error, struct err *err);

#endif
