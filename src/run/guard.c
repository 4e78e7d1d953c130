#include "run/guard.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/procfs.h"
#include "base/str.h"
#include "run/diagnosis.h"
#include "watch/fifo.h"
#include "watch/heartbeat.h"
#include "watch/jobdir.h"
#include "watch/procinfo.h"
#include "watch/socket.h"

struct guarded {   /* one worker */
	pid_t pid; /* 0: not running */
	struct hang hang;
};

struct verdict {
	size_t rank;
	pid_t pid;
	enum failure_reason reason;
	int signal; /* 0: only a report */
	bool final;
};

struct guard {
	struct guard_config config;
	struct guard_hooks hooks;
	struct event_base *base;
	struct jobdir jobdir;
	struct watchdog *watchdog;
	struct fifo *fifo;
	struct watch_socket *socket;
	char *fifo_path, *socket_path;
	struct heartbeat heartbeat;
	struct event *look; /* every hang_period_ns(), while workers run and it was asked for */
	struct guarded *workers;
	size_t count;
	size_t rank_base;
	struct diagnosis *diagnosis; /* NULL: none is running */
	struct verdict verdict;	     /* to be executed after it */
};

static void log_lines(const char *text)
{
	size_t len;
	for (const char *line; (line = str_split(&text, '\n', &len));)
		if (len > 0)
			log_warn("%.*s", (int)len, line);
}

static void log_snapshot(pid_t pid)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	procinfo_snapshot(pid, &text);
	log_lines(buf_str(&text));
}

/* ---- verdicts ---- */

static void start_looking(struct guard *guard);

static void execute(struct guard *guard, const struct verdict *verdict)
{
	if (verdict->signal > 0)
		guard->hooks.on_condemned(guard->hooks.arg, verdict->rank, verdict->reason,
					  verdict->signal, verdict->final);
}

static void on_diagnosed(void *arg, const char *text)
{
	struct guard *guard = arg;
	struct verdict verdict = guard->verdict;
	guard->diagnosis = NULL;
	log_lines(text);
	guard->hooks.on_stacks(guard->hooks.arg, text);
	if (guard->workers[verdict.rank].pid !=
	    verdict.pid) { /* it ended meanwhile; check the others again */
		start_looking(guard);
		return;
	}
	/* Send the signal first: it takes effect when the worker continues. */
	execute(guard, &verdict);
	guard->hooks.hold(guard->hooks.arg, verdict.rank, false);
}

static bool start_diagnosis(struct guard *guard, const struct verdict *verdict, uint64_t timeout_ns)
{
	if (timeout_ns == 0 || guard->diagnosis || guard->workers[verdict->rank].pid == 0)
		return false;
	AUTO_FREE struct stacks_worker *workers = mem_alloc(guard->count * sizeof(*workers));
	size_t count = 0;
	for (size_t i = 0; i < guard->count; i++)
		if (guard->workers[i].pid)
			workers[count++] = (struct stacks_worker){ .rank = guard->rank_base + i,
								   .pid = guard->workers[i].pid,
								   .stopped = i == verdict->rank };
	AUTO_FREE char *path = guard->hooks.stacks_path(guard->hooks.arg);
	guard->hooks.hold(guard->hooks.arg, verdict->rank, true);
	int r = diagnosis_start(guard->base, workers, count, timeout_ns, path, on_diagnosed, guard,
				&guard->diagnosis);
	if (r < 0) {
		log_warn("no stacks: %s", strerror(-r));
		guard->hooks.hold(guard->hooks.arg, verdict->rank, false);
		return false;
	}
	guard->verdict = *verdict;
	guard->verdict.pid = guard->workers[verdict->rank].pid;
	return true;
}

/* Executes the verdict, after reading the stacks if there is time for that. */
static void judge(struct guard *guard, const struct verdict *verdict, uint64_t diagnose_ns)
{
	if (!start_diagnosis(guard, verdict, diagnose_ns))
		execute(guard, verdict);
}

/* ---- timers ---- */

static void on_expired(void *arg, const struct watchdog_expiry *expiry)
{
	struct guard *guard = arg;
	char limit[CLOCK_HUMAN_MAX], cpu[CLOCK_HUMAN_MAX];
	clock_human(expiry->deadline_ns - MIN(expiry->deadline_ns, expiry->armed_ns), limit);
	clock_human(expiry->cpu_ns, cpu);
	const char *signal = expiry->signal > 0 ? str_signal_name(expiry->signal) : NULL;
	log_warn("rank %zu (process %d) did not finish '%.200s' within %s (CPU used since: %s); %s",
		 guard->rank_base + expiry->rank, (int)expiry->pid, expiry->scope, limit, cpu,
		 expiry->signal <= 0 ? "only reported, as asked"
		 : signal	     ? signal
				     : "a real-time signal");
	log_snapshot(expiry->pid);
	guard->hooks.on_expired(guard->hooks.arg, expiry);
	struct verdict verdict = { .rank = expiry->rank,
				   .reason = FAILURE_TIMER,
				   .signal = expiry->signal };
	judge(guard, &verdict, guard->config.diagnose_timer_ns);
}

static void on_rejected(void *arg, enum watchdog_rejection rejection, const char *detail)
{
	struct guard *guard = arg;
	const char *reason = watchdog_rejection_name(rejection);
	log_warn("watchdog: request rejected: %s (%s); further ones are only counted", reason,
		 detail);
	guard->hooks.on_rejected(guard->hooks.arg, reason, detail);
}

/* ---- hangs ---- */

static void on_hang(struct guard *guard, size_t rank, enum hang_kind kind, uint64_t since_ns)
{
	char since[CLOCK_HUMAN_MAX];
	clock_human(clock_now_ns() - since_ns, since);
	log_warn("rank %zu (process %d) hangs: %s for %s", guard->rank_base + rank,
		 (int)guard->workers[rank].pid, hang_kind_text(kind), since);
	for (size_t i = 0; i < guard->count; i++)
		if (guard->workers[i].pid)
			log_snapshot(guard->workers[i].pid);
	/* No signal reaches a process in D state, and a new worker on this host would hang in the
	 * same way. */
	bool final = kind == HANG_UNINTERRUPTIBLE || guard->config.hang_action == HANG_ACTION_STOP;
	bool only_report =
		kind != HANG_UNINTERRUPTIBLE && guard->config.hang_action == HANG_ACTION_REPORT;
	struct verdict verdict = { .rank = rank,
				   .reason = FAILURE_HANG,
				   .signal = only_report ? 0 : SIGKILL,
				   .final = final };
	if (!only_report)
		/* one verdict ends the round; the others hang because of it, or with it */
		event_del(guard->look);
	/* A process that reads the stack of one in D state would hang, too. */
	judge(guard, &verdict, kind == HANG_UNINTERRUPTIBLE ? 0 : guard->config.diagnose_hang_ns);
}

static bool is_uninterruptible(const struct guard *guard, pid_t pid)
{
	struct proc_stat info;
	return guard->config.hang.uninterruptible_ns && procfs_stat(pid, &info) == 0 &&
	       info.state == 'D';
}

static void on_look(UNUSED evutil_socket_t fd, UNUSED short what, void *arg)
{
	struct guard *guard = arg;
	uint64_t now_ns = clock_now_ns(), since_ns;
	for (size_t i = 0; i < guard->count && event_pending(guard->look, EV_TIMEOUT, NULL); i++) {
		struct guarded *worker = &guard->workers[i];
		if (!worker->pid)
			continue;
		uint64_t progress = heartbeat_read(&guard->heartbeat, i);
		if (guard->hooks.progress)
			progress += guard->hooks.progress(guard->hooks.arg, i);
		enum hang_kind kind =
			hang_look(&worker->hang, &guard->config.hang, progress,
				  is_uninterruptible(guard, worker->pid), now_ns, &since_ns);
		if (kind)
			on_hang(guard, i, kind, since_ns);
	}
}

static void start_looking(struct guard *guard)
{
	uint64_t period_ns = hang_period_ns(&guard->config.hang);
	struct timeval period = clock_timeval(period_ns);
	if (period_ns)
		event_add(guard->look, &period);
}

/* ---- rounds ---- */

void guard_set_warden(struct guard *guard, pid_t warden_pid)
{
	watchdog_set_warden(guard->watchdog, warden_pid);
}

void guard_begin(struct guard *guard, size_t count, size_t rank_base, struct strv *env)
{
	guard_gone(guard);
	guard->rank_base = rank_base;
	guard->count = count;
	guard->workers = mem_alloc(count * sizeof(struct guarded));
	heartbeat_reset(&guard->heartbeat, count);
	watchdog_expect(guard->watchdog, count);
	if (guard->fifo)
		env_set(env, "TORCHELASTIC_TIMER_FILE", guard->fifo_path);
	if (guard->socket)
		env_set(env, "MUSTER_WATCHDOG", guard->socket_path);
	start_looking(guard);
}

void guard_started(struct guard *guard, size_t rank, pid_t pid)
{
	guard->workers[rank].pid = pid;
	hang_begin(&guard->workers[rank].hang, clock_now_ns());
	watchdog_add_worker(guard->watchdog, rank, pid);
}

void guard_paused(struct guard *guard, uint64_t pause_ns)
{
	for (size_t i = 0; i < guard->count; i++)
		hang_pause(&guard->workers[i].hang, pause_ns);
	watchdog_pause(guard->watchdog, pause_ns);
}

void guard_not_started(struct guard *guard)
{
	watchdog_skip_worker(guard->watchdog);
}

void guard_ended(struct guard *guard, size_t rank)
{
	guard->workers[rank].pid = 0;
}

void guard_gone(struct guard *guard)
{
	event_del(guard->look);
	diagnosis_cancel(guard->diagnosis);
	guard->diagnosis = NULL;
	watchdog_forget_all(guard->watchdog);
	free(guard->workers);
	guard->workers = NULL;
	guard->count = 0;
}

/* ---- life cycle ---- */

static int open_fifo(struct guard *guard, struct err *err)
{
	if (guard->config.timer_file)
		guard->fifo_path = mem_strdup(guard->config.timer_file);
	else if (guard->jobdir.path[0])
		guard->fifo_path = jobdir_file(&guard->jobdir, "timer");
	else
		return err_set(err, ENOENT, "no private directory for the timer FIFO");
	return fifo_new(guard->base, guard->watchdog, guard->fifo_path, &guard->fifo, err);
}

static void open_socket(struct guard *guard)
{
	struct err err = ERR_INIT;
	int r = jobdir_init(&guard->jobdir, &err);
	if (r == 0) {
		guard->socket_path = jobdir_file(&guard->jobdir, "watchdog");
		r = watch_socket_new(guard->base, guard->watchdog, &guard->heartbeat,
				     guard->socket_path, &guard->socket, &err);
	}
	if (r < 0)
		log_warn("no watchdog socket for this job: %s", err.msg);
}

int guard_new(const struct guard_config *config, struct event_base *base,
	      const struct guard_hooks *hooks, struct guard **ret, struct err *err)
{
	struct guard *guard = NEW(struct guard);
	guard->config = *config;
	guard->hooks = *hooks;
	guard->base = base;
	guard->jobdir = JOBDIR_INIT;
	guard->look = event_new(base, -1, EV_PERSIST, on_look, guard);
	guard->watchdog = watchdog_new(base, &(struct watchdog_hooks){ .on_expired = on_expired,
								       .on_rejected = on_rejected,
								       .arg = guard });
	open_socket(guard);
	int r = config->file_timer ? open_fifo(guard, err) : 0;
	if (r < 0) {
		guard_free(guard);
		return r;
	}
	*ret = guard;
	return 0;
}

void guard_free(struct guard *guard)
{
	if (!guard)
		return;
	guard_gone(guard);
	fifo_free(guard->fifo);
	watch_socket_free(guard->socket);
	heartbeat_done(&guard->heartbeat);
	watchdog_free(guard->watchdog);
	event_free(guard->look);
	free(guard->fifo_path);
	free(guard->socket_path);
	jobdir_done(&guard->jobdir);
	free(guard);
}

char *guard_file(const struct guard *guard, const char *name)
{
	return guard->jobdir.path[0] ? jobdir_file(&guard->jobdir, name) : NULL;
}

/* ---- reports ---- */

struct watchdog_stats guard_stats(const struct guard *guard)
{
	return watchdog_stats(guard->watchdog);
}

uint64_t guard_heartbeats(const struct guard *guard, size_t rank)
{
	return heartbeat_read(&guard->heartbeat, rank);
}

uint64_t guard_alive_ns(const struct guard *guard, size_t rank)
{
	bool looked_at = rank < guard->count && hang_period_ns(&guard->config.hang);
	return looked_at ? guard->workers[rank].hang.alive_ns : 0;
}

size_t guard_timers(const struct guard *guard, size_t rank)
{
	size_t count = 0;
	if (rank < guard->count && guard->workers[rank].pid)
		for (const struct deadline *at =
			     watchdog_timers_of(guard->watchdog, guard->workers[rank].pid);
		     at; at = deadlines_of_next(at))
			count++;
	return count;
}
