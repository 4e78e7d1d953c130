/* Reads /proc: the place of a process in the tree of our descendants, and where it hangs.
 *
 * All results are snapshots; a moment later a pid may belong to another process. To act on an
 * answer, hold a pidfd from before the question and check afterwards that it is still alive: then
 * the pid was not reused in between. */
#ifndef WATCH_PROCINFO_H
#define WATCH_PROCINFO_H

#include "base/buf.h"
#include "base/err.h"

struct procinfo {
	char comm[32];
	char state; /* 'R', 'S', 'D', 'Z', … */
	pid_t ppid;
	pid_t session;
	uint64_t cpu_ns; /* user and system, in steps of the kernel's tick */
	uint64_t rss_bytes;
	unsigned threads;
};

/* 0, -ESRCH if there is no such process, or another -errno. */
int procinfo_read(pid_t pid, struct procinfo *ret);

/* Parses the content of /proc/PID/stat; -EBADMSG. The name in it may hold anything, ')' too. */
int procinfo_parse_stat(const char *text, struct procinfo *ret);

#define PROCINFO_CHAIN_MAX 256 /* generations */

/* Whether `pid` descends from `ancestor`, and through which of its children (perhaps `pid` itself).
 * -ESRCH: it is gone. -EPERM: it is not a descendant. */
int procinfo_chain(pid_t pid, pid_t ancestor, pid_t *ret_child);

/* CPU time of a process, exact and in one system call; 0 if unknown. */
uint64_t procinfo_cpu_ns(pid_t pid);

#define PROCINFO_SNAPSHOT_NS (2 * NS_PER_MS) /* time it may take */

/* Appends lines about each thread of the process: state, kernel function and system call it waits
 * in, CPU time. Threads that do not fit into the time are only counted. */
void procinfo_snapshot(pid_t pid, struct buf *out);

#endif
