#include "sys/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

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

void thread_all(void *(*main)(void *), void *arg)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	size_t others = cpus > 1 ? (size_t)cpus - 1 : 0, started = 0;
	AUTO_FREE pthread_t *threads = NEW_ARRAY(pthread_t, others + 1);
	while (started < others && pthread_create(&threads[started], NULL, main, arg) == 0)
		started++;
	main(arg);
	while (started > 0)
		pthread_join(threads[--started], NULL);
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

struct call {
	void (*work)(void *);
	void (*abandon)(void *);
	void *arg;
	pthread_mutex_t lock;
	pthread_cond_t over;
	bool done;	/* the work is done */
	bool abandoned; /* the caller does not wait any more */
};

static void call_free(struct call *call)
{
	pthread_cond_destroy(&call->over);
	pthread_mutex_destroy(&call->lock);
	free(call);
}

static void *call_main(void *arg)
{
	struct call *call = arg;
	call->work(call->arg);
	pthread_mutex_lock(&call->lock);
	call->done = true;
	bool abandoned = call->abandoned;
	pthread_cond_signal(&call->over);
	pthread_mutex_unlock(&call->lock);
	if (abandoned) {
		call->abandon(call->arg);
		call_free(call);
	}
	return NULL;
}

bool thread_call_until(void (*work)(void *), void *arg, void (*abandon)(void *),
		       uint64_t deadline_ns)
{
	struct call *call = NEW(struct call);
	*call = (struct call){ .work = work, .abandon = abandon, .arg = arg };
	pthread_mutex_init(&call->lock, NULL);
	thread_cond_init(&call->over);
	pthread_t thread;
	if (thread_start(&thread, call_main, call) < 0) {
		call_free(call);
		work(arg);
		return true;
	}
	pthread_mutex_lock(&call->lock);
	while (!call->done && thread_cond_wait_until(&call->over, &call->lock, deadline_ns))
		;
	bool done = call->done;
	call->abandoned = !done;
	pthread_mutex_unlock(&call->lock);
	if (!done) {
		pthread_detach(thread);
		return false;
	}
	pthread_join(thread, NULL);
	call_free(call);
	return true;
}
