/* Where our own cgroup is, from the texts of /proc/self/mountinfo and /proc/self/cgroup. */
#ifndef SYS_CGROUP_FIND_H
#define SYS_CGROUP_FIND_H

#include "base/util.h"

enum cgroup_kind {
	CGROUP_V2,     /* also where it is mounted beside v1 */
	CGROUP_V1_CPU, /* the hierarchy of v1's cpu controller */
	CGROUP_V1_MEMORY,
};

struct cgroup_place {
	char *mount; /* its mount point: "/sys/fs/cgroup" */
	char *own;   /* our group, at or below `mount`; NULL: the mount does not show it */
};

#define CGROUP_PLACE_INIT ((struct cgroup_place){ .mount = NULL })
void cgroup_place_done(struct cgroup_place *place);

/* False: there is no such hierarchy, or no group of ours in it. */
bool cgroup_find(enum cgroup_kind kind, const char *mountinfo, const char *membership,
		 struct cgroup_place *ret_place);

#endif
