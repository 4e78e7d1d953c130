/* Reads what the kernel counts about a worker that may be slow (core/pace/slowdown_cause.h). */
#ifndef SYS_SLOWDOWN_READ_H
#define SYS_SLOWDOWN_READ_H

#include <sys/types.h>

#include "core/pace/slowdown_cause.h"

/* What cannot be read stays 0. */
void slowdown_read(pid_t pid, struct slowdown *ret_slowdown);

#endif
