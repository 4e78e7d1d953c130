/* Groups of processes whose memory the kernel adds up and limits: cgroups with the memory
 * controller, of v2 where one is delegated to us, else of v1.
 *
 * For v2 the caller must be alone in its cgroup, because controllers are for groups without
 * processes of their own: memory_base_init() moves it one level down, before it has children. */
#ifndef SYS_MEMORY_GROUP_H
#define SYS_MEMORY_GROUP_H

#include "base/err.h"

/* Where groups can be made. */
struct memory_base {
	char *path;	/* NULL: nowhere */
	char *own_leaf; /* where we are now ourselves; NULL: where we were */
	const struct memory_kind *kind;
};

#define MEMORY_BASE_INIT ((struct memory_base){ .path = NULL })

/* Fails with the reason where there is no place for groups. */
int memory_base_init(struct memory_base *ret_base, struct err *err);
void memory_base_done(struct memory_base *base); /* moves the caller back */

/* Whether the kernel kills all members of a group that has reached its limit. Else it kills one of
 * them, and the caller must look at memory_group_kills(). */
bool memory_base_kills_all(const struct memory_base *base);

struct memory_group {
	char *path; /* NULL: none */
	int fd;	    /* the directory; a process joins it through "cgroup.procs" */
	const struct memory_kind *kind;
};

#define MEMORY_GROUP_INIT ((struct memory_group){ .fd = -1 })

/* A new group. `limit` in bytes, swap included; 0: none. */
int memory_group_make(const struct memory_base *base, uint64_t limit,
		      struct memory_group *ret_group, struct err *err);

/* The most that its members had at a time, in bytes; 0: the kernel does not tell. */
uint64_t memory_group_peak(const struct memory_group *group);

/* How many of its members the kernel has killed because of the limit. */
uint64_t memory_group_kills(const struct memory_group *group);

/* SIGKILL to all members, where the kernel can. */
void memory_group_kill(const struct memory_group *group);

/* Removes it, once it has no members; NULL path: does nothing. Leaves MEMORY_GROUP_INIT. */
void memory_group_remove(struct memory_group *group);

#endif
