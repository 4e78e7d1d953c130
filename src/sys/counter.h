/* Instruction counts of orders, from hardware counters or valgrind, whichever this machine has.
 *
 * perf counts at full speed. Under valgrind (cachegrind is three times cheaper than callgrind) a
 * program runs 20 to 50 times slower, so its times mean nothing and are not recorded; its count
 * repeats to the instruction. */
#ifndef SYS_COUNTER_H
#define SYS_COUNTER_H

#include "base/strv.h"
#include "base/err.h"

enum counter_source {
	COUNTER_NONE,
	COUNTER_PERF,
	COUNTER_CACHEGRIND,
	COUNTER_CALLGRIND,
	COUNTER_SOURCE_COUNT,
};

/* "none", "perf", "cachegrind", "callgrind". */
const char *counter_source_name(enum counter_source source);

/* Whether this source works here: 0, or -errno and why not. */
int counter_check(enum counter_source source, struct err *err);

/* The best source that works here: perf, else cachegrind; the error gives both reasons. */
int counter_choose(enum counter_source *ret_source, struct err *err);

static inline bool counter_is_valgrind(enum counter_source source)
{
	return source == COUNTER_CACHEGRIND || source == COUNTER_CALLGRIND;
}

/* The path of valgrind, from PATH; NULL if missing. The caller frees it. Debian's `valgrind` is a
 * shell script around valgrind.bin that would put the current directory into the environment. */
char *counter_valgrind_path(void);

/* The words that run `argv` under valgrind, with every process it starts; the totals go to files
 * "PREFIX.<pid>". PREFIX should have the same length every time. */
void counter_wrap(enum counter_source source, const char *prefix, char *const *argv,
		  struct strv *ret_argv);

/* Adds up and removes the files of a run; -ENODATA when there is none, or one has no total (the
 * process was killed). */
int counter_collect(const char *prefix, uint64_t *ret_count, struct err *err);

/* Switches address randomisation off for everything started from now on; -errno where that is
 * forbidden. */
int counter_fix_addresses(struct err *err);

#endif
