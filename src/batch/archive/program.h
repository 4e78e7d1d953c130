/* Runs another program and waits for it: git, and the builds of a bisection. */
#ifndef BATCH_ARCHIVE_PROGRAM_H
#define BATCH_ARCHIVE_PROGRAM_H

#include "base/buf.h"
#include "base/err.h"

/* Runs argv in `cwd` (NULL: here) and appends what it writes to its standard output. Its standard
 * error goes to ours, or nowhere if `quiet`. Fails with -ECHILD and its status if it does not end
 * with 0. */
int program_output(char *const *argv, const char *cwd, bool quiet, struct buf *ret_output,
		   struct err *err);

/* Starts argv in `cwd` with standard output and error going to `log_path`; a new process group. */
int program_start(char *const *argv, const char *cwd, const char *log_path, pid_t *ret_pid,
		  struct err *err);

#endif
