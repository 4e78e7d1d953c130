/* --dry-run: what would be started, and nothing is. */
#ifndef RUN_DRY_RUN_H
#define RUN_DRY_RUN_H

#include "run/config.h"

/* Appends for every worker its command, its CPUs and the variables it gets on top of ours, as shell
 * words. Ranks are those of the first round if all nodes are alike; what is only known at the start
 * (a port, a directory) stands as "<…>". -EINVAL if a worker's environment cannot be made. */
int dry_run_describe(const struct run_config *config, char *const *inherited, struct buf *out,
		     struct err *err);

#endif
