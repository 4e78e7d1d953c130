#include "watch/procinfo.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/procfs.h"

#define LINE_MAX 4096

int procinfo_chain(pid_t pid, pid_t ancestor, pid_t *ret_child)
{
	for (int generation = 0; generation < PROCINFO_CHAIN_MAX; generation++) {
		struct proc_stat info;
		if (pid <= 1)
			return -EPERM;
		int r = procfs_stat(pid, &info);
		if (r < 0)
			return r;
		if (info.ppid == ancestor) {
			*ret_child = pid;
			return 0;
		}
		pid = info.ppid;
	}
	return -EPERM;
}

static void append_first_line(struct buf *out, const char *label, const char *path)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	if (file_read(path, LINE_MAX, &text, NULL) < 0)
		return;
	const char *line = buf_str(&text);
	int len = (int)strcspn(line, "\n");
	if (len > 0 && !(len == 1 && line[0] == '0'))
		buf_printf(out, " %s %.*s", label, len, line);
}

static void snapshot_thread(pid_t pid, pid_t tid, struct buf *out)
{
	char path[96];
	struct proc_stat info;
	int len = snprintf(path, sizeof(path), "/proc/%d/task/%d/", (int)pid, (int)tid);
	char *name = path + len;
	size_t room = sizeof(path) - (size_t)len;
	if (procfs_thread_stat(pid, tid, &info) < 0)
		return;
	buf_printf(out, "  thread %d (%s) state %c", (int)tid, info.comm, info.state);
	snprintf(name, room, "wchan");
	append_first_line(out, "in", path);
	snprintf(name, room, "syscall");
	append_first_line(out, "syscall", path);
	char cpu[CLOCK_HUMAN_MAX];
	clock_human(info.cpu_ns, cpu);
	buf_printf(out, " cpu %s\n", cpu);
}

void procinfo_snapshot(pid_t pid, struct buf *out)
{
	uint64_t deadline_ns = clock_now_ns() + PROCINFO_SNAPSHOT_NS;
	struct proc_stat info;
	if (procfs_stat(pid, &info) < 0) {
		buf_printf(out, "process %d is gone\n", (int)pid);
		return;
	}
	buf_printf(out, "process %d (%s) state %c, %u thread%s, %llu MiB resident\n", (int)pid,
		   info.comm, info.state, info.threads, info.threads == 1 ? "" : "s",
		   (unsigned long long)(info.rss_bytes >> 20));

	AUTO(pids_done) struct pids threads = PIDS_INIT;
	procfs_threads(pid, &threads);
	unsigned shown = 0; /* at least one, however slow the machine is */
	for (; shown < threads.count && (shown == 0 || clock_now_ns() < deadline_ns); shown++)
		snapshot_thread(pid, threads.items[shown], out);
	if (shown < info.threads)
		buf_printf(out, "  and %u more thread%s\n", info.threads - shown,
			   info.threads - shown == 1 ? "" : "s");
}
