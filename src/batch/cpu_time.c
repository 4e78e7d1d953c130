#include "batch/cpu_time.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "sys/proctree.h"

#define STAT_MAX ((size_t)4096)
#define DEPTH_MAX 128

struct ticks {
	unsigned long long own, reaped;
};

static bool read_ticks(pid_t pid, struct ticks *ret_ticks)
{
	AUTO(buf_done) struct buf data = BUF_INIT;
	char path[32];
	unsigned long long user, sys, child_user, child_sys;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (file_read(path, STAT_MAX, &data, NULL) < 0)
		return false;
	/* The name may contain anything; the last parenthesis ends it. */
	const char *rest = strrchr(buf_str(&data), ')');
	if (!rest ||
	    sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu",
		   &user, &sys, &child_user, &child_sys) != 4)
		return false;
	*ret_ticks = (struct ticks){ .own = user + sys, .reaped = child_user + child_sys };
	return true;
}

static unsigned long long ticks_below(pid_t root, int depth)
{
	struct ticks ticks = { 0, 0 };
	AUTO(pids_done) struct pids children = PIDS_INIT;
	read_ticks(root, &ticks);
	unsigned long long sum = ticks.reaped;
	if (depth == DEPTH_MAX || proctree_children(root, &children) < 0)
		return sum;
	for (size_t i = 0; i < children.count; i++) {
		struct ticks child;
		if (read_ticks(children.items[i], &child))
			sum += child.own + ticks_below(children.items[i], depth + 1);
	}
	return sum;
}

uint64_t cpu_time_below(pid_t root)
{
	return ticks_below(root, 0) * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
}
