/* Threads of the shell: few, small, and with all signals blocked (those belong to the supervising
 * loop). */
#ifndef SYS_THREAD_H
#define SYS_THREAD_H

#include <pthread.h>

#include "base/util.h"

/* Starts a thread with a small stack and every signal blocked. 0 or -errno. */
int thread_start(pthread_t *ret_thread, void *(*main)(void *), void *arg);

/* Calls `main(arg)` in as many threads as there are CPUs, this one among them, and waits for all.
 * With the usual stack. */
void thread_all(void *(*main)(void *), void *arg);

/* A condition that waits on the monotonic clock. */
void thread_cond_init(pthread_cond_t *cond);

/* False when the deadline has passed. May wake spuriously. */
bool thread_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline_ns);

/* Calls `work(arg)` in a new thread and waits for it until the deadline. True: it is done, and the
 * caller owns `arg` again. False: it continues alone and ends with `abandon(arg)`. If no thread can
 * be started, calls it here. */
bool thread_call_until(void (*work)(void *), void *arg, void (*abandon)(void *),
		       uint64_t deadline_ns);

#endif
