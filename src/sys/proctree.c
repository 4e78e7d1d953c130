#include "sys/proctree.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#define PROC_FILE_MAX ((size_t)1 << 26)
#define DEPTH_MAX 64 /* of the walk; deeper processes rise when their ancestors die */

void pids_done(struct pids *pids)
{
	free(pids->items);
	*pids = PIDS_INIT;
}

void pids_add(struct pids *pids, pid_t pid)
{
	ARRAY_RESERVE(pids->items, pids->count, pids->cap);
	pids->items[pids->count++] = pid;
}

bool pids_has(const struct pids *pids, pid_t pid)
{
	for (size_t i = 0; pids && i < pids->count; i++)
		if (pids->items[i] == pid)
			return true;
	return false;
}

static pid_t to_pid(const char *text)
{
	int64_t value;
	return str_to_i64(text, &value) == 0 && value > 0 && value <= INT32_MAX ? (pid_t)value : -1;
}

struct proc_info proctree_info(pid_t pid)
{
	struct proc_info info = { .comm = "?", .state = '?', .ppid = -1 };
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	AUTO(buf_done) struct buf stat = BUF_INIT;
	if (file_read(path, PROC_FILE_MAX, &stat, NULL) < 0)
		return info;
	/* "PID (comm) S PPID ...": the name may hold blanks and parentheses itself. */
	const char *text = buf_str(&stat), *open = strchr(text, '('), *close = strrchr(text, ')');
	int ppid;
	if (!open || !close || sscanf(close + 1, " %c %d", &info.state, &ppid) != 2)
		return info;
	info.ppid = ppid;
	snprintf(info.comm, sizeof(info.comm), "%.*s", (int)(close - open - 1), open + 1);
	return info;
}

/* "123 124 125 " as /proc/PID/task/TID/children has it. */
static void parse_children(char *text, struct pids *out)
{
	char *rest = NULL;
	for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		pid_t pid = to_pid(word);
		if (pid > 0)
			pids_add(out, pid);
	}
}

/* For kernels without the children files. */
static int scan_children(pid_t parent, struct pids *out)
{
	DIR *dir = opendir("/proc");
	if (!dir)
		return -errno;
	for (const struct dirent *entry; (entry = readdir(dir));) {
		pid_t pid = to_pid(entry->d_name);
		if (pid > 0 && proctree_info(pid).ppid == parent)
			pids_add(out, pid);
	}
	closedir(dir);
	return 0;
}

int proctree_children(pid_t pid, struct pids *ret_children)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;

	bool supported = false;
	for (const struct dirent *entry; (entry = readdir(dir));) {
		pid_t tid = to_pid(entry->d_name);
		if (tid < 0)
			continue;
		AUTO(buf_done) struct buf text = BUF_INIT;
		snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)tid);
		if (file_read(path, PROC_FILE_MAX, &text, NULL) < 0)
			continue;
		supported = true;
		buf_append_char(&text, '\0');
		parse_children((char *)buf_data(&text), ret_children);
	}
	closedir(dir);
	return supported ? 0 : scan_children(pid, ret_children);
}

struct walk {
	int sig;
	size_t signalled;
	proctree_failed_fn *failed;
	void *arg;
};

static bool alive(int pidfd)
{
	return pidfd_send_signal(pidfd, 0, NULL, 0) == 0 || errno == EPERM;
}

static void send_one(struct walk *walk, int pidfd, pid_t pid)
{
	if (pidfd_send_signal(pidfd, walk->sig, NULL, 0) == 0)
		walk->signalled++;
	else if (errno != ESRCH && walk->failed)
		walk->failed(walk->arg, pid, errno);
}

/* Signals what is below `pid`, then `pid` itself. The caller guarantees that `pidfd` is `pid` and
 * our descendant. The race:
 *
 *	children(P) says C;  C dies, P reaps it;  another process gets the number C;  we open C
 *
 * So with a pidfd of C in hand we ask for C's parent. If that is P, and both P and C are unreaped
 * after the answer, then their numbers meant P and C when it was given. */
static void signal_tree(struct walk *walk, int pidfd, pid_t pid, int depth)
{
	AUTO(pids_done) struct pids children = PIDS_INIT;
	if (depth < DEPTH_MAX)
		proctree_children(pid, &children);
	for (size_t i = 0; i < children.count; i++) {
		pid_t child = children.items[i];
		AUTO(fd_close) int child_fd = pidfd_open(child, 0);
		if (child_fd < 0)
			continue;
		if (proctree_info(child).ppid == pid && alive(pidfd) && alive(child_fd))
			signal_tree(walk, child_fd, child, depth + 1);
	}
	send_one(walk, pidfd, pid);
}

size_t proctree_signal(int sig, const struct pids *skip, proctree_failed_fn *failed, void *arg)
{
	struct walk walk = { .sig = sig, .failed = failed, .arg = arg };
	AUTO(pids_done) struct pids children = PIDS_INIT;
	proctree_children(getpid(), &children);
	for (size_t i = 0; i < children.count; i++) {
		pid_t child = children.items[i];
		if (pids_has(skip, child))
			continue;
		AUTO(fd_close) int child_fd = pidfd_open(child, 0);
		if (child_fd >= 0)
			signal_tree(&walk, child_fd, child, 1);
	}
	return walk.signalled;
}

size_t proctree_sweep(const struct pids *keep)
{
	proctree_signal(SIGKILL, keep, NULL, NULL);
	AUTO(pids_done) struct pids children = PIDS_INIT;
	proctree_children(getpid(), &children);
	size_t found = 0;
	for (size_t i = 0; i < children.count; i++) {
		pid_t child = children.items[i];
		if (pids_has(keep, child))
			continue;
		/* Counts even if it ends now: its children have just become ours. */
		found++;
		waitpid(child, NULL, WNOHANG);
	}
	return found;
}
