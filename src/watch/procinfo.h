/* The place of a process in the tree of our descendants, and where it hangs: snapshots, as
 * base/procfs.h says. */
#ifndef WATCH_PROCINFO_H
#define WATCH_PROCINFO_H

#include "base/buf.h"
#include "base/err.h"

#define PROCINFO_CHAIN_MAX 256 /* generations */

/* Whether `pid` descends from `ancestor`, and through which of its children (perhaps `pid` itself).
 * -ESRCH: it is gone. -EPERM: it is not a descendant. */
int procinfo_chain(pid_t pid, pid_t ancestor, pid_t *ret_child);

#define PROCINFO_SNAPSHOT_NS (2 * NS_PER_MS) /* time it may take */

/* Appends lines about each thread of the process: state, kernel function and system call it waits
 * in, CPU time. Threads that do not fit into the time are only counted. */
void procinfo_snapshot(pid_t pid, struct buf *out);

#endif
