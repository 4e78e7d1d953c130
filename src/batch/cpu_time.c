#include "batch/cpu_time.h"

#include "base/procfs.h"

#define DEPTH_MAX 128

static uint64_t time_below(const struct proc_stat *root, pid_t pid, int depth)
{
	AUTO(pids_done) struct pids children = PIDS_INIT;
	uint64_t sum_ns = root->reaped_cpu_ns;
	if (depth == DEPTH_MAX || procfs_children(pid, &children) < 0)
		return sum_ns;
	for (size_t i = 0; i < children.count; i++) {
		struct proc_stat child;
		if (procfs_stat(children.items[i], &child) == 0)
			sum_ns += child.cpu_ns + time_below(&child, children.items[i], depth + 1);
	}
	return sum_ns;
}

uint64_t cpu_time_below(pid_t root)
{
	struct proc_stat stat;
	return procfs_stat(root, &stat) == 0 ? time_below(&stat, root, 0) : 0;
}
