/* Timers, heartbeat and steps: one connection and one page of shared memory per process, made when
 * they are first needed. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <muster/muster.h>
#include "lib/last_error.h"
#include "core/worker/worker_page.h"
#include "watch/client.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int connection = -1;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static struct worker_page *_Atomic page;

/* A child made by fork() is another process and connects again. It keeps the page that it shares
 * with its parent, because heartbeats and steps belong to the whole worker. It makes a new lock:
 * the thread that may have held it does not exist in the child. */
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

/* The page once it is mapped; NULL: not yet. */
static struct worker_page *mapped(void)
{
	return atomic_load_explicit(&page, memory_order_acquire);
}

static int map_page(struct worker_page **ret_page)
{
	struct worker_page *made = NULL;
	pthread_mutex_lock(&lock);
	int r = mapped() ? 0 : connect_once();
	if (r == 0 && !mapped())
		r = watch_client_map_page(connection, &made);
	if (made)
		atomic_store_explicit(&page, made, memory_order_release);
	pthread_mutex_unlock(&lock);
	*ret_page = mapped();
	return r < 0 ? last_error(r, NULL) : 0;
}

int muster_page(void **ret_page)
{
	struct worker_page *at;
	int r = map_page(&at);
	if (r == 0)
		*ret_page = at;
	return r;
}

int muster_heartbeat(void)
{
	struct worker_page *at = mapped();
	int r = at ? 0 : map_page(&at);
	if (r < 0)
		return r;
	/* Not an atomic addition: threads that beat at the same moment may lose a beat, but the
	 * value changes, and the launcher looks only for a change. A locked instruction would cost
	 * several times as much. */
	uint64_t beats = atomic_load_explicit(&at->beats, memory_order_relaxed);
	atomic_store_explicit(&at->beats, beats + 1, memory_order_relaxed);
	return 0;
}

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int muster_step(uint64_t step)
{
	struct worker_page *at = mapped();
	int r = at ? 0 : map_page(&at);
	if (r == 0)
		worker_page_tell(at, step, now_ns());
	return r;
}

int muster_total_steps(uint64_t total)
{
	struct worker_page *at = mapped();
	int r = at ? 0 : map_page(&at);
	if (r == 0)
		atomic_store_explicit(&at->total, total, memory_order_relaxed);
	return r;
}

int muster_saved(uint64_t step)
{
	struct worker_page *at = mapped();
	int r = at ? 0 : map_page(&at);
	if (r == 0)
		atomic_store_explicit(&at->saved, step + 1, memory_order_release);
	return r;
}

int muster_section(const char *name)
{
	struct worker_page *at = mapped();
	int r = at ? 0 : map_page(&at);
	if (r < 0)
		return r;
	int section = name ? worker_page_find_section(at, name) : -1;
	if (name && section < 0)
		return last_error(section, NULL);
	worker_page_enter(at, section, now_ns());
	return 0;
}
