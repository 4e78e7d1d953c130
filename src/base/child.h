/* The children that this process has started itself and will wait for itself.
 *
 * A subreaper and process 1 also get children that they did not start: orphans. These are nobody
 * else's to reap, and a sweep (sys/proctree.h) may kill them; it must leave the others alone, whose
 * owners hold their pids. Each child is noted before a sweep can see it.
 */
#ifndef BASE_CHILD_H
#define BASE_CHILD_H

#include "base/pids.h"

/* fork(), and the child is noted. In the child nothing is. */
pid_t child_fork(void);

/* Waits for its end, reaps and forgets it. Returns the wait status, or -ECHILD if there is no such
 * child. */
int child_wait(pid_t pid);

/* Reaps and forgets it if it has ended: 1 with its wait status, 0 if it has not. */
int child_try_wait(pid_t pid, int *ret_status);

/* The noted ones; they neither change nor are they reaped until child_unlock(). */
const struct pids *child_lock(void);
void child_unlock(void);

#endif
