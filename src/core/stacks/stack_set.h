/* The stacks of many workers and of their child processes, merged, so that the odd one stands out.
 *
 * Equal stacks are kept once. Those whose user code is in the same place (stack_key()) form a group
 * when they are printed, and the smallest group comes first: in a job that hangs, the one worker
 * that the others wait for is often the one that is elsewhere. */
#ifndef CORE_STACKS_STACK_SET_H
#define CORE_STACKS_STACK_SET_H

#include "base/map.h"
#include "base/strv.h"
#include "core/stacks/stack.h"

struct stack_member {
	size_t rank;
	uint32_t host; /* its number in the set, from 1 on; 0: not known */
};

struct stack_variant {
	struct stack_process process;
	struct stack_member *members; /* one for each process; children may share a rank */
	size_t count, cap;
};

struct stack_set {
	struct stack_variant **items;
	size_t count, cap;
	struct map by_text;
	struct strv hosts;
};

#define STACK_SET_INIT \
	((struct stack_set){ .items = NULL, .by_text = MAP_INIT, .hosts = STRV_INIT })
void stack_set_done(struct stack_set *set);

/* The number of a host, for members. */
uint32_t stack_set_host(struct stack_set *set, const char *name);

/* Takes the process, which stack_process_settle() has seen, with those that have this stack. */
void stack_set_add(struct stack_set *set, struct stack_process *process,
		   const struct stack_member *members, size_t count);

/* Of the worker with this rank; NULL: it is not in the set. */
const struct stack_process *stack_set_find(const struct stack_set *set, size_t rank);

/* A line for each place, the odd ones first:
 *
 *     rank 17 on node3 in read (data.py:12)
 *     61 ranks in all_reduce (train.py:88)
 */
void stack_set_lines(const struct stack_set *set, struct buf *out);

/* These lines, then the stacks, each group under a line such as "1 of 4 workers (rank 2):". */
void stack_set_print(const struct stack_set *set, struct buf *out);

/* For flame graphs: "python;MainThread;main (train.py:88);read (data.py:12) 3", outermost frame
 * first and the number of threads last, sorted. */
void stack_set_folded(const struct stack_set *set, struct buf *out);

#endif
