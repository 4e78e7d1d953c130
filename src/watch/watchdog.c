#include "watch/watchdog.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/procfs.h"
#include "base/random.h"
#include "watch/procinfo.h"

/* A process that may arm timers. Its number is its pid while it lives. */
struct watched {
	struct watchdog *watchdog;
	pid_t pid;
	pid_t worker_pid;
	size_t rank;
	int pidfd;
	struct event *on_exit;
};

struct watchdog {
	struct event_base *base;
	struct watchdog_hooks hooks;
	struct deadlines deadlines;
	struct map watched; /* pid -> struct watched */
	struct map workers; /* pid of a main process -> local rank + 1 */
	struct list channels;
	struct event *timer;
	uint64_t timer_ns; /* when it fires; NS_NEVER: not set */
	size_t expected;   /* workers that are being started; 0: the channels are read */
	pid_t warden_pid;
	uint64_t rejected[REJECT_COUNT];
};

static const char *const rejection_names[] = {
	[REJECT_LINE] = "malformed request",
	[REJECT_PID] = "impossible process number",
	[REJECT_GONE] = "no such process",
	[REJECT_FOREIGN] = "not a process of this job",
	[REJECT_DEADLINE] = "deadline is not a number",
	[REJECT_TOO_MANY] = "too many timers",
};
static_assert(ARRAY_LEN(rejection_names) == REJECT_COUNT, "every rejection needs a name");

const char *watchdog_rejection_name(enum watchdog_rejection rejection)
{
	return rejection_names[rejection];
}

void watchdog_reject(struct watchdog *watchdog, enum watchdog_rejection rejection,
		     const char *detail)
{
	watchdog->rejected[rejection]++;
	if (detail && watchdog->hooks.on_rejected)
		watchdog->hooks.on_rejected(watchdog->hooks.arg, rejection, detail);
}

/* A process that is gone needs no timer; count it, without a report. */
static int process_gone(struct watchdog *watchdog)
{
	watchdog_reject(watchdog, REJECT_GONE, NULL);
	return -ESRCH;
}

static int reject_pid(struct watchdog *watchdog, enum watchdog_rejection rejection, int code,
		      int64_t pid)
{
	char detail[32];
	snprintf(detail, sizeof(detail), "pid %lld", (long long)pid);
	watchdog_reject(watchdog, rejection, watchdog->rejected[rejection] == 0 ? detail : NULL);
	return -code;
}

/* ---- processes ---- */

static void watched_free(struct watched *watched)
{
	struct watchdog *watchdog = watched->watchdog;
	deadlines_forget(&watchdog->deadlines, (uint64_t)watched->pid);
	map_remove(&watchdog->watched, &watched->pid, sizeof(watched->pid));
	event_free(watched->on_exit);
	fd_close(&watched->pidfd);
	free(watched);
}

static void on_process_exit(UNUSED evutil_socket_t fd, UNUSED short what, void *arg)
{
	watched_free(arg);
}

static bool pidfd_ended(int pidfd)
{
	struct pollfd poll_fd = { .fd = pidfd, .events = POLLIN };
	return poll(&poll_fd, 1, 0) != 0;
}

/* Which worker `pid` belongs to. A child of the warden that is not a worker is an orphan that the
 * warden inherited; its session still tells where it came from. */
static int find_worker(struct watchdog *watchdog, pid_t pid, pid_t *ret_worker_pid,
		       size_t *ret_rank)
{
	pid_t top;
	int r = procinfo_chain(pid, watchdog->warden_pid, &top);
	if (r < 0)
		return r;
	uintptr_t rank = (uintptr_t)map_get(&watchdog->workers, &top, sizeof(top));
	if (rank == 0) {
		struct proc_stat info;
		r = procfs_stat(pid, &info);
		if (r < 0)
			return r;
		top = info.session;
		rank = (uintptr_t)map_get(&watchdog->workers, &top, sizeof(top));
	}
	if (rank == 0)
		return -EPERM;
	*ret_worker_pid = top;
	*ret_rank = rank - 1;
	return 0;
}

static struct watched *watched_new(struct watchdog *watchdog, pid_t pid, pid_t worker_pid,
				   size_t rank, int *pidfd)
{
	struct watched *watched = NEW(struct watched);
	watched->watchdog = watchdog;
	watched->pid = pid;
	watched->worker_pid = worker_pid;
	watched->rank = rank;
	watched->pidfd = fd_take(pidfd);
	watched->on_exit =
		event_new(watchdog->base, watched->pidfd, EV_READ, on_process_exit, watched);
	event_add(watched->on_exit, NULL);
	map_put(&watchdog->watched, &pid, sizeof(pid), watched);
	return watched;
}

/* Finds the process, if muster may act on its request. The order makes it safe:
 *   1. the pidfd names one process, whatever its pid is used for later;
 *   2. the chain of parents is that of the process that has the pid now;
 *   3. the process of the pidfd still exists, hence the two are the same. */
static int admit(struct watchdog *watchdog, int64_t number, struct watched **ret)
{
	if (number <= 1 || number > INT32_MAX)
		return reject_pid(watchdog, REJECT_PID, EINVAL, number);
	pid_t pid = (pid_t)number, worker_pid;
	struct watched *known = map_get(&watchdog->watched, &pid, sizeof(pid));
	if (known) {
		*ret = known;
		return 0;
	}
	size_t rank;
	AUTO(fd_close) int pidfd = pidfd_open(pid, 0);
	if (pidfd < 0)
		return process_gone(watchdog);
	int r = find_worker(watchdog, pid, &worker_pid, &rank);
	if (r < 0 && r != -ESRCH)
		return reject_pid(watchdog, REJECT_FOREIGN, EPERM, number);
	if (r < 0 || pidfd_ended(pidfd))
		return process_gone(watchdog);
	*ret = watched_new(watchdog, pid, worker_pid, rank, &pidfd);
	return 0;
}

static int admit_owner(struct watchdog *watchdog, int64_t pid, bool whole_worker,
		       struct watched **ret)
{
	int r = admit(watchdog, pid, ret);
	if (r == 0 && whole_worker && (*ret)->worker_pid != (*ret)->pid)
		r = admit(watchdog, (*ret)->worker_pid, ret);
	return r;
}

int watchdog_rank_of(struct watchdog *watchdog, int64_t pid, size_t *ret_rank)
{
	struct watched *watched;
	int r = admit(watchdog, pid, &watched);
	if (r == 0)
		*ret_rank = watched->rank;
	return r;
}

/* ---- timers ---- */

/* The timer only moves to earlier times: an early expiry costs less than setting it again for every
 * release. */
static void set_timer(struct watchdog *watchdog, uint64_t now_ns)
{
	uint64_t next_ns = deadlines_next(&watchdog->deadlines);
	if (next_ns >= watchdog->timer_ns)
		return;
	watchdog->timer_ns = next_ns;
	struct timeval left = clock_left(next_ns, now_ns);
	event_add(watchdog->timer, &left);
}

void watchdog_pause(struct watchdog *watchdog, uint64_t pause_ns)
{
	watchdog_drain(watchdog); /* what was armed before counts too */
	deadlines_pause(&watchdog->deadlines, pause_ns);
}

void watchdog_drain(struct watchdog *watchdog)
{
	list_foreach(link, &watchdog->channels)
	{
		struct watchdog_channel *channel = list_entry(link, struct watchdog_channel, link);
		channel->drain(channel);
	}
}

static size_t count_timers(const struct watchdog *watchdog, pid_t pid)
{
	size_t count = 0;
	for (const struct deadline *at = deadlines_of(&watchdog->deadlines, (uint64_t)pid); at;
	     at = deadlines_of_next(at))
		count++;
	return count;
}

static void tell_expired(struct watchdog *watchdog, const struct watched *watched,
			 const struct deadline *deadline)
{
	uint64_t now_ns = clock_now_ns();
	uint64_t cpu_ns = procfs_cpu_ns(watched->pid);
	struct watchdog_expiry expiry = {
		.rank = watched->rank,
		.pid = watched->pid,
		.scope = deadline->scope,
		.signal = deadline->signal,
		.armed_ns = deadline->armed_ns,
		.deadline_ns = deadline->deadline_ns,
		.late_ns = now_ns - MIN(now_ns, deadline->deadline_ns),
		.cpu_ns = cpu_ns - MIN(cpu_ns, deadline->cpu_ns),
		.others = count_timers(watchdog, watched->pid),
	};
	if (watchdog->hooks.on_expired)
		watchdog->hooks.on_expired(watchdog->hooks.arg, &expiry);
}

/* The group signals the worker itself, because more follows from that; only the watchdog knows a
 * helper process of the worker. */
static void expire(struct watchdog *watchdog, const struct deadline *deadline)
{
	pid_t pid = (pid_t)deadline->process;
	struct watched *watched = map_get(&watchdog->watched, &pid, sizeof(pid));
	if (!watched || pidfd_ended(watched->pidfd))
		return;
	if (deadline->signal > 0 && pid != watched->worker_pid)
		pidfd_send_signal(watched->pidfd, deadline->signal, NULL, 0);
	tell_expired(watchdog, watched, deadline);
	if (deadline->signal > 0)
		deadlines_forget(&watchdog->deadlines, deadline->process);
}

static void on_timer(UNUSED evutil_socket_t fd, UNUSED short what, void *arg)
{
	struct watchdog *watchdog = arg;
	watchdog->timer_ns = NS_NEVER;
	uint64_t now_ns = clock_now_ns();
	if (deadlines_next(&watchdog->deadlines) <= now_ns)
		watchdog_drain(watchdog);
	for (struct deadline *deadline; (deadline = deadlines_expire(&watchdog->deadlines, now_ns));
	     deadline_free(deadline))
		expire(watchdog, deadline);
	set_timer(watchdog, clock_now_ns());
}

int watchdog_acquire(struct watchdog *watchdog, int64_t pid, bool whole_worker, const char *scope,
		     enum deadline_mode mode, int signal, uint64_t deadline_ns)
{
	struct watched *watched;
	int r = admit_owner(watchdog, pid, whole_worker, &watched);
	if (r < 0)
		return r;
	uint64_t now_ns = clock_now_ns();
	struct deadline *deadline = deadlines_acquire(&watchdog->deadlines, (uint64_t)watched->pid,
						      scope, mode, signal, deadline_ns, now_ns);
	if (!deadline)
		return reject_pid(watchdog, REJECT_TOO_MANY, ENOSPC, pid);
	deadline->cpu_ns = procfs_cpu_ns(watched->pid);
	set_timer(watchdog, now_ns);
	return 0;
}

int watchdog_release(struct watchdog *watchdog, int64_t pid, bool whole_worker, const char *scope)
{
	struct watched *watched;
	int r = admit_owner(watchdog, pid, whole_worker, &watched);
	if (r == 0)
		deadlines_release(&watchdog->deadlines, (uint64_t)watched->pid, scope);
	return r;
}

/* ---- life cycle ---- */

struct watchdog *watchdog_new(struct event_base *base, const struct watchdog_hooks *hooks)
{
	struct watchdog *watchdog = NEW(struct watchdog);
	watchdog->base = base;
	watchdog->hooks = *hooks;
	watchdog->deadlines = DEADLINES_INIT;
	random_bytes(watchdog->deadlines.by_key.hash_key,
		     sizeof(watchdog->deadlines.by_key.hash_key));
	watchdog->watched = MAP_INIT;
	watchdog->workers = MAP_INIT;
	list_init(&watchdog->channels);
	watchdog->timer = evtimer_new(base, on_timer, watchdog);
	watchdog->timer_ns = NS_NEVER;
	return watchdog;
}

void watchdog_set_warden(struct watchdog *watchdog, pid_t warden_pid)
{
	watchdog->warden_pid = warden_pid;
}

static void set_expected(struct watchdog *watchdog, size_t expected)
{
	bool listened = watchdog->expected == 0, listens = expected == 0;
	watchdog->expected = expected;
	if (listened == listens)
		return;
	list_foreach(link, &watchdog->channels)
	{
		struct watchdog_channel *channel = list_entry(link, struct watchdog_channel, link);
		channel->listen(channel, listens);
	}
}

void watchdog_expect(struct watchdog *watchdog, size_t count)
{
	set_expected(watchdog, count);
}

void watchdog_skip_worker(struct watchdog *watchdog)
{
	if (watchdog->expected > 0)
		set_expected(watchdog, watchdog->expected - 1);
}

void watchdog_add_worker(struct watchdog *watchdog, size_t rank, pid_t pid)
{
	map_put(&watchdog->workers, &pid, sizeof(pid), (void *)(uintptr_t)(rank + 1));
	watchdog_skip_worker(watchdog);
}

void watchdog_forget_all(struct watchdog *watchdog)
{
	set_expected(watchdog, 0);
	map_foreach(entry, &watchdog->watched) watched_free(entry->value);
	map_done(&watchdog->workers);
	watchdog->workers = MAP_INIT;
}

void watchdog_free(struct watchdog *watchdog)
{
	if (!watchdog)
		return;
	assert(list_empty(&watchdog->channels));
	watchdog_forget_all(watchdog);
	map_done(&watchdog->watched);
	deadlines_done(&watchdog->deadlines);
	event_free(watchdog->timer);
	free(watchdog);
}

void watchdog_add_channel(struct watchdog *watchdog, struct watchdog_channel *channel)
{
	list_append(&watchdog->channels, &channel->link);
}

void watchdog_remove_channel(struct watchdog_channel *channel)
{
	list_unlink(&channel->link);
}

struct watchdog_stats watchdog_stats(const struct watchdog *watchdog)
{
	struct watchdog_stats stats = {
		.armed = deadlines_count(&watchdog->deadlines),
		.requests = watchdog->deadlines.armed_total + watchdog->deadlines.released_total,
		.expired = watchdog->deadlines.expired_total,
	};
	for (size_t i = 0; i < REJECT_COUNT; i++)
		stats.rejected[i] = watchdog->rejected[i];
	return stats;
}

const struct deadline *watchdog_timers_of(const struct watchdog *watchdog, pid_t pid)
{
	return deadlines_of(&watchdog->deadlines, (uint64_t)pid);
}
