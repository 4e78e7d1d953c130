#include "watch/stack_kernel.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/procfs.h"
#include "core/stacks/access.h"

#define THREADS_MAX 64
#define WORD_MAX 96
#define YAMA "/proc/sys/kernel/yama/ptrace_scope"

/* Those in which programs wait. The numbers differ between machines, and not every machine has all
 * of them. */
static const struct {
	long number;
	const char *name;
} calls[] = {
	{ SYS_read, "read" },
	{ SYS_write, "write" },
	{ SYS_readv, "readv" },
	{ SYS_writev, "writev" },
	{ SYS_pread64, "pread64" },
	{ SYS_pwrite64, "pwrite64" },
	{ SYS_openat, "openat" },
	{ SYS_close, "close" },
	{ SYS_fsync, "fsync" },
	{ SYS_fdatasync, "fdatasync" },
	{ SYS_newfstatat, "newfstatat" },
	{ SYS_statx, "statx" },
	{ SYS_flock, "flock" },
	{ SYS_fcntl, "fcntl" },
	{ SYS_ioctl, "ioctl" },
	{ SYS_futex, "futex" },
	{ SYS_nanosleep, "nanosleep" },
	{ SYS_clock_nanosleep, "clock_nanosleep" },
	{ SYS_ppoll, "ppoll" },
	{ SYS_pselect6, "pselect6" },
	{ SYS_epoll_pwait, "epoll_pwait" },
	{ SYS_recvfrom, "recvfrom" },
	{ SYS_recvmsg, "recvmsg" },
	{ SYS_sendto, "sendto" },
	{ SYS_sendmsg, "sendmsg" },
	{ SYS_accept, "accept" },
	{ SYS_accept4, "accept4" },
	{ SYS_connect, "connect" },
	{ SYS_wait4, "wait4" },
	{ SYS_waitid, "waitid" },
	{ SYS_restart_syscall, "restart_syscall" },
	{ SYS_rt_sigsuspend, "rt_sigsuspend" },
	{ SYS_rt_sigtimedwait, "rt_sigtimedwait" },
	{ SYS_munmap, "munmap" },
	{ SYS_mmap, "mmap" },
#ifdef SYS_poll
	{ SYS_poll, "poll" },
	{ SYS_select, "select" },
	{ SYS_pause, "pause" },
	{ SYS_epoll_wait, "epoll_wait" },
#endif
};

static void name_call(long number, char text[WORD_MAX])
{
	snprintf(text, WORD_MAX, "%ld", number);
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		if (calls[i].number == number)
			snprintf(text, WORD_MAX, "%s", calls[i].name);
}

static void add_call(struct stack_thread *thread, long number)
{
	char text[WORD_MAX];
	name_call(number, text);
	stack_add_frame(thread, FRAME_KERNEL, bytes_str(text), bytes_str("system call"), 0, true);
}

static const char *state_name(char state)
{
	switch (state) {
	case 'R':
		return "running";
	case 'S':
		return "sleeping";
	case 'D':
		return "waiting where no signal reaches it";
	case 'T':
	case 't':
		return "stopped";
	case 'Z':
		return "ended";
	default:
		return "";
	}
}

static void read_thread(pid_t pid, pid_t tid, struct stack_process *process)
{
	struct proc_stat info;
	char wchan[WORD_MAX];
	long number;
	if (procfs_thread_stat(pid, tid, &info) < 0)
		return;
	struct stack_thread *thread = stack_add_thread(process, bytes_str(info.comm), tid);
	if (!thread)
		return;
	thread->main = tid == pid;
	procfs_wchan(pid, tid, wchan, sizeof(wchan));
	if (wchan[0])
		stack_add_frame(thread, FRAME_KERNEL, bytes_str(wchan), bytes_str("kernel"), 0,
				false);
	if (procfs_syscall(pid, tid, &number) == 0)
		add_call(thread, number);
	char state[] = { 's', 't', 'a', 't', 'e', ' ', info.state, '\0' };
	stack_add_frame(thread, FRAME_KERNEL, bytes_str(state_name(info.state)), bytes_str(state),
			0, false);
}

void stack_kernel_read(pid_t pid, struct stack_process *process)
{
	AUTO(pids_done) struct pids threads = PIDS_INIT;
	procfs_threads(pid, &threads);
	for (size_t i = 0; i < threads.count && i < THREADS_MAX; i++)
		read_thread(pid, threads.items[i], process);
}

static void say_call(pid_t pid, char *ret_text, size_t size)
{
	char name[WORD_MAX];
	long number;
	int r = procfs_syscall(pid, pid, &number);
	if (r == 0 && number == SYS_futex) {
		snprintf(ret_text, size, "waiting for a lock");
	} else if (r == 0) {
		name_call(number, name);
		snprintf(ret_text, size, "in the system call %s", name);
	} else if (r == -ENOENT) {
		snprintf(ret_text, size, "running");
	}
}

void stack_kernel_state(pid_t pid, char *ret_text, size_t size, bool *ret_odd)
{
	struct proc_stat stat;
	ret_text[0] = '\0';
	*ret_odd = false;
	if (procfs_stat(pid, &stat) < 0)
		return;
	const char *odd = stat.state == 'T'   ? "stopped by a signal"
			  : stat.state == 't' ? "held by a debugger"
			  : stat.state == 'D' ? "in uninterruptible sleep"
					      : NULL;
	*ret_odd = odd;
	if (odd)
		snprintf(ret_text, size, "%s", odd);
	else
		say_call(pid, ret_text, size);
}

static int yama_scope(void)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	return file_read(YAMA, WORD_MAX, &text, NULL) < 0 ? -1 : buf_str(&text)[0] - '0';
}

/* Reading the memory of a process needs the same right as tracing it, and stops nothing. */
static bool may_trace(pid_t pid)
{
	char byte;
	struct iovec here = { .iov_base = &byte, .iov_len = 1 },
		     there = { .iov_base = NULL, .iov_len = 1 };
	return process_vm_readv(pid, &here, 1, &there, 1, 0) >= 0 || errno != EPERM;
}

const char *stack_kernel_refusal(pid_t pid)
{
	char path[WORD_MAX];
	struct stat owner;
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	struct stack_access access = {
		.denied = !may_trace(pid),
		.other_user = stat(path, &owner) == 0 && geteuid() != 0 && owner.st_uid != 0 &&
			      owner.st_uid != geteuid(),
		.yama_scope = yama_scope(),
	};
	return stack_access_remedy(&access);
}

bool stack_kernel_is_strict(void)
{
	return geteuid() != 0 && yama_scope() > 0;
}
