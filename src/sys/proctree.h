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

/* Signals everything below a child of this process, but not the child. Returns how many it met that
 * were not zombies; 0: nothing below the child is alive, if the child is a subreaper. */
size_t proctree_signal_below(pid_t child, int sig);

/* For a process that has lost its warden: kills all descendants once and reaps the dead ones,
 * except the children that it has started itself (base/child.h) and their descendants. Of those,
 * `heirs` (may be NULL) live on, and what is below them is killed. Does not wait. Returns how many
 * it met: own children, and processes alive below heirs, but no children that it may not signal.
 * Call again (on SIGCHLD, or a few ms later) until it meets none. */
size_t proctree_sweep(const struct pids *heirs);

/* Reaps the dead children that this process has not started itself. */
void proctree_reap_orphans(void);

#endif
