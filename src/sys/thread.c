#include "sys/thread.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "base/clock.h"

#define STACK_SIZE ((size_t)128 * 1024)

int thread_start(pthread_t *ret_thread, void *(*main)(void *), void *arg)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);

	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_t thread;
	int r = pthread_create(&thread, &attr, main, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);

	pthread_attr_destroy(&attr);
	if (r == 0)
		*ret_thread = thread;
	return -r;
}

void thread_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

bool thread_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline_ns)
{
	if (deadline_ns == NS_NEVER)
		return pthread_cond_wait(cond, lock) == 0;
	struct timespec until = { .tv_sec = (time_t)(deadline_ns / NS_PER_S),
				  .tv_nsec = (long)(deadline_ns % NS_PER_S) };
	return pthread_cond_timedwait(cond, lock, &until) != ETIMEDOUT;
}
