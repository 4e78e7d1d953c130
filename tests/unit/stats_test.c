/* Statistics against tests/data/statistics, whose answers are SciPy's: see
 * tests/e2e/batch/test_stats.py, which writes it, and asks thousands of other questions. */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stats_question.h"

static bool is_close(double ours, double theirs)
{
	if (isnan(theirs) || isinf(theirs))
		return isnan(theirs) ? isnan(ours) : ours == theirs;
	return fabs(ours - theirs) <= 1e-9 * fabs(theirs) + 1e-14;
}

static void check_line(const char *line)
{
	struct stats_question question;
	double answer[STATS_ANSWER_MAX];
	const char *rest;
	ck_assert_msg(stats_question_parse(line, &question, &rest), "%s", line);
	size_t count = stats_question_answer(&question, answer);
	ck_assert_uint_gt(count, 0);
	char *at = strchr(rest, '=');
	ck_assert_ptr_nonnull(at);
	at++;
	for (size_t i = 0; i < count; i++) {
		double theirs = strtod(at, &at);
		ck_assert_msg(is_close(answer[i], theirs), "number %zu is %.17g, not %.17g: %s", i,
			      answer[i], theirs, line);
	}
}

TEST(statistics_answer_as_scipy_does)
{
	FILE *file = fopen("tests/data/statistics", "r");
	ck_assert_ptr_nonnull(file);
	char *line = NULL;
	size_t cap = 0, lines = 0;
	while (getline(&line, &cap, file) > 0) {
		check_line(line);
		lines++;
	}
	free(line);
	fclose(file);
	ck_assert_uint_gt(lines, 100);
}
