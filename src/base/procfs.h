/* What /proc tells about processes and the system. The only reader of it.
 *
 * Everything here is a snapshot of something that moves on; a pid may belong to another process a
 * moment later. To act on an answer, hold a pidfd from before the question and check afterwards
 * that the process is still alive: then the pid was not reused in between.
 */
#ifndef BASE_PROCFS_H
#define BASE_PROCFS_H

#include "base/pids.h"

struct proc_stat {
	char comm[32];
	char state; /* 'R', 'S', 'D', 'Z', … */
	pid_t ppid;
	pid_t session;
	uint64_t cpu_ns;	/* user and system, in steps of the kernel's tick */
	uint64_t reaped_cpu_ns; /* of the children it has waited for */
	uint64_t rss_bytes;
	uint64_t major_faults; /* it waited for the disk, for memory */
	unsigned threads;
	unsigned long arg_start, arg_end; /* where its command line lies; 0: not told */
};

/* 0, -ESRCH if there is no such process (or thread of it), or another -errno. */
int procfs_stat(pid_t pid, struct proc_stat *ret_stat);
int procfs_thread_stat(pid_t pid, pid_t tid, struct proc_stat *ret_stat);

/* Parses the content of /proc/PID/stat; -EBADMSG. The name in it may hold anything, ')' too. */
int procfs_parse_stat(const char *text, struct proc_stat *ret_stat);

/* Appends all processes; the threads of a process; its children (those of all its threads), zombies
 * included. -ESRCH when the process is gone, another -errno when /proc cannot be read. */
int procfs_processes(struct pids *ret_pids);
int procfs_threads(pid_t pid, struct pids *ret_tids);
int procfs_children(pid_t pid, struct pids *ret_children);

/* CPU time of a process, exact and in one system call; 0 if it cannot be had. */
uint64_t procfs_cpu_ns(pid_t pid);

/* For how long its threads (those that live) were ready to run and waited for a CPU; 0 if the
 * kernel does not tell. */
uint64_t procfs_wait_ns(pid_t pid);

/* For how long the hypervisor gave this host's CPUs to others, all CPUs added up. */
uint64_t procfs_steal_ns(void);

/* Bytes that it and the children it has waited for have read and written, through pipes and sockets
 * as well where that is a read or write; 0 if the kernel does not tell. */
uint64_t procfs_io_bytes(pid_t pid);

/* How often its main thread has had to wait, and who traces it (0: nobody); 0 for what the kernel
 * does not tell. */
void procfs_waits(pid_t pid, uint64_t *ret_times, pid_t *ret_tracer);

/* Does the process catch `sig`? False if it is gone. */
bool procfs_catches(pid_t pid, int sig);

/* The first word of its command line, which daemons may replace by a title; 0 or -errno. */
int procfs_title(pid_t pid, char *ret_title, size_t size);

/* The path of its program file; "": not told. */
void procfs_exe(pid_t pid, char *ret_path, size_t size);

/* The kernel function that a thread waits in; "": none, or not told. */
void procfs_wchan(pid_t pid, pid_t tid, char *ret_name, size_t size);

/* The number of the system call that a thread is in; -ENOENT: none, it runs; another -errno: the
 * kernel does not tell. */
int procfs_syscall(pid_t pid, pid_t tid, long *ret_number);

/* A counter of /proc/vmstat, such as "oom_kill"; 0 if there is none of that name. */
uint64_t procfs_vmstat(const char *name);

/* Bytes: of this host, and that programs can get without swapping. */
uint64_t procfs_memory_total(void);
uint64_t procfs_memory_available(void);

/* Threads that run or want to, on the whole host, the calling one included. */
uint64_t procfs_running(void);

/* Nanoseconds for which each CPU has run tasks, into ret_ns[cpu]. False if the kernel does not
 * tell. */
bool procfs_cpu_times(uint64_t *ret_ns, size_t count);

#endif
