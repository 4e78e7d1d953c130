/* Change points of series from standard input, one a line (numbers separated by blanks): a line of
 * places for each, then the outliers after a bar. For bench_trend.py. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/batch/change_points.h"

int main(int argc, char **argv)
{
	struct change_rule rule = { .alpha = 0.01, .min_change = 0.001 };
	if (argc > 1 && str_to_double(argv[1], &rule.alpha) < 0)
		return 2;
	char *line = NULL;
	size_t room = 0, cap = 0;
	double *values = NULL;
	AUTO(any_change_table_done) struct any_change_table table = ANY_CHANGE_TABLE_INIT;
	while (getline(&line, &room, stdin) > 0) {
		size_t n = 0;
		for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n")) {
			ARRAY_RESERVE(values, n, cap);
			if (str_to_double(word, &values[n++]) < 0)
				return 2;
		}
		struct change_points changes;
		change_points_find(values, n, &rule, &table, &changes);
		for (size_t i = 0; i < changes.count; i++)
			printf("%zu ", changes.items[i].at);
		printf("|");
		for (size_t i = 0; i < changes.outlier_count; i++)
			printf(" %zu", changes.outliers[i]);
		printf(" |");
		for (size_t i = 0; i < changes.spreads.count; i++)
			printf(" %zu", changes.spreads.items[i].at);
		printf("\n");
		change_points_done(&changes);
	}
	free(values);
	free(line);
	return 0;
}
