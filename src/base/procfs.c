#include "base/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

#define FILE_MAX ((size_t)1 << 26) /* children of one process, or the table of all CPUs */
#define PATH_SIZE 64
#define FIELD_MAX 32

/* ---- /proc/PID/stat ---- */

/* Its fields, numbered as in proc(5). */
enum {
	STAT_STATE = 3,
	STAT_PPID = 4,
	STAT_SESSION = 6,
	STAT_MAJFLT = 12,
	STAT_UTIME = 14,
	STAT_STIME = 15,
	STAT_CUTIME = 16,
	STAT_CSTIME = 17,
	STAT_THREADS = 20,
	STAT_RSS = 24,
	STAT_ARG_START = 48,
	STAT_ARG_END = 49,
	STAT_COUNT,
};

static uint64_t ticks_to_ns(uint64_t ticks)
{
	return ticks * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* The numbers from the parent on; those that are negative count as 0. Returns how many fields there
 * are, or -EBADMSG. */
static int parse_numbers(const char *rest, uint64_t value[STAT_COUNT])
{
	int number = STAT_PPID;
	size_t len;
	for (const char *piece; number < STAT_COUNT && (piece = str_split(&rest, ' ', &len));
	     number++) {
		char field[FIELD_MAX];
		if (len == 0 || len >= sizeof(field))
			return -EBADMSG;
		snprintf(field, sizeof(field), "%.*s", (int)len, piece);
		field[strcspn(field, "\n")] = '\0';
		int64_t below_0;
		value[number] = 0;
		if (str_to_u64(field, &value[number]) < 0 && str_to_i64(field, &below_0) < 0)
			return -EBADMSG;
	}
	return number;
}

int procfs_parse_stat(const char *text, struct proc_stat *ret_stat)
{
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	if (!open || !close || close < open || close[1] != ' ' || !close[2] || close[3] != ' ')
		return -EBADMSG;
	uint64_t value[STAT_COUNT] = { 0 };
	if (parse_numbers(close + 4, value) <= STAT_RSS)
		return -EBADMSG;
	*ret_stat = (struct proc_stat){
		.state = close[2],
		.ppid = (pid_t)value[STAT_PPID],
		.session = (pid_t)value[STAT_SESSION],
		.cpu_ns = ticks_to_ns(value[STAT_UTIME] + value[STAT_STIME]),
		.reaped_cpu_ns = ticks_to_ns(value[STAT_CUTIME] + value[STAT_CSTIME]),
		.rss_bytes = value[STAT_RSS] * (uint64_t)sysconf(_SC_PAGESIZE),
		.major_faults = value[STAT_MAJFLT],
		.threads = (unsigned)value[STAT_THREADS],
		.arg_start = value[STAT_ARG_START],
		.arg_end = value[STAT_ARG_END],
	};
	snprintf(ret_stat->comm, sizeof(ret_stat->comm), "%.*s", (int)(close - open - 1), open + 1);
	return 0;
}

static int read_stat(const char *path, struct proc_stat *ret_stat)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	int r = file_read(path, FILE_MAX, &text, NULL);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	return procfs_parse_stat(buf_str(&text), ret_stat);
}

int procfs_stat(pid_t pid, struct proc_stat *ret_stat)
{
	char path[PATH_SIZE];
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	return read_stat(path, ret_stat);
}

int procfs_thread_stat(pid_t pid, pid_t tid, struct proc_stat *ret_stat)
{
	char path[PATH_SIZE];
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	return read_stat(path, ret_stat);
}

/* ---- lists ---- */

static void add_word(const char *word, struct pids *pids)
{
	int64_t value;
	if (str_to_i64(word, &value) == 0 && value > 0 && value <= INT32_MAX)
		pids_add(pids, (pid_t)value);
}

/* The entries of a directory that are numbers. */
static int list_numbers(const char *path, struct pids *ret_pids)
{
	DIR *dir = opendir(path);
	if (!dir)
		return -errno;
	for (const struct dirent *entry; (entry = readdir(dir));)
		add_word(entry->d_name, ret_pids);
	closedir(dir);
	return 0;
}

int procfs_processes(struct pids *ret_pids)
{
	return list_numbers("/proc", ret_pids);
}

int procfs_threads(pid_t pid, struct pids *ret_tids)
{
	char path[PATH_SIZE];
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	int r = list_numbers(path, ret_tids);
	return r == -ENOENT && access("/proc/self", F_OK) == 0 ? -ESRCH : r;
}

/* "123 124 125 " as /proc/PID/task/TID/children has it. */
static int thread_children(pid_t pid, pid_t tid, struct pids *ret_children)
{
	char path[PATH_SIZE];
	AUTO(buf_done) struct buf text = BUF_INIT;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)tid);
	int r = file_read(path, FILE_MAX, &text, NULL);
	if (r < 0)
		return r;
	buf_append_char(&text, '\0');
	char *save = NULL, *list = (char *)buf_data(&text);
	for (char *word = strtok_r(list, " ", &save); word; word = strtok_r(NULL, " ", &save))
		add_word(word, ret_children);
	return 0;
}

/* For kernels without the children files. */
static int scan_children(pid_t parent, struct pids *ret_children)
{
	AUTO(pids_done) struct pids all = PIDS_INIT;
	int r = procfs_processes(&all);
	for (size_t i = 0; i < all.count; i++) {
		struct proc_stat stat;
		if (procfs_stat(all.items[i], &stat) == 0 && stat.ppid == parent)
			pids_add(ret_children, all.items[i]);
	}
	return r;
}

int procfs_children(pid_t pid, struct pids *ret_children)
{
	AUTO(pids_done) struct pids threads = PIDS_INIT;
	int r = procfs_threads(pid, &threads);
	if (r < 0)
		return r;
	bool supported = false;
	for (size_t i = 0; i < threads.count; i++) {
		r = thread_children(pid, threads.items[i], ret_children);
		if (r < 0 && r != -ENOENT && r != -ESRCH)
			return r;
		supported |= r == 0;
	}
	return supported ? 0 : scan_children(pid, ret_children);
}

/* ---- single facts ---- */

uint64_t procfs_cpu_ns(pid_t pid)
{
	/* What clock_getcpuclockid() computes, without its check, which is a system call more. */
	clockid_t clock = (clockid_t)(~(unsigned)pid << 3 | 2);
	struct timespec ts;
	if (clock_gettime(clock, &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

bool procfs_catches(pid_t pid, int sig)
{
	char path[PATH_SIZE];
	AUTO(buf_done) struct buf status = BUF_INIT;
	uint64_t mask;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (file_read(path, FILE_MAX, &status, NULL) < 0)
		return false;
	const char *line = strstr(buf_str(&status), "\nSigCgt:\t");
	return line && str_hex_to_u64(line + strlen("\nSigCgt:\t"), &mask) == 0 &&
	       mask & (1ull << (sig - 1));
}

void procfs_exe(pid_t pid, char *ret_path, size_t size)
{
	char path[PATH_SIZE];
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	ssize_t len = readlink(path, ret_path, size - 1);
	ret_path[MAX(len, 0)] = '\0';
}

/* The beginning of a file of a thread, up to `end`. */
static int read_word(pid_t pid, pid_t tid, const char *file, const char *end, char *ret_word,
		     size_t size)
{
	char path[PATH_SIZE];
	AUTO(buf_done) struct buf text = BUF_INIT;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, file);
	int r = file_read(path, FILE_MAX, &text, NULL);
	if (r < 0)
		return r;
	const char *word = buf_str(&text);
	snprintf(ret_word, size, "%.*s", (int)strcspn(word, end), word);
	return 0;
}

int procfs_title(pid_t pid, char *ret_title, size_t size)
{
	return read_word(pid, pid, "cmdline", "", ret_title, size);
}

void procfs_wchan(pid_t pid, pid_t tid, char *ret_name, size_t size)
{
	if (read_word(pid, tid, "wchan", "\n", ret_name, size) < 0 || str_eq(ret_name, "0"))
		ret_name[0] = '\0';
}

int procfs_syscall(pid_t pid, pid_t tid, long *ret_number)
{
	char word[FIELD_MAX];
	int64_t number;
	int r = read_word(pid, tid, "syscall", " \n", word, sizeof(word));
	if (r < 0)
		return r;
	/* "running", or -1: it was interrupted outside of a call */
	if (str_to_i64(word, &number) < 0 || number < 0)
		return -ENOENT;
	*ret_number = (long)number;
	return 0;
}

/* The number behind a name at the beginning of a line; 0 if there is none. */
static uint64_t find_counter(const char *path, const char *name)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	if (file_read(path, FILE_MAX, &text, NULL) < 0)
		return 0;
	const char *rest = buf_str(&text), *line;
	size_t name_len = strlen(name);
	for (size_t len; (line = str_split(&rest, '\n', &len));) {
		unsigned long long value;
		if (strncmp(line, name, name_len) == 0 && line[name_len] == ' ' &&
		    sscanf(line + name_len, "%llu", &value) == 1)
			return value;
	}
	return 0;
}

uint64_t procfs_vmstat(const char *name)
{
	return find_counter("/proc/vmstat", name);
}

uint64_t procfs_memory_total(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t procfs_memory_available(void)
{
	return find_counter("/proc/meminfo", "MemAvailable:") * 1024;
}

uint64_t procfs_running(void)
{
	return find_counter("/proc/stat", "procs_running");
}

uint64_t procfs_io_bytes(pid_t pid)
{
	char path[PATH_SIZE];
	snprintf(path, sizeof(path), "/proc/%d/io", (int)pid);
	return find_counter(path, "rchar:") + find_counter(path, "wchar:");
}

void procfs_waits(pid_t pid, uint64_t *ret_times, pid_t *ret_tracer)
{
	char path[PATH_SIZE];
	AUTO(buf_done) struct buf text = BUF_INIT;
	unsigned long long times;
	int tracer;
	*ret_times = 0;
	*ret_tracer = 0;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (file_read(path, FILE_MAX, &text, NULL) < 0)
		return;
	const char *waits = strstr(buf_str(&text), "\nvoluntary_ctxt_switches:");
	const char *traced = strstr(buf_str(&text), "\nTracerPid:");
	if (waits && sscanf(waits, "\nvoluntary_ctxt_switches: %llu", &times) == 1)
		*ret_times = times;
	if (traced && sscanf(traced, "\nTracerPid: %d", &tracer) == 1)
		*ret_tracer = tracer;
}

/* The 8th word of the cpuN lines of /proc/schedstat. */
bool procfs_cpu_times(uint64_t *ret_ns, size_t count)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	if (file_read("/proc/schedstat", FILE_MAX, &text, NULL) < 0)
		return false;
	bool any = false;
	const char *rest = buf_str(&text), *line;
	for (size_t len; (line = str_split(&rest, '\n', &len));) {
		unsigned cpu;
		unsigned long long ns;
		if (sscanf(line, "cpu%u %*u %*u %*u %*u %*u %*u %llu", &cpu, &ns) == 2 &&
		    cpu < count) {
			ret_ns[cpu] = ns;
			any = true;
		}
	}
	return any;
}

uint64_t procfs_wait_ns(pid_t pid)
{
	AUTO(pids_done) struct pids tids = PIDS_INIT;
	uint64_t sum_ns = 0;
	if (procfs_threads(pid, &tids) < 0)
		return 0;
	for (size_t i = 0; i < tids.count; i++) {
		char word[2 * FIELD_MAX];
		unsigned long long wait_ns;
		if (read_word(pid, tids.items[i], "schedstat", "\n", word, sizeof(word)) == 0 &&
		    sscanf(word, "%*u %llu", &wait_ns) == 1)
			sum_ns += wait_ns;
	}
	return sum_ns;
}

/* The 8th number of the first line of /proc/stat. */
uint64_t procfs_steal_ns(void)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	unsigned long long ticks;
	if (file_read("/proc/stat", FILE_MAX, &text, NULL) < 0 ||
	    sscanf(buf_str(&text), "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &ticks) != 1)
		return 0;
	return ticks_to_ns(ticks);
}
