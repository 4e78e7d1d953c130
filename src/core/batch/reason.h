/* Why an attempt of an order ended: the same words in the result file, in --retry-on and on the
 * screen. */
#ifndef CORE_BATCH_REASON_H
#define CORE_BATCH_REASON_H

#include "base/util.h"

enum reason {
	REASON_OK,
	REASON_EXIT,	    /* exit code other than 0 */
	REASON_SIGNAL,	    /* died by a signal that we did not send */
	REASON_TIMEOUT,	    /* wall time over the limit */
	REASON_CPU_TIMEOUT, /* CPU time over the limit */
	REASON_OOM,	    /* killed because memory ran out */
	REASON_KILLED,	    /* stopped by us: --halt, --deadline, Ctrl-C */
	REASON_SPAWN,	    /* could not be started */
	REASON_CANARY,	    /* the canary command failed */
	REASON_LOST,	    /* its warden is gone; how it ended is unknown */
	REASON_FILES,	    /* on many hosts: a file could not be moved */
	REASON_COUNT,
};

/* "ok", "exit", …, "cpu-timeout"; and back: -EINVAL. */
const char *reason_name(enum reason reason);
int reason_parse(const char *name);

#endif
