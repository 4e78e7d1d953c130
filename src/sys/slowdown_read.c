#include "sys/slowdown_read.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/procfs.h"
#include "sys/cgroup_find.h"

#define TEXT_MAX ((size_t)1 << 20)
#define LEVELS_MAX 32

/* The time for which a group had to wait for its next share, from its cpu.stat. */
static uint64_t throttled_in(const char *dir, const char *name, uint64_t unit_ns)
{
	AUTO(buf_done) struct buf path = BUF_INIT, text = BUF_INIT;
	unsigned long long value;
	buf_printf(&path, "%s/cpu.stat", dir);
	const char *at = file_read(buf_str(&path), TEXT_MAX, &text, NULL) < 0
				 ? NULL
				 : strstr(buf_str(&text), name);
	return at && sscanf(at + strlen(name), "%llu", &value) == 1 ? value * unit_ns : 0;
}

/* The quota may be that of a group further up: the one that waited most. */
static uint64_t throttled_upwards(const struct cgroup_place *place, const char *name,
				  uint64_t unit_ns)
{
	uint64_t most_ns = 0;
	AUTO_FREE char *dir = mem_strdup(place->own ? place->own : place->mount);
	for (int level = 0; level < LEVELS_MAX && strlen(dir) >= strlen(place->mount); level++) {
		most_ns = MAX(most_ns, throttled_in(dir, name, unit_ns));
		char *slash = strrchr(dir, '/');
		if (!slash)
			break;
		*slash = '\0';
	}
	return most_ns;
}

static uint64_t throttled_of(pid_t pid)
{
	AUTO(buf_done) struct buf path = BUF_INIT, membership = BUF_INIT, mounts = BUF_INIT;
	uint64_t most_ns = 0;
	buf_printf(&path, "/proc/%d/cgroup", (int)pid);
	if (file_read(buf_str(&path), TEXT_MAX, &membership, NULL) < 0 ||
	    file_read("/proc/self/mountinfo", TEXT_MAX, &mounts, NULL) < 0)
		return 0;
	AUTO(cgroup_place_done) struct cgroup_place v2 = CGROUP_PLACE_INIT, v1 = CGROUP_PLACE_INIT;
	if (cgroup_find(CGROUP_V2, buf_str(&mounts), buf_str(&membership), &v2))
		most_ns = throttled_upwards(&v2, "throttled_usec ", NS_PER_US);
	if (cgroup_find(CGROUP_V1_CPU, buf_str(&mounts), buf_str(&membership), &v1))
		most_ns = MAX(most_ns, throttled_upwards(&v1, "throttled_time ", 1));
	return most_ns;
}

void slowdown_read(pid_t pid, struct slowdown *ret_slowdown)
{
	struct proc_stat stat = { .major_faults = 0 };
	procfs_stat(pid, &stat);
	*ret_slowdown = (struct slowdown){
		.at_ns = clock_now_ns(),
		.wait_ns = procfs_wait_ns(pid),
		.throttled_ns = throttled_of(pid),
		.major_faults = stat.major_faults,
		.steal_ns = procfs_steal_ns(),
	};
}
