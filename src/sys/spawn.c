#include "sys/spawn.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_STACK_SIZE ((size_t)65536)

static const char *const step_names[] = {
	[SPAWN_OK] = "start",
	[SPAWN_REQUEST] = "start",
	[SPAWN_CLONE] = "make a process for",
	[SPAWN_PARENT] = "start",
	[SPAWN_SESSION] = "make a session for",
	[SPAWN_STDIO] = "connect input and output of",
	[SPAWN_CWD] = "change to the working directory of",
	[SPAWN_CPUS] = "bind to its CPUs",
	[SPAWN_MEMORY] = "bind to its memory nodes",
	[SPAWN_LIMIT] = "set the limit of open files of",
	[SPAWN_EXEC] = "execute",
};
static_assert(ARRAY_LEN(step_names) == SPAWN_STEP_COUNT, "every step needs a name");

const char *spawn_step_name(enum spawn_step step)
{
	return step < SPAWN_STEP_COUNT ? step_names[step] : step_names[SPAWN_OK];
}

/* Lives in the parent's frame; the child writes the outcome into it (same memory). */
struct plan {
	const struct spawn_spec *spec;
	pid_t parent;
	enum spawn_step step;
	int error;
};

static int set_limit(uint64_t soft)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return -1;
	limit.rlim_cur = MIN((rlim_t)soft, limit.rlim_max);
	return setrlimit(RLIMIT_NOFILE, &limit);
}

static int set_memory(const struct spawn_spec *spec)
{
	/* The kernel reads one bit less than it is told. */
	return (int)syscall(SYS_set_mempolicy, spec->mem_mode, spec->mem_nodes,
			    spec->mem_nodes_size * 8 + 1);
}

static int set_stdio(const struct spawn_spec *spec)
{
	for (int i = 0; i < 3; i++)
		if (spec->stdio[i] >= 0 && dup2(spec->stdio[i], i) < 0)
			return -1;
	return 0;
}

/* Everything up to and including the exec; comes back only on failure, with the step that failed. */
static enum spawn_step become(const struct plan *plan)
{
	const struct spawn_spec *spec = plan->spec;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return SPAWN_PARENT;
	if (getppid() != plan->parent) /* it died before the line above */
		return SPAWN_PARENT;
	if (setsid() < 0)
		return SPAWN_SESSION;
	if (set_stdio(spec) < 0)
		return SPAWN_STDIO;
	if (spec->cwd && chdir(spec->cwd) < 0)
		return SPAWN_CWD;
	if (spec->cpus && sched_setaffinity(0, spec->cpus_size, spec->cpus) < 0)
		return SPAWN_CPUS;
	if (spec->mem_mode && set_memory(spec) < 0)
		return SPAWN_MEMORY;
	if (spec->nofile_soft && set_limit(spec->nofile_soft) < 0)
		return SPAWN_LIMIT;

	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execve(spec->path, spec->argv, spec->envp);
	return SPAWN_EXEC;
}

static int child_main(void *arg)
{
	struct plan *plan = arg;
	enum spawn_step step = become(plan);
	plan->error = errno;
	plan->step = step;
	_exit(127);
}

static void *child_stack(void)
{
	static void *stack;
	if (!stack) {
		void *mem = mmap(NULL, CHILD_STACK_SIZE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
		stack = mem == MAP_FAILED ? NULL : mem;
	}
	return stack ? (char *)stack + CHILD_STACK_SIZE : NULL;
}

int spawn_start(const struct spawn_spec *spec, pid_t *ret_pid, int *ret_pidfd, enum spawn_step *ret_step)
{
	*ret_step = SPAWN_CLONE;
	void *stack = child_stack();
	if (!stack)
		return -ENOMEM;

	struct plan plan = { .spec = spec, .parent = getpid() };
	int pidfd = -1;
	int flags = CLONE_VM | CLONE_VFORK | SIGCHLD | (ret_pidfd ? CLONE_PIDFD : 0);
	pid_t pid = clone(child_main, stack, flags, &plan, &pidfd);
	if (pid < 0)
		return -errno;
	if (plan.step != SPAWN_OK) {
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		if (pidfd >= 0)
			close(pidfd);
		*ret_step = plan.step;
		return -plan.error;
	}
	*ret_step = SPAWN_OK;
	*ret_pid = pid;
	if (ret_pidfd)
		*ret_pidfd = pidfd;
	return 0;
}
