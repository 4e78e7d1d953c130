#include "sys/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "core/worker/exit_code.h"

#define CHILD_STACK_SIZE ((size_t)65536)

static const char *const step_names[] = {
	[SPAWN_OK] = "start",
	[SPAWN_REQUEST] = "start",
	[SPAWN_CLONE] = "make a process for",
	[SPAWN_PARENT] = "start",
	[SPAWN_SESSION] = "make a session for",
	[SPAWN_STDIO] = "connect input and output of",
	[SPAWN_GROUP] = "limit the memory of",
	[SPAWN_CWD] = "change to the working directory of",
	[SPAWN_CPUS] = "bind to its CPUs",
	[SPAWN_MEMORY] = "bind to its memory nodes",
	[SPAWN_LIMIT] = "set the limit of open files of",
	[SPAWN_NICE] = "set the priority of",
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
	bool join_cgroup; /* it must join after it was born elsewhere */
	uint64_t exec_ns; /* the child's last act before execve() */
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
	/* The kernel reads one bit less than the length. */
	return (int)syscall(SYS_set_mempolicy, spec->mem_mode, spec->mem_nodes,
			    spec->mem_nodes_size * 8 + 1);
}

static int set_stdio(const struct spawn_spec *spec)
{
	for (int i = 0; i < 3; i++)
		if (spec->stdio[i] >= 0 && dup2(spec->stdio[i], i) < 0)
			return -1;
	if (spec->extra_fd == SPAWN_EXTRA)
		return fcntl(SPAWN_EXTRA, F_SETFD, 0);
	return spec->extra_fd > 0 && dup2(spec->extra_fd, SPAWN_EXTRA) < 0 ? -1 : 0;
}

static bool join_cgroup(int cgroup_fd)
{
	int fd = openat(cgroup_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, "0", 1) == 1;
}

/* Everything up to and including the exec; returns only on failure, with the step that failed. */
static enum spawn_step become(struct plan *plan)
{
	const struct spawn_spec *spec = plan->spec;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return SPAWN_PARENT;
	if (getppid() != plan->parent) /* the parent died before the line above */
		return SPAWN_PARENT;
	if ((spec->group_only ? setpgid(0, 0) : setsid()) < 0)
		return SPAWN_SESSION;
	/* Yama lets only ancestors attach unless this is set, and keeps it across exec. Kernels
	 * without Yama return an error. */
	if (spec->tracer > 0)
		prctl(PR_SET_PTRACER, (unsigned long)spec->tracer);
	if (plan->join_cgroup)
		join_cgroup(spec->cgroup_fd); /* helps but is not required */
	if (spec->group_fd > 0 && !join_cgroup(spec->group_fd))
		return SPAWN_GROUP;
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
	if (spec->nice &&
	    setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + spec->nice) < 0)
		return SPAWN_NICE;

	if (spec->ignores_usr) {
		signal(SIGUSR1, SIG_IGN);
		signal(SIGUSR2, SIG_IGN);
	}
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	plan->exec_ns = clock_now_ns();
	execve(spec->path, spec->argv, spec->envp);
	return SPAWN_EXEC;
}

static int child_main(void *arg)
{
	struct plan *plan = arg;
	enum spawn_step step = become(plan);
	plan->error = errno;
	plan->step = step;
	/* the caller ends the process with it; _exit() would upset the address sanitizer here */
	return EXIT_CODE_NOT_FOUND;
}

static void *child_stack(void)
{
	static void *stack;
	if (!stack) {
		void *mem = mmap(NULL, CHILD_STACK_SIZE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
		stack = mem == MAP_FAILED ? NULL : mem;
	}
	return stack;
}

/* clone3() for a child with its own stack: the C library has no function for that. The child cannot
 * return on the new stack, so it calls child_main() directly, then exit(). */
static long clone3_child(struct clone_args *args, struct plan *plan)
{
#if defined(__x86_64__)
	long result;
	register void *child_arg __asm__("r12") = plan;
	register int (*child_fn)(void *) __asm__("r13") = child_main;
	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "mov %[arg], %%rdi\n\t"
			 "call *%[fn]\n\t"
			 "mov %%eax, %%edi\n\t"
			 "mov %[exit], %%eax\n\t"
			 "syscall\n"
			 "1:"
			 : "=a"(result)
			 : [exit] "i"(SYS_exit), "a"(SYS_clone3), "D"(args),
			   "S"(sizeof(*args)), [arg] "r"(child_arg), [fn] "r"(child_fn)
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x0 __asm__("x0") = (long)args;
	register long x1 __asm__("x1") = sizeof(*args);
	register long x8 __asm__("x8") = SYS_clone3;
	register void *child_arg __asm__("x20") = plan;
	register int (*child_fn)(void *) __asm__("x21") = child_main;
	__asm__ volatile("svc #0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x29, xzr\n\t"
			 "mov x0, %[arg]\n\t"
			 "blr %[fn]\n\t"
			 "mov x8, %[exit]\n\t"
			 "svc #0\n"
			 "1:"
			 : "+r"(x0)
			 : [exit] "i"(SYS_exit), "r"(x1),
			   "r"(x8), [arg] "r"(child_arg), [fn] "r"(child_fn)
			 : "memory", "x30");
	return x0;
#else
	(void)args, (void)plan;
	return -ENOSYS;
#endif
}

/* Makes a child that is born in its cgroup; -errno if that is impossible. */
static long clone_into_cgroup(struct plan *plan, void *stack, int *pidfd)
{
	struct clone_args args = {
		.flags = CLONE_VM | CLONE_VFORK | CLONE_INTO_CGROUP | (pidfd ? CLONE_PIDFD : 0),
		.exit_signal = SIGCHLD,
		.stack = (uintptr_t)stack,
		.stack_size = CHILD_STACK_SIZE,
		.pidfd = (uintptr_t)pidfd,
		.cgroup = (uint64_t)plan->spec->cgroup_fd,
	};
	return clone3_child(&args, plan);
}

static long clone_plain(struct plan *plan, char *stack, int *pidfd)
{
	int flags = CLONE_VM | CLONE_VFORK | SIGCHLD | (pidfd ? CLONE_PIDFD : 0);
	int pid = clone(child_main, stack + CHILD_STACK_SIZE, flags, plan, pidfd);
	return pid < 0 ? -errno : pid;
}

static long make_child(struct plan *plan, int *pidfd)
{
	void *stack = child_stack();
	if (!stack)
		return -ENOMEM;
	if (plan->spec->cgroup_fd > 0) {
		long pid = clone_into_cgroup(plan, stack, pidfd);
		if (pid >= 0 || pid == -EAGAIN || pid == -ENOMEM)
			return pid;
		plan->join_cgroup = true; /* an older kernel, or a sandbox without clone3 */
	}
	return clone_plain(plan, stack, pidfd);
}

int spawn_start(const struct spawn_spec *spec, struct spawned *ret_spawned,
		enum spawn_step *ret_step)
{
	struct plan plan = { .spec = spec, .parent = getpid() };
	int pidfd = -1;
	*ret_step = SPAWN_CLONE;
	long pid = make_child(&plan, spec->wants_pidfd ? &pidfd : NULL);
	if (pid < 0)
		return (int)pid;
	if (plan.step != SPAWN_OK) {
		while (waitpid((pid_t)pid, NULL, 0) < 0 && errno == EINTR)
			;
		if (pidfd >= 0)
			close(pidfd);
		*ret_step = plan.step;
		return -plan.error;
	}
	*ret_step = SPAWN_OK;
	*ret_spawned = (struct spawned){ (pid_t)pid, pidfd, plan.exec_ns };
	return 0;
}
