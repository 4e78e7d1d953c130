/* Messages about the limits of a process or a host that a job can reach. */
#ifndef RUN_LIMITS_H
#define RUN_LIMITS_H

#include "base/err.h"

/* If `error` means that a limit was reached (processes, open files, memory), adds the limit and the
 * remedy to the message in `err`. */
void limits_explain(int error, struct err *err);

#endif
