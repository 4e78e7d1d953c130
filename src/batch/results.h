/* Reads a result file, line by line. */
#ifndef BATCH_RESULTS_H
#define BATCH_RESULTS_H

#include "proto/result.h"

/* Calls `on_result` for every attempt in order (borrowed for the call; it may take
 * strings by setting them to NULL) and stops when that returns a negative value, which is returned.
 * A last line without a newline is torn: the writer was killed; it is ignored.
 * Any other broken line is an error that names it. `ret_header` may be NULL; it gets the first
 * line. `ret_end` may be NULL; it gets the length of the whole lines. */
typedef int result_fn(void *arg, struct result *result, struct err *err);
int results_read(const char *path, result_fn *on_result, void *arg, struct buf *ret_header,
		 uint64_t *ret_end, struct err *err);

#endif
