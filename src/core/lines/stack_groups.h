/* The stacks of many workers, those that are alike put together, so that the odd one stands out.
 *
 * A stack is text as py-spy prints it. What differs between two processes in the same place (pids,
 * thread ids, paths of the interpreter) does not count and is not shown.
 */
#ifndef CORE_LINES_STACK_GROUPS_H
#define CORE_LINES_STACK_GROUPS_H

#include "base/buf.h"

struct stack_group {
	char *text;    /* without what is the process's own */
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

/* For people: the smallest group first, each under a line such as "1 of 4 workers (rank 2):". */
void stack_groups_print(struct stack_groups *groups, struct buf *out);

#endif
