/* Lets a Python program choose which part of it callgrind counts: loaded with ctypes, no effect
 * outside valgrind. */
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
}
