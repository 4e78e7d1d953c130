/* The order of the rows of a comparison: groups by label, as a tree, and what sorts inside them. */
#ifndef BATCH_COMPARE_ARRANGE_H
#define BATCH_COMPARE_ARRANGE_H

#include "batch/compare/compare.h"

/* Fills in the groups and the name of every row and sorts the rows. A group comes where the first
 * of its orders was listed. Without --group-by, orders with labels form a tree of all their labels,
 * whose last one names the row. */
void compare_arrange(struct comparison *comparison);

/* Parses a list of labels, or "none". */
int compare_parse_groups(const char *text, struct compare_groups *ret_groups, struct err *err);

/* Parses "ratio", "listed", "name" or a label. */
int compare_parse_sort(const char *text, struct compare_sort *ret_sort, struct err *err);

/* How many leading groups a row shares with the row before it in a report; 0 without one. */
size_t compare_shared_groups(const struct compare_row *row, const struct compare_row *before);

#endif
