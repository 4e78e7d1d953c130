#include "watch/procinfo.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

#define STAT_MAX 4096
#define FIELD_MAX 64

/* Fields of /proc/PID/stat, numbered as in proc(5). */
enum {
	STAT_STATE = 3,
	STAT_PPID = 4,
	STAT_SESSION = 6,
	STAT_UTIME = 14,
	STAT_STIME = 15,
	STAT_THREADS = 20,
	STAT_RSS = 24,
};

static uint64_t ticks_to_ns(int64_t ticks)
{
	return ticks < 0 ? 0 : (uint64_t)ticks * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
}

static int take_field(struct procinfo *info, int number, const char *field)
{
	if (number == STAT_STATE) {
		info->state = field[0];
		return 0;
	}
	int64_t value;
	switch (number) {
	case STAT_PPID:
	case STAT_SESSION:
	case STAT_UTIME:
	case STAT_STIME:
	case STAT_THREADS:
	case STAT_RSS:
		if (str_to_i64(field, &value) < 0)
			return -EBADMSG;
		break;
	default:
		return 0;
	}
	switch (number) {
	case STAT_PPID:
		info->ppid = (pid_t)value;
		break;
	case STAT_SESSION:
		info->session = (pid_t)value;
		break;
	case STAT_UTIME:
	case STAT_STIME:
		info->cpu_ns += ticks_to_ns(value);
		break;
	case STAT_THREADS:
		info->threads = (unsigned)value;
		break;
	case STAT_RSS:
		info->rss_bytes = (uint64_t)value * (uint64_t)sysconf(_SC_PAGESIZE);
		break;
	}
	return 0;
}

int procinfo_parse_stat(const char *text, struct procinfo *ret)
{
	struct procinfo info = { 0 };
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	if (!open || !close || close < open || close[1] != ' ')
		return -EBADMSG;
	snprintf(info.comm, sizeof(info.comm), "%.*s", (int)(close - open - 1), open + 1);

	const char *rest = close + 2;
	int number = STAT_STATE;
	for (const char *piece; number <= STAT_RSS; number++) {
		char field[FIELD_MAX];
		size_t len;
		piece = str_split(&rest, ' ', &len);
		if (!piece || len == 0 || len >= sizeof(field))
			return -EBADMSG;
		memcpy(field, piece, len);
		field[len] = '\0';
		if (take_field(&info, number, field) < 0)
			return -EBADMSG;
	}
	*ret = info;
	return 0;
}

static int read_text(const char *path, struct buf *ret)
{
	buf_clear(ret);
	return file_read(path, STAT_MAX, ret, NULL);
}

int procinfo_read(pid_t pid, struct procinfo *ret)
{
	char path[64];
	AUTO(buf_done) struct buf text = BUF_INIT;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	int r = read_text(path, &text);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	return procinfo_parse_stat(buf_str(&text), ret);
}

int procinfo_chain(pid_t pid, pid_t ancestor, pid_t *ret_child)
{
	for (int generation = 0; generation < PROCINFO_CHAIN_MAX; generation++) {
		struct procinfo info;
		if (pid <= 1)
			return -EPERM;
		int r = procinfo_read(pid, &info);
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

uint64_t procinfo_cpu_ns(pid_t pid)
{
	/* What clock_getcpuclockid() computes, without its check, which costs another system
	 * call. */
	clockid_t clock = (clockid_t)(~(unsigned)pid << 3 | 2);
	struct timespec ts;
	if (clock_gettime(clock, &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void append_first_line(struct buf *out, const char *label, const char *path)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	if (read_text(path, &text) < 0)
		return;
	const char *line = buf_str(&text);
	int len = (int)strcspn(line, "\n");
	if (len > 0 && !(len == 1 && line[0] == '0'))
		buf_printf(out, " %s %.*s", label, len, line);
}

static void snapshot_thread(pid_t pid, pid_t tid, struct buf *out)
{
	char path[96];
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct procinfo info;
	int len = snprintf(path, sizeof(path), "/proc/%d/task/%d/", (int)pid, (int)tid);
	char *name = path + len;
	size_t room = sizeof(path) - (size_t)len;

	snprintf(name, room, "stat");
	if (read_text(path, &text) < 0 || procinfo_parse_stat(buf_str(&text), &info) < 0)
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

static void close_dir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

void procinfo_snapshot(pid_t pid, struct buf *out)
{
	uint64_t deadline_ns = clock_now_ns() + PROCINFO_SNAPSHOT_NS;
	struct procinfo info;
	if (procinfo_read(pid, &info) < 0) {
		buf_printf(out, "process %d is gone\n", (int)pid);
		return;
	}
	buf_printf(out, "process %d (%s) state %c, %u thread%s, %llu MiB resident\n", (int)pid,
		   info.comm, info.state, info.threads, info.threads == 1 ? "" : "s",
		   (unsigned long long)(info.rss_bytes >> 20));

	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	AUTO(close_dir) DIR *dir = opendir(path);
	if (!dir)
		return;
	unsigned shown = 0;
	for (const struct dirent *entry; clock_now_ns() < deadline_ns && (entry = readdir(dir));) {
		uint64_t tid;
		if (str_to_u64(entry->d_name, &tid) < 0)
			continue;
		snapshot_thread(pid, (pid_t)tid, out);
		shown++;
	}
	if (shown < info.threads)
		buf_printf(out, "  and %u more thread%s\n", info.threads - shown,
			   info.threads - shown == 1 ? "" : "s");
}
