/* Our own cgroup v2 directory, where one can be made: all members can be killed at once, even those
 * that we may not signal. Optional: callers work without one. */
#ifndef SYS_CGROUP_H
#define SYS_CGROUP_H

#include <sys/types.h>

#include "base/err.h"

struct cgroup {
	char *path; /* NULL: none */
	int fd;	    /* the directory */
};

#define CGROUP_INIT ((struct cgroup){ .fd = -1 })

/* Makes a leaf below the caller's own cgroup, in the v2 hierarchy wherever that is mounted (also
 * beside v1). Fails where there is none or it is not writable. */
int cgroup_make(const char *name, struct cgroup *ret_cgroup, struct err *err);

/* The same leaf, made by another process. */
int cgroup_open(const char *name, struct cgroup *ret_cgroup, struct err *err);

/* Removes the directory (possible once it has no members) and closes it. */
void cgroup_remove(struct cgroup *cgroup);

/* Waits until it has no members: 0, or -ETIMEDOUT. */
int cgroup_wait_empty(const struct cgroup *cgroup, uint64_t deadline_ns);

/* Only closes it. */
void cgroup_done(struct cgroup *cgroup);

/* Moves one of our processes into it. */
int cgroup_add(const struct cgroup *cgroup, pid_t pid);

/* SIGKILL to all members. -ENOENT: the kernel (before 5.14) cannot. */
int cgroup_kill(const struct cgroup *cgroup);

#endif
