/* Finds, signals and removes the caller's own descendants, and never another process.
 *
 * A process id alone may mean another process a moment later. Direct children cannot change,
 * because only we reap them; everything deeper is signalled through a pidfd, after checking that
 * the chain of parents up to us was whole while we held the pidfd. So only the thread that reaps
 * may use this. */
#ifndef SYS_PROCTREE_H
#define SYS_PROCTREE_H

#include "base/pids.h"

/* Called for each process that could not be signalled. */
typedef void proctree_failed_fn(void *arg, pid_t pid, int error);

/* Signals everything below this process except the children in `skip` (may be NULL) and their
 * descendants; children before their parents. Returns how many it signalled. */
size_t proctree_signal(int sig, const struct pids *skip, proctree_failed_fn *failed, void *arg);

/* For a process that has lost its warden, after warden_free(): kills all descendants once and reaps
 * the dead ones, except the children that it has started itself (base/child.h) and their
 * descendants. Does not wait. Returns how many children it met; call again (on SIGCHLD, or a few ms
 * later) until it meets none. */
size_t proctree_sweep(void);

/* Reaps the dead children that this process has not started itself. */
void proctree_reap_orphans(void);

#endif
