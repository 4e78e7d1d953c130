/* Starts one program the fast way (the child borrows our memory until it executes), in its own
 * session (but see `group_only`), with a parent-death signal, default signal actions (but see
 * `ignores_usr`) and nothing blocked.
 *
 * For a single-threaded process whose descriptors above 2 are all CLOEXEC, whose signal actions are
 * the default or a handler (none ignored), and which has /dev/null as 0, 1 and 2. */
#ifndef SYS_SPAWN_H
#define SYS_SPAWN_H

#include <sched.h>

#include "base/err.h"

enum spawn_stdio {
	SPAWN_NULL = -1,    /* /dev/null */
	SPAWN_INHERIT = -2, /* the agent's descriptor when it made the warden (warden.h) */
};

#define SPAWN_EXTRA 3 /* the number that `extra_fd` has in the program */

struct spawn_spec {
	const char *path; /* executed as given: no search in PATH */
	char *const *argv;
	char *const *envp;
	const char *cwd;		/* NULL: the parent's */
	int stdio[3];			/* descriptors, or enum spawn_stdio */
	int extra_fd;			/* the program has it as SPAWN_EXTRA; 0: none */
	const cpu_set_t *cpus;		/* NULL: the parent's */
	size_t cpus_size;		/* bytes */
	int mem_mode;			/* MPOL_* of <linux/mempolicy.h>; 0: the parent's */
	const unsigned long *mem_nodes; /* bit mask for mem_mode */
	size_t mem_nodes_size;		/* bytes */
	uint64_t nofile_soft;		/* soft limit of open files; 0: the parent's */
	int nice;			/* added to the parent's */
	/* may trace it, with its descendants, where Yama asks for that; 0: none */
	pid_t tracer;
	bool ignores_usr; /* begins with SIGUSR1 and SIGUSR2 ignored */
	/* leads a process group in the parent's session: cheaper, because a session also has a
	 * scheduling group of its own */
	bool group_only;
	bool wants_pidfd;
	int group_fd;  /* directory of a cgroup that it must join; 0: none */
	int cgroup_fd; /* directory of a cgroup v2 to be born in, if possible; 0: none */
};

/* The step that failed. */
enum spawn_step {
	SPAWN_OK,
	SPAWN_REQUEST, /* it failed before any system call */
	SPAWN_CLONE,
	SPAWN_PARENT,
	SPAWN_SESSION,
	SPAWN_STDIO,
	SPAWN_GROUP,
	SPAWN_CWD,
	SPAWN_CPUS,
	SPAWN_MEMORY,
	SPAWN_LIMIT,
	SPAWN_NICE,
	SPAWN_EXEC,
	SPAWN_STEP_COUNT,
};

/* "execute", "change to the directory": fits "cannot %s %s: %s". */
const char *spawn_step_name(enum spawn_step step);

struct spawned {
	pid_t pid;
	int pidfd;	  /* with `wants_pidfd`, which the caller closes; otherwise -1 */
	uint64_t exec_ns; /* monotonic: pinned and ready, right before execve() */
};

/* Returns after the program was executed (or the child is gone): 0; else -errno and the step that
 * failed. stdio: SPAWN_NULL keeps the parent's; SPAWN_INHERIT must have been resolved. */
int spawn_start(const struct spawn_spec *spec, struct spawned *ret_spawned,
		enum spawn_step *ret_step);

#endif
