/* Timers and heartbeat: one connection per process, made when it is first needed. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include <muster/muster.h>
#include "lib/last_error.h"
#include "watch/client.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int connection = -1;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static _Atomic uint64_t *_Atomic counter;

/* A child made by fork() is another process and connects again. It keeps the page that it shares
 * with its parent, because the heartbeat belongs to the whole worker. It makes a new lock: the
 * thread that may have held it does not exist in the child. */
static void after_fork(void)
{
	if (connection >= 0)
		close(connection);
	connection = -1;
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork);
}

static int connect_once(void)
{
	pthread_once(&fork_once, watch_forks);
	if (connection >= 0)
		return 0;
	const char *path = getenv("MUSTER_WATCHDOG");
	if (!path || !*path)
		return -ENOTCONN;
	connection = watch_client_connect(path);
	return connection < 0 ? connection : 0;
}

static int request(enum watch_op op, unsigned flags, const char *scope, double seconds, int signal)
{
	struct watch_msg msg;
	int len = watch_client_fill(&msg, op, flags, scope, seconds, signal);
	if (len < 0)
		return last_error(len, NULL);
	pthread_mutex_lock(&lock);
	int r = connect_once();
	if (r == 0)
		r = watch_client_send(connection, &msg, (size_t)len);
	if (r < 0 && r != -ETIMEDOUT && connection >= 0) {
		close(connection);
		connection = -1;
	}
	pthread_mutex_unlock(&lock);
	return last_error(r, NULL);
}

int muster_timer_acquire(const char *scope, double seconds, int signal)
{
	return request(WATCH_OP_ACQUIRE, WATCH_FLAG_NEST, scope, seconds, signal);
}

int muster_timer_renew(const char *scope, double seconds, int signal)
{
	return request(WATCH_OP_ACQUIRE, 0, scope, seconds, signal);
}

int muster_timer_release(const char *scope)
{
	return request(WATCH_OP_RELEASE, 0, scope, 0, 0);
}

static int first_heartbeat(void)
{
	void *page = NULL;
	pthread_mutex_lock(&lock);
	int r = atomic_load(&counter) ? 0 : connect_once();
	if (r == 0 && !atomic_load(&counter))
		r = watch_client_map_heartbeat(connection, &page);
	if (page)
		atomic_store_explicit(&counter, page, memory_order_release);
	pthread_mutex_unlock(&lock);
	return r < 0 ? last_error(r, NULL) : muster_heartbeat();
}

int muster_heartbeat(void)
{
	_Atomic uint64_t *at = atomic_load_explicit(&counter, memory_order_acquire);
	if (!at)
		return first_heartbeat();
	/* Not an atomic addition: threads that beat at the same moment may lose a beat, but the
	 * value changes, and the launcher looks only for a change. A locked instruction would cost
	 * several times as much. */
	uint64_t beats = atomic_load_explicit(at, memory_order_relaxed);
	atomic_store_explicit(at, beats + 1, memory_order_relaxed);
	return 0;
}
