/* One line on what to try next: from how the worker ended and from what it wrote last. A table of
 * known symptoms. Prints no hint rather than a guess. */
#ifndef RUN_TELL_HINT_H
#define RUN_TELL_HINT_H

#include "run/config.h"
#include "run/tell/history.h"

/* `text` is its traceback or the end of its stderr, may be "". NULL: no hint. The result is a
 * constant or is in `room`. */
const char *hint_for(const struct history_failure *failure, const struct run_config *config,
		     const char *text, char *room, size_t size);

#endif
