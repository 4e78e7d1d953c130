/* Lets a program choose which part of it callgrind counts, and ends each count with a dump: for
 * Python, loaded with ctypes. No effect outside valgrind. */
#include <valgrind/callgrind.h>

void region_begin(void);
void region_end(void);

void region_begin(void)
{
	CALLGRIND_START_INSTRUMENTATION;
}

void region_end(void)
{
	CALLGRIND_STOP_INSTRUMENTATION;
	CALLGRIND_DUMP_STATS;
}
