/* A question about samples, and the answer of core/batch as numbers: for tests that have SciPy's.
 */
#ifndef STATS_QUESTION_H
#define STATS_QUESTION_H

#include <stdbool.h>
#include <stddef.h>

#define STATS_VALUES_MAX 1000
#define STATS_ANSWER_MAX (STATS_VALUES_MAX + 2)

/* A line is "OP X M N a1..aM b1..bN" (X: a quantile, a confidence, ... where the operation has
 * one). */
struct stats_question {
	char op[16];
	double x;
	size_t m, n;
	double a[STATS_VALUES_MAX], b[STATS_VALUES_MAX];
};

/* False: the line has no more of it than `ret_rest` says, or is none. */
bool stats_question_parse(const char *line, struct stats_question *ret_question,
			  const char **ret_rest);

/* How many numbers the answer has; 0: no such operation. Sorts the samples. */
size_t stats_question_answer(struct stats_question *question, double answer[STATS_ANSWER_MAX]);

#endif
