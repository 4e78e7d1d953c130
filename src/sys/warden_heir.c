/* The heir: the parent of the warden. It does nothing while one of agent and warden lives.
 *
 *	agent  --  heir  --  warden  --  workers
 *
 * Agent and warden each see the end of the other, and kill what is left. When both are killed in
 * the same moment, the workers' main processes die by their parent-death signal, and what those
 *have started becomes the heir's, because it is a subreaper: it kills that. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/procfs.h"
#include "sys/proctree.h"
#include "sys/start/process_title.h"
#include "sys/warden_proto.h"

#define WARDEN_MAX_MS 2000 /* that the warden may take to kill everything */
#define DYING_MAX_MS 1000
#define SWEEP_PERIOD_MS 2	     /* no event says that a fork loop has ended */
#define SWEEP_MAX_NS (10 * NS_PER_S) /* what is left then cannot be killed */

/* Waits for the end of the warden; its wait status. When the agent is gone, the warden has work to
 * do. One that does not get it done is in the way: it may be stopped, or hang in the start of a
 * program on a file system that does not answer. */
static int outlive(pid_t warden, int agent_fd)
{
	AUTO(fd_close) int warden_fd = pidfd_open(warden, 0);
	struct pollfd ends[] = { { .fd = warden_fd, .events = POLLIN },
				 { .fd = agent_fd, .events = POLLIN } };
	int status;
	while (waitpid(warden, &status, WNOHANG) == 0) {
		bool agent_gone = ends[1].fd < 0;
		int ready = poll(ends, ARRAY_LEN(ends), agent_gone ? WARDEN_MAX_MS : -1);
		if (agent_gone && ready == 0)
			kill(warden, SIGKILL);
		if (agent_gone || !ends[1].revents)
			continue;
		kill(warden, SIGCONT);
		ends[1].fd = -1;
	}
	return status;
}

/* The warden was killed: what it had is ours now, or its cgroup's. The agent, if it lives, waits
 * for us. Returns whether nothing is left. */
static bool kill_the_rest(const char *leaf)
{
	uint64_t deadline_ns = clock_now_ns() + SWEEP_MAX_NS;
	size_t left;
	while ((left = proctree_sweep(NULL)) > 0 && clock_now_ns() < deadline_ns)
		poll(NULL, 0, SWEEP_PERIOD_MS);
	warden_clear_cgroup(leaf);
	return left == 0;
}

/* The agent lets go of us when it is done, too. One that dies has no memory left when it does, and
 * its files are closed when it is dead. */
static bool has_died(pid_t agent, int agent_fd)
{
	struct pollfd end = { .fd = agent_fd, .events = POLLIN };
	struct proc_stat stat;
	bool dies = procfs_stat(agent, &stat) < 0 || stat.rss_bytes == 0;
	return poll(&end, 1, dies ? DYING_MAX_MS : 0) > 0;
}

_Noreturn void heir_main(const struct warden_opts *opts, const char *leaf, int link, pid_t agent)
{
	int agent_fd = pidfd_open(agent, 0);
	if (getppid() != agent) /* it died before the line above */
		_exit(0);
	/* With process 1 the kernel kills all the others. And without a second process there is a
	 * warden all the same. */
	if (agent == 1)
		warden_main(opts, leaf, link, agent_fd, agent);
	process_title_take("heir"); /* before there is anything to inherit */
	pid_t warden = fork();
	if (warden <= 0)
		warden_main(opts, leaf, link, agent_fd, agent);

	agent_fd = warden_close_all_but(agent_fd);
	int status = outlive(warden, agent_fd);
	bool clean = (WIFEXITED(status) && WEXITSTATUS(status) == 0) || kill_the_rest(leaf);
	if (opts->after_agent && has_died(agent, agent_fd))
		opts->after_agent();
	_exit(clean ? 0 : 1);
}
