/* Reads what a worker does, from /proc: whether it works although it prints nothing. */
#ifndef WATCH_WORK_READ_H
#define WATCH_WORK_READ_H

#include "core/worker/hang.h"

#include <sys/types.h>

#define WORK_PROCESSES_MAX 512 /* of a worker; more are not counted */

/* Of the worker and its descendants. What cannot be read stays 0. */
void work_read(pid_t pid, struct hang_work *ret_work);

#endif
