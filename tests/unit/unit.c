#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TESTS_MAX 512
#define TEST_TIMEOUT_S 300

static const TTest *tests[TESTS_MAX];
static size_t test_count;
const char *unit_running;

void unit_register(const TTest *test)
{
	if (test_count == TESTS_MAX)
		abort();
	tests[test_count++] = test;
}

void unit_skip(const char *reason)
{
	printf("SKIPPED: %s: %s\n", unit_running, reason);
	fflush(stdout);
	_exit(EXIT_SUCCESS);
}

int main(int argc UNUSED, char **argv)
{
	Suite *suite = suite_create(argv[0]);
	TCase *tcase = tcase_create("all");
	tcase_set_timeout(tcase, TEST_TIMEOUT_S);
	for (size_t i = 0; i < test_count; i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);

	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
