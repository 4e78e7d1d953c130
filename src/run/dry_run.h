/* --dry-run: prints what would be started, and starts nothing. */
#ifndef RUN_DRY_RUN_H
#define RUN_DRY_RUN_H

#include "run/config.h"

/* Appends for every worker its command, its CPUs and the variables that it gets in addition to
 * ours, as shell words. Ranks are those of the first round if all nodes are alike; "<…>" stands for
 * what is only known at the start (a port, a directory). -EINVAL if a worker's environment cannot
 * be made. */
int dry_run_describe(const struct run_config *config, char *const *inherited, struct buf *out,
		     struct err *err);

#endif
