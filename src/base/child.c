#include "base/child.h"

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pids noted = PIDS_INIT;

const struct pids *child_lock(void)
{
	pthread_mutex_lock(&lock);
	return &noted;
}

void child_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

pid_t child_fork(void)
{
	child_lock();
	pid_t pid = fork();
	int error = errno;
	if (pid == 0)
		noted.count = 0;
	else if (pid > 0)
		pids_add(&noted, pid);
	child_unlock();
	errno = error;
	return pid;
}

int child_try_wait(pid_t pid, int *ret_status)
{
	child_lock();
	int r = waitpid(pid, ret_status, WNOHANG) == pid;
	if (r)
		pids_remove(&noted, pid);
	child_unlock();
	return r;
}

int child_wait(pid_t pid)
{
	/* Not under the lock: it may take long. The pid stays noted until it is reaped. */
	siginfo_t info;
	int status;
	while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) < 0)
		if (errno != EINTR)
			return -ECHILD;
	return child_try_wait(pid, &status) ? status : -ECHILD;
}
