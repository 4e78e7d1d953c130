#include "watch/work_read.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"

/* What we start to read stacks is no debugger. */
static bool is_debugger(pid_t tracer)
{
	struct proc_stat stat;
	return tracer > 0 && procfs_stat(tracer, &stat) == 0 && stat.ppid != getpid();
}

static void add_process(pid_t pid, struct hang_work *work)
{
	struct proc_stat stat;
	if (procfs_stat(pid, &stat) < 0)
		return;
	uint64_t exact_ns = procfs_cpu_ns(pid);
	work->cpu_ns += (exact_ns ? exact_ns : stat.cpu_ns) + stat.reaped_cpu_ns;
	work->bytes += procfs_io_bytes(pid);
}

void work_read(pid_t pid, struct hang_work *ret_work)
{
	AUTO(pids_done) struct pids all = PIDS_INIT;
	struct hang_work work = { .at_ns = clock_now_ns() };
	pid_t tracer = 0;
	procfs_waits(pid, &work.waits, &tracer);
	work.traced = is_debugger(tracer);
	pids_add(&all, pid);
	for (size_t i = 0; i < all.count && i < WORK_PROCESSES_MAX; i++) {
		add_process(all.items[i], &work);
		procfs_children(all.items[i], &all);
	}
	*ret_work = work;
}
