/* The totals in the output files of valgrind's cachegrind and callgrind. Both are text with a line
 * of event names and a line of their sums:
 *
 *     events: Ir
 *     fn=main            (megabytes of costs per line, skipped)
 *     summary: 300130739
 *
 * Callgrind writes "totals:" as well, which wins: its "summary:" is empty under
 * --toggle-collect. */
#ifndef PROTO_VALGRIND_OUT_H
#define PROTO_VALGRIND_OUT_H

#include "base/err.h"

/* The instructions executed ("Ir"). -EINVAL: not such a file. -ENODATA: no total, because the
 * program was killed before valgrind could write it. */
int valgrind_out_instructions(const char *text, size_t len, uint64_t *ret_count, struct err *err);

#endif
