/* Answers questions about samples (tests/lib/stats_question.h), a line each, so that a test can ask
 * SciPy the same ones. */
#include <stdio.h>
#include <stdlib.h>

#include "stats_question.h"

int main(void)
{
	char *line = NULL;
	size_t cap = 0;
	struct stats_question question;
	double answer[STATS_ANSWER_MAX];
	const char *rest;
	while (getline(&line, &cap, stdin) > 0) {
		if (!stats_question_parse(line, &question, &rest))
			exit(2);
		size_t count = stats_question_answer(&question, answer);
		if (count == 0)
			exit(2);
		for (size_t i = 0; i < count; i++)
			printf("%.17g ", answer[i]);
		printf("\n");
	}
	free(line);
	return 0;
}
