/* Groups equal stacks of many workers, so that the odd one stands out.
 *
 * A stack is text as py-spy prints it. Details that differ between two processes in the same place
 * (pids, thread ids, paths of the interpreter) are removed. */
#ifndef CORE_LINES_STACK_GROUPS_H
#define CORE_LINES_STACK_GROUPS_H

#include "base/buf.h"

struct stack_group {
	char *text;    /* without the details of one process */
	size_t *ranks; /* in the order added */
	size_t count, cap;
};

struct stack_groups {
	struct stack_group *items;
	size_t count, cap;
	size_t total; /* ranks */
};

#define STACK_GROUPS_INIT ((struct stack_groups){ .items = NULL })
void stack_groups_done(struct stack_groups *groups);

/* Ranks must come in ascending order. */
void stack_groups_add(struct stack_groups *groups, size_t rank, const char *text, size_t len);

/* Prints the smallest group first, each under a line such as "1 of 4 workers (rank 2):". */
void stack_groups_print(struct stack_groups *groups, struct buf *out);

#endif
