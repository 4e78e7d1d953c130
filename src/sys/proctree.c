#include "sys/proctree.h"

#include <errno.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/fd.h"
#include "base/procfs.h"

#define DEPTH_MAX 64 /* of the walk; deeper processes rise when their ancestors die */

struct walk {
	int sig;
	size_t signalled;
	size_t living; /* met below the first process, and not zombies */
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

static void signal_tree(struct walk *walk, int pidfd, pid_t pid, int depth);

/* Signals what is below `pid`. The caller guarantees that `pidfd` is `pid` and our descendant. The
 * race:
 *
 *	children(P) says C;  C dies, P reaps it;  another process gets the number C;  we open C
 *
 * So with a pidfd of C in hand we ask for C's parent. If that is P, and both P and C are unreaped
 * after the answer, then their numbers meant P and C when it was given. */
static void signal_below(struct walk *walk, int pidfd, pid_t pid, int depth)
{
	AUTO(pids_done) struct pids children = PIDS_INIT;
	if (depth < DEPTH_MAX)
		procfs_children(pid, &children);
	for (size_t i = 0; i < children.count; i++) {
		pid_t child = children.items[i];
		AUTO(fd_close) int child_fd = pidfd_open(child, 0);
		if (child_fd < 0)
			continue;
		struct proc_stat stat;
		if (procfs_stat(child, &stat) < 0 || stat.ppid != pid || !alive(pidfd) ||
		    !alive(child_fd))
			continue;
		walk->living += stat.state != 'Z';
		signal_tree(walk, child_fd, child, depth + 1);
	}
}

static void signal_tree(struct walk *walk, int pidfd, pid_t pid, int depth)
{
	signal_below(walk, pidfd, pid, depth);
	send_one(walk, pidfd, pid);
}

size_t proctree_signal(int sig, const struct pids *skip, proctree_failed_fn *failed, void *arg)
{
	struct walk walk = { .sig = sig, .failed = failed, .arg = arg };
	AUTO(pids_done) struct pids children = PIDS_INIT;
	siginfo_t info;
	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
		return 0; /* no child, no descendant: the usual end, without a look into /proc */
	procfs_children(getpid(), &children);
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

/* What is below a process when it dies becomes `child`'s own before the process is a zombie. So
 * nothing is alive if all were zombies, and no others have come in the meantime. */
size_t proctree_signal_below(pid_t child, int sig)
{
	struct walk walk = { .sig = sig };
	AUTO(fd_close) int child_fd = pidfd_open(child, 0);
	if (child_fd < 0)
		return 0;
	AUTO(pids_done) struct pids before = PIDS_INIT;
	AUTO(pids_done) struct pids after = PIDS_INIT;
	procfs_children(child, &before);
	signal_below(&walk, child_fd, child, 1);
	procfs_children(child, &after);
	for (size_t i = 0; i < after.count; i++)
		walk.living += !pids_has(&before, after.items[i]);
	return walk.living;
}

/* A process that we may not signal: what we can do for it is done. */
static bool is_stranger(pid_t child)
{
	return kill(child, 0) < 0 && errno == EPERM;
}

size_t proctree_sweep(const struct pids *heirs)
{
	const struct pids *own = child_lock();
	size_t found = 0;
	for (size_t i = 0; heirs && i < heirs->count; i++)
		if (pids_has(own, heirs->items[i]))
			found += proctree_signal_below(heirs->items[i], SIGKILL);
	proctree_signal(SIGKILL, own, NULL, NULL);
	AUTO(pids_done) struct pids children = PIDS_INIT;
	procfs_children(getpid(), &children);
	for (size_t i = 0; i < children.count; i++) {
		if (pids_has(own, children.items[i]))
			continue;
		/* Counts even if it ends now: its children have just become ours. */
		found += !is_stranger(children.items[i]);
		waitpid(children.items[i], NULL, WNOHANG);
	}
	child_unlock();
	return found;
}

void proctree_reap_orphans(void)
{
	const struct pids *own = child_lock();
	siginfo_t dead = { 0 };
	while (waitid(P_ALL, 0, &dead, WEXITED | WNOHANG | WNOWAIT) == 0 && dead.si_pid &&
	       !pids_has(own, dead.si_pid)) {
		waitpid(dead.si_pid, NULL, WNOHANG);
		dead.si_pid = 0;
	}
	/* A dead child of our own, which its owner will reap, hides those behind it. */
	AUTO(pids_done) struct pids children = PIDS_INIT;
	if (dead.si_pid)
		procfs_children(getpid(), &children);
	for (size_t i = 0; i < children.count; i++)
		if (!pids_has(own, children.items[i]))
			waitpid(children.items[i], NULL, WNOHANG);
	child_unlock();
}
