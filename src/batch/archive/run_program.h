/* Runs another program, such as git, and waits for it. */
#ifndef BATCH_ARCHIVE_RUN_PROGRAM_H
#define BATCH_ARCHIVE_RUN_PROGRAM_H

#include "base/buf.h"
#include "base/err.h"

/* Runs argv in `cwd` (NULL: here) and appends what it writes to its standard output. Its standard
 * error goes to ours, or nowhere if `quiet`. Fails with -ECHILD and its status if it does not end
 * with 0. */
int program_output(char *const *argv, const char *cwd, bool quiet, struct buf *ret_output,
		   struct err *err);

#endif
