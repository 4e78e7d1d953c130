/* Who failed first, from the log of another launcher: torchrun's table of failures, or the lines of
 * srun. The text may be anything. Pure. */
#ifndef PROTO_LAUNCHER_LOG_H
#define PROTO_LAUNCHER_LOG_H

#include "core/worker/exit_status.h"

#define LAUNCHER_HOST_MAX 256

struct launcher_log {
	int64_t rank;		      /* -1: it does not say */
	char host[LAUNCHER_HOST_MAX]; /* "": it does not say */
	struct exit_status status;    /* unknown: it does not say */
};

void launcher_log_read(const char *text, struct launcher_log *ret_log);

#endif
