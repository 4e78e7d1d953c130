#include "batch/tree_memory.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/procfs.h"

#define DEPTH_MAX 128
#define TEXT_MAX 4096

static void collect(pid_t pid, int depth, struct pids *ret_pids)
{
	AUTO(pids_done) struct pids children = PIDS_INIT;
	if (depth == DEPTH_MAX || procfs_children(pid, &children) < 0)
		return;
	for (size_t i = 0; i < children.count; i++) {
		pids_add(ret_pids, children.items[i]);
		collect(children.items[i], depth + 1, ret_pids);
	}
}

static bool read_of(pid_t pid, const char *name, struct buf *ret_text)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return file_read(path, TEXT_MAX, ret_text, NULL) >= 0;
}

/* What each has for itself, and the largest share of files and shared memory. Pages that a fork has
 * left in common count twice. */
static uint64_t estimate(const struct pids *pids)
{
	unsigned long long all = 0, most_shared = 0;
	for (size_t i = 0; i < pids->count; i++) {
		AUTO(buf_done) struct buf text = BUF_INIT;
		unsigned long long resident, shared;
		if (!read_of(pids->items[i], "statm", &text) ||
		    sscanf(buf_str(&text), "%*u %llu %llu", &resident, &shared) != 2)
			continue;
		all += resident - MIN(shared, resident);
		most_shared = MAX(most_shared, shared);
	}
	return (all + most_shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The kernel divides each shared page by those who have it. */
static uint64_t exact(const struct pids *pids)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < pids->count; i++) {
		AUTO(buf_done) struct buf text = BUF_INIT;
		unsigned long long kb;
		const char *line = read_of(pids->items[i], "smaps_rollup", &text)
					   ? strstr(buf_str(&text), "\nPss:")
					   : NULL;
		if (line && sscanf(line, "\nPss: %llu", &kb) == 1)
			sum += kb * 1024;
	}
	return sum;
}

uint64_t tree_memory(pid_t root, uint64_t limit)
{
	AUTO(pids_done) struct pids pids = PIDS_INIT;
	collect(root, 0, &pids);
	uint64_t about = estimate(&pids);
	if (!limit || about <= limit)
		return about;
	uint64_t sum = exact(&pids);
	return sum ? sum : about; /* 0: we may not read it */
}

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
