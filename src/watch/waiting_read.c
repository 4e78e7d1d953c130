#include "watch/waiting_read.h"

#include <sys/syscall.h>

#include "base/clock.h"
#include "base/procfs.h"

#define CPU_PART 4 /* this part of the time since the last look, or more, is work */

/* Sleeps are no waits for others, nor is the reading of files. */
static bool waits_for_others(long call)
{
	switch (call) {
	case SYS_futex:
	case SYS_ppoll:
	case SYS_pselect6:
	case SYS_epoll_pwait:
	case SYS_recvfrom:
	case SYS_recvmsg:
#ifdef SYS_poll
	case SYS_poll:
	case SYS_select:
	case SYS_epoll_wait:
#endif
		return true;
	default:
		return false;
	}
}

bool waiting_read(pid_t pid, struct waiting *waiting)
{
	struct waiting now = { clock_now_ns(), procfs_cpu_ns(pid) };
	struct waiting before = *waiting;
	long call;
	bool waits = procfs_syscall(pid, pid, &call) == 0 && waits_for_others(call);
	*waiting = now;
	return waits && before.at_ns &&
	       (now.cpu_ns - before.cpu_ns) * CPU_PART < now.at_ns - before.at_ns;
}
