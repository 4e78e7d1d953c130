/* A finding in one sentence for people:
 *
 *     all_reduce #5123 of group 'dp' (8 ranks) waits 42 s: rank 5 on node3 never came; it is at
 *     data.py:88 in read(); ranks 0-4, 6, 7 came within 3 ms
 */
#ifndef RUN_TELL_FINDING_TEXT_H
#define RUN_TELL_FINDING_TEXT_H

#include "core/collectives/arrivals.h"
#include "core/stacks/stack.h"

/* Where a rank is; NULL: not known, or (the host) the same for all. */
struct finding_spot {
	const char *place; /* "data.py:88 in read()" */
	const char *host;
	const char *state; /* what it does, as the kernel knows: "waiting for a lock" */
};
typedef struct finding_spot finding_where_fn(void *arg, uint32_t rank);

/* Appends the sentence, without a newline. `where` may be NULL. */
void finding_text(const struct finding *finding, const struct join *join, finding_where_fn *where,
		  void *arg, struct buf *out);

/* What is known of all findings, a line each; "" if there is none. Those that only wait for
 * another one are counted in a line at the end. */
void findings_text(const struct findings *findings, const struct join *join,
		   finding_where_fn *where, void *arg, struct buf *out);

/* A line about a rank that comes last too often. */
void laggard_text(const struct laggard *laggard, finding_where_fn *where, void *arg,
		  struct buf *out);

/* The innermost frame of the main thread that belongs to the user's Python program, as "data.py:88
 * in read()". "": there is none. */
void finding_place(const struct stack_process *stack, struct buf *out);

#endif
