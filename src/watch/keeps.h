/* The memory that workers of this host keep over restarts (core/worker/keep_page.h), held here by
 * local rank and name. It ends with this process: nothing of it survives the job. */
#ifndef WATCH_KEEPS_H
#define WATCH_KEEPS_H

#include "base/err.h"
#include "core/rounds/kept.h"

struct keeps;

/* `limit`: the most bytes that all of them may have together. */
struct keeps *keeps_new(size_t ranks, uint64_t limit);
void keeps_free(struct keeps *keeps);

/* The descriptor of a worker's memory for two states of `size` bytes, borrowed; made if there is
 * none of that name. -EINVAL: the name or the size is not valid; -EEXIST: it has a state of another
 * size; -ENOSPC: KEEP_NAMES_MAX names; -EDQUOT: more than the limit. */
int keeps_fd(struct keeps *keeps, size_t rank, const char *name, uint64_t size, struct err *err);

/* A round begins, whose workers go on from `state`: no other counts any more. */
void keeps_begin(struct keeps *keeps, struct ballot ballot, const struct kept_state *state);

/* The states that every rank has committed in all that it keeps. */
void keeps_read(const struct keeps *keeps, struct kept_state ret_states[KEPT_STATES]);

uint64_t keeps_bytes(const struct keeps *keeps); /* in all; 0: nothing is kept */

#endif
