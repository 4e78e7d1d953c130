/* Unit tests: TEST(name) registers itself; unit.c has main(). Each test runs in a process of its
 * own with a deadline (Check). Names say the promise. */
#ifndef UNIT_H
#define UNIT_H

#include <check.h>

#include "base/util.h"

/* Check notes every assertion that holds in a file, for the one line it can tell after a crash. A
 * test that compares every byte of a buffer pays for that with minutes. */
#define _mark_point(file, line) ((void)0)

void unit_register(const TTest *test);

/* Ends the running test, which needs something that this place does not have; tests/run tells it
 * and counts it. The reason is one line. */
_Noreturn void unit_skip(const char *reason);
extern const char *unit_running; /* the name of the test */

#define TEST(test_name) \
	static void test_name##_body(void); \
	static void test_name##_run(int index UNUSED) \
	{ \
		tcase_fn_start(#test_name, __FILE__, __LINE__); \
		unit_running = #test_name; \
		test_name##_body(); \
	} \
	static const TTest test_name##_ttest = { #test_name, test_name##_run, __FILE__, \
						 __LINE__ }; \
	__attribute__((constructor)) static void test_name##_register(void) \
	{ \
		unit_register(&test_name##_ttest); \
	} \
	static void test_name##_body(void)

#endif
